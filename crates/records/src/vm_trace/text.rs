//! Traces as lines of text, compressed by gzip: `zcat` shows one.
//!
//! All numbers are hexadecimal but for threads and microseconds. A place in an event is a difference, with a sign, to
//! the place of the event before by the same thread: so are most of them a digit or two long.
//!
//! ```text
//! spanlock vm trace 1             the version of the format
//! # wc -p 2 words                 where it comes from
//! heap 564f10604                  the page where the heap begins
//! before 12                       so many areas at the beginning
//! 564f042f2 3 1 0 0 0             first page, pages, protection, attributes, file + 1, page of the file
//! …                               of anonymous areas the last two are left out
//! events 5230                     so many events
//! 0 812 m +7fc98 2 3 22           thread, microseconds, what, place, …
//! …
//! after 49                        so many areas at the end
//! …
//! end
//! ```
//!
//! | event | after the place |
//! |---|---|
//! | `m` mmap | pages, protection, flags, and of a file its number + 1 and its page |
//! | `u` munmap | pages |
//! | `p` mprotect | pages, protection |
//! | `b` brk | nothing; the place is the page after the heap |
//! | `a` madvise | pages, advice |
//! | `r` mremap | pages, pages afterwards, and the new place as a difference to the old one |
//! | `f` fault | access |

use crate::vm_trace::trace::{Area, Backing, Call, Event, Map, PAGES, Remap, Trace, attribute};
use flate2::bufread::MultiGzDecoder;
use std::fmt;
use std::io::{self, BufRead, Read};

/// The first line.
const VERSION: &str = "spanlock vm trace 1";

/// More areas, events or threads than this are a mistake, and not a trace that fits into memory.
const MOST: usize = 1 << 28;

/// Why a trace cannot be read.
#[derive(Debug)]
pub enum Error {
    /// It cannot be read, or is not compressed by gzip.
    Io(io::Error),
    /// A line is not as it has to be.
    Line {
        /// Its number, from 1.
        number: usize,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read as a trace compressed by gzip: {error}"),
            Self::Line { number, what } => write!(f, "line {number}: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a trace.
///
/// # Errors
/// What cannot be read, or which line is not as it has to be.
pub fn read(from: impl BufRead) -> Result<Trace, Error> {
    let mut text = String::new();
    MultiGzDecoder::new(from).read_to_string(&mut text)?;
    parse(&text)
}

/// Reads a trace from text that is not compressed.
///
/// # Errors
/// Which line is not as it has to be.
pub fn parse(text: &str) -> Result<Trace, Error> {
    let mut lines = Lines {
        rest: text.lines(),
        number: 0,
    };
    trace(&mut lines).map_err(|what| Error::Line {
        number: lines.number,
        what,
    })
}

struct Lines<'a> {
    rest: std::str::Lines<'a>,
    number: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Result<&'a str, String> {
        self.number += 1;
        self.rest
            .next()
            .ok_or_else(|| "the trace ends here".to_owned())
    }

    /// The number on a line that begins with this word.
    fn headed(&mut self, word: &str) -> Result<u64, String> {
        let line = self.next()?;
        headed(line, word)
    }

    fn count(&mut self, word: &str) -> Result<usize, String> {
        let count = self.headed(word)?;
        let fits = usize::try_from(count).ok().filter(|count| *count <= MOST);
        fits.ok_or_else(|| format!("{count} are too many"))
    }
}

fn headed(line: &str, word: &str) -> Result<u64, String> {
    let number = line
        .strip_prefix(word)
        .and_then(|rest| rest.strip_prefix(' '));
    hex(number.ok_or_else(|| format!("`{word}` and a number belong here"))?)
}

fn hex(digits: &str) -> Result<u64, String> {
    // The library's parser takes a sign, too.
    let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u64::from_str_radix(digits, 16).ok().filter(|_| plain);
    number.ok_or_else(|| format!("`{digits}` is not a hexadecimal number"))
}

fn small(digits: &str) -> Result<u32, String> {
    u32::try_from(hex(digits)?).map_err(|_| format!("`{digits}` is too large"))
}

fn trace(lines: &mut Lines<'_>) -> Result<Trace, String> {
    if lines.next()? != VERSION {
        return Err(format!("a trace begins with `{VERSION}`"));
    }
    let mut about = Vec::new();
    let heap = loop {
        let line = lines.next()?;
        match line.strip_prefix("# ") {
            Some(words) => about.push(words),
            None => break headed(line, "heap")?,
        }
    };
    let heap = page(heap)?;
    let before = areas(lines, "before")?;
    let count = lines.count("events")?;
    let mut events = Vec::new();
    let mut places = Vec::new();
    for _ in 0..count {
        events.push(event(lines.next()?, &mut places)?);
    }
    let after = areas(lines, "after")?;
    if lines.next()? != "end" {
        return Err("`end` belongs here".to_owned());
    }
    Ok(Trace {
        about: about.join("\n"),
        heap,
        before,
        events,
        after,
    })
}

fn page(page: u64) -> Result<u64, String> {
    if page < PAGES {
        Ok(page)
    } else {
        Err(format!("there is no page {page:x}"))
    }
}

/// So many pages from this one on.
fn extent(start: u64, digits: &str) -> Result<u64, String> {
    let pages = hex(digits)?;
    let end = start.checked_add(pages).filter(|end| *end <= PAGES);
    match end {
        Some(_) if pages > 0 => Ok(pages),
        _ => Err(format!("there are no {digits} pages from {start:x} on")),
    }
}

fn protection(digits: &str) -> Result<u32, String> {
    let bits = small(digits)?;
    if bits < 8 {
        Ok(bits)
    } else {
        Err(format!("`{digits}` is no protection"))
    }
}

fn backing(fields: &[&str]) -> Result<Backing, String> {
    match fields {
        [] => Ok(Backing::Anonymous),
        [file, page] => {
            let file = small(file)?.checked_sub(1);
            let file = file.ok_or("files are numbered from 1")?;
            Ok(Backing::File {
                file,
                page: hex(page)?,
            })
        }
        _ => Err("a file has two numbers".to_owned()),
    }
}

fn areas(lines: &mut Lines<'_>, which: &str) -> Result<Vec<Area>, String> {
    let count = lines.count(which)?;
    let mut areas: Vec<Area> = Vec::new();
    for _ in 0..count {
        let fields: Vec<_> = lines.next()?.split(' ').collect();
        let [start, pages, allowed, attributes, file @ ..] = fields.as_slice() else {
            return Err("an area has four numbers or six".to_owned());
        };
        let start = page(hex(start)?)?;
        let end = start + extent(start, pages)?;
        if areas.last().is_some_and(|before| start < before.end) {
            return Err("areas are in order, and do not overlap".to_owned());
        }
        let attributes = small(attributes)?;
        if attributes & !attribute::REPORTED != 0 {
            return Err(format!("attributes {attributes:x} have unknown bits"));
        }
        let (protection, backing) = (protection(allowed)?, backing(file)?);
        areas.push(Area {
            start,
            end,
            protection,
            attributes,
            backing,
        });
    }
    Ok(areas)
}

fn event(line: &str, places: &mut Vec<u64>) -> Result<Event, String> {
    let mut fields = line.split(' ');
    let mut next = || {
        fields
            .next()
            .ok_or_else(|| "the line is too short".to_owned())
    };
    let (thread, think) = (next()?, next()?);
    let decimal = |digits: &str| format!("`{digits}` is not a decimal number");
    let think = think.parse().map_err(|_| decimal(think))?;
    let thread: usize = thread.parse().map_err(|_| decimal(thread))?;
    if thread > places.len() {
        return Err(format!(
            "thread {thread} comes before thread {}",
            places.len()
        ));
    }
    if thread == places.len() {
        places.push(0);
    }
    let (what, at) = (next()?, next()?);
    let place = shifted(places[thread], at)?;
    places[thread] = place;
    let call = call(what, place, &fields.collect::<Vec<_>>())?;
    Ok(Event {
        thread,
        think,
        call,
    })
}

/// The page at this difference.
fn shifted(from: u64, difference: &str) -> Result<u64, String> {
    let (sign, digits) = difference.split_at_checked(1).unwrap_or(("", ""));
    let to = match (sign, hex(digits)) {
        (_, Ok(_)) if digits.is_empty() => None,
        ("+", Ok(pages)) => from.checked_add(pages),
        ("-", Ok(pages)) => from.checked_sub(pages),
        _ => None,
    };
    page(to.ok_or_else(|| format!("`{difference}` is not a difference of pages"))?)
}

fn call(what: &str, start: u64, fields: &[&str]) -> Result<Call, String> {
    Ok(match (what, fields) {
        ("m", [pages, allowed, flags, file @ ..]) => Call::Map(Map {
            start,
            pages: extent(start, pages)?,
            protection: protection(allowed)?,
            flags: small(flags)?,
            backing: backing(file)?,
        }),
        ("u", [pages]) => Call::Unmap {
            start,
            pages: extent(start, pages)?,
        },
        ("p", [pages, allowed]) => Call::Protect {
            start,
            pages: extent(start, pages)?,
            protection: protection(allowed)?,
        },
        ("b", []) => Call::Break { end: start },
        ("a", [pages, advice]) => Call::Advise {
            start,
            pages: extent(start, pages)?,
            advice: small(advice)?,
        },
        ("r", [pages, grown, there]) => {
            let to = shifted(start, there)?;
            let (pages, grown) = (extent(start, pages)?, extent(to, grown)?);
            Call::Remap(Remap {
                from: start,
                pages,
                start: to,
                grown,
            })
        }
        ("f", [access]) => match protection(access)? {
            access if access.is_power_of_two() => Call::Fault {
                page: start,
                access,
            },
            _ => return Err("a fault is one access".to_owned()),
        },
        _ => {
            return Err(format!(
                "`{what}` with {} numbers is no event",
                fields.len()
            ));
        }
    })
}
