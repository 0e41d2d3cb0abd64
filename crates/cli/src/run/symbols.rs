//! Names for places in code.

use addr2line::gimli::{Dwarf, EndianSlice, RunTimeEndian, SectionId};
use addr2line::{Context, demangle_auto};
use object::{File, Object, ObjectSection, ObjectSegment, ObjectSymbol};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;

type Bytes = EndianSlice<'static, RunTimeEndian>;

/// Names found so far, and the files in which they were found.
#[derive(Default)]
pub(super) struct Symbols {
    files: HashMap<String, Option<Code>>,
    found: HashMap<(String, u64), Option<Place>>,
}

/// A place in code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) function: String,
    /// `file:line`, where debug information has it.
    pub(super) line: Option<String>,
}

/// A file with code in it.
struct Code {
    object: File<'static>,
    debug: Option<Context<Bytes>>,
    /// The address that goes with offset zero.
    base: u64,
}

impl Symbols {
    /// The address by which tools know the call that returns to that offset in a file, as loaded.
    pub(super) fn address(&mut self, file: &str, offset: u64) -> Option<u64> {
        self.code(file)?.address(offset)
    }

    fn code(&mut self, file: &str) -> Option<&Code> {
        let code = self.files.entry(file.to_owned());
        code.or_insert_with(|| Code::read(file)).as_ref()
    }

    /// The function that a call was made in which returns to that offset in a file, as loaded.
    pub(super) fn caller(&mut self, file: &str, offset: u64) -> Option<Place> {
        let place = (file.to_owned(), offset);
        if let Some(found) = self.found.get(&place) {
            return found.clone();
        }
        let found = self.code(file).and_then(|code| code.caller(offset));
        self.found.insert(place, found.clone());
        found
    }
}

/// As people write it, if it is the name that a compiler makes of one.
pub(super) fn demangled(name: &str) -> String {
    demangle_auto(Cow::from(name), None).into_owned()
}

impl Code {
    fn read(file: &str) -> Option<Self> {
        // For the rest of the process, which is all but over.
        let bytes = fs::read(file).ok()?.leak();
        let object = File::parse(&*bytes).ok()?;
        // The loader starts at a whole page.
        let lowest = object.segments().map(|segment| segment.address()).min()?;
        let base = lowest & !0xfff;
        let endian = if object.is_little_endian() {
            RunTimeEndian::Little
        } else {
            RunTimeEndian::Big
        };
        let section = |id: SectionId| -> Result<Bytes, addr2line::gimli::Error> {
            let section = object.section_by_name(id.name());
            let data = section.and_then(|section| section.data().ok());
            Ok(Bytes::new(data.unwrap_or_default(), endian))
        };
        let debug = Dwarf::load(section).and_then(Context::from_dwarf).ok();
        Some(Self {
            object,
            debug,
            base,
        })
    }

    fn address(&self, offset: u64) -> Option<u64> {
        // The call is before the place that it returns to.
        self.base.checked_add(offset)?.checked_sub(1)
    }

    fn caller(&self, offset: u64) -> Option<Place> {
        let address = self.address(offset)?;
        self.by_debug_information(address)
            .or_else(|| self.by_symbol(address))
    }

    fn by_debug_information(&self, address: u64) -> Option<Place> {
        let frames = self.debug.as_ref()?.find_frames(address);
        let mut frames = frames.skip_all_loads().ok()?;
        // The last is the function in which all the others were inlined: mostly the standard library's wrappers.
        let mut place = None;
        while let Ok(Some(frame)) = frames.next() {
            let line = frame.location.as_ref().and_then(|location| {
                let (file, line) = (location.file?, location.line?);
                Some(format!("{file}:{line}"))
            });
            let function = frame.function.as_ref();
            place = function.and_then(|name| Some((demangled(&name.raw_name().ok()?), line)));
        }
        let (function, line) = place?;
        Some(Place { function, line })
    }

    fn by_symbol(&self, address: u64) -> Option<Place> {
        let (symbols, dynamic) = (self.object.symbols(), self.object.dynamic_symbols());
        let symbol = symbols.chain(dynamic).find(|it| {
            it.is_definition() && (it.address()..it.address() + it.size()).contains(&address)
        });
        Some(Place {
            function: demangled(symbol?.name().ok()?),
            line: None,
        })
    }
}
