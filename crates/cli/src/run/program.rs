//! Which program is meant, and whether a library can be preloaded into it.

use crate::failure::{Failure, Result};
use object::Endianness;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use std::env;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file that a shell would run.
pub(super) fn find(program: &OsStr) -> Result<PathBuf> {
    let named = Path::new(program);
    if program.as_bytes().contains(&b'/') {
        return if named.exists() {
            Ok(named.to_owned())
        } else {
            Err(missing(format!("there is no {}", named.display())))
        };
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .map(|folder| folder.join(named))
        .find(|file| {
            file.metadata()
                .is_ok_and(|it| it.is_file() && is_executable(&it))
        });
    let name = named.display();
    found.ok_or_else(|| missing(format!("there is no program {name} in PATH")))
}

fn missing(why: String) -> Failure {
    Failure::Program { why, code: 127 }
}

/// The program is there, but not to be run.
pub(super) fn cannot_run(path: &Path, why: &dyn Display) -> Failure {
    Failure::cannot_preload(format!("cannot run {}: {why}", path.display()))
}

fn is_executable(file: &fs::Metadata) -> bool {
    file.mode() & 0o111 != 0
}

/// Says why a library cannot be preloaded into that file, if so.
pub(super) fn check(path: &Path) -> Result {
    let refuse = |why: &str| Err(cannot_run(path, &why));
    let read = |error: std::io::Error| cannot_run(path, &error);
    let metadata = path.metadata().map_err(read)?;
    if !metadata.is_file() {
        return refuse("it is not a file");
    }
    if !is_executable(&metadata) {
        return refuse("it is not executable");
    }
    const SETUID: u32 = 0o4000;
    const SETGID: u32 = 0o2000;
    let user = rustix::process::getuid().as_raw();
    let group = rustix::process::getgid().as_raw();
    let changes_user = metadata.mode() & SETUID != 0 && metadata.uid() != user;
    let changes_group = metadata.mode() & SETGID != 0 && metadata.gid() != group;
    if changes_user || changes_group {
        return refuse(
            "it is setuid or setgid, and the loader preloads nothing into such programs",
        );
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(read)?;
    if let Some(interpreter) = interpreter_of_script(&bytes) {
        return check(interpreter);
    }
    let loader = match loader(&bytes) {
        Ok(Some(loader)) => loader,
        Ok(None) => {
            return refuse("it is linked statically, so nothing can be preloaded into it");
        }
        Err(NotOurs) => return refuse("it is not a 64-bit program for this machine"),
    };
    if loader.starts_with(b"ld-linux") || loader.starts_with(b"ld64") {
        Ok(())
    } else {
        let why = format!(
            "its loader is {}, not glibc's, and the locks are glibc's",
            String::from_utf8_lossy(loader)
        );
        refuse(&why)
    }
}

/// The path after `#!`.
fn interpreter_of_script(bytes: &[u8]) -> Option<&Path> {
    let line = bytes
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let path = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    Some(Path::new(OsStr::from_bytes(path)))
}

/// A file that is no ELF file of this machine's.
struct NotOurs;

impl From<object::Error> for NotOurs {
    fn from(_: object::Error) -> Self {
        Self
    }
}

/// The name of the file that loads the program; `None` if that needs none.
fn loader(bytes: &[u8]) -> Result<Option<&[u8]>, NotOurs> {
    let machine = if cfg!(target_arch = "x86_64") {
        object::elf::EM_X86_64
    } else {
        object::elf::EM_AARCH64
    };
    let elf = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = elf.endian()?;
    if elf.e_machine(endian) != machine {
        return Err(NotOurs);
    }
    for header in elf.program_headers(endian, bytes)? {
        if header.p_type(endian) == PT_INTERP {
            let path = header.data(endian, bytes).map_err(|()| NotOurs)?;
            let path = path.strip_suffix(b"\0").unwrap_or(path);
            return Ok(path.rsplit(|&byte| byte == b'/').next());
        }
    }
    Ok(None)
}
