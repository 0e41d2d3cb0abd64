//! A mount that passes everything on to the files of another folder: what FUSE takes, whoever serves it.
//!
//! It has what programs need that read and write a few files: no folders, no links, no renaming.

use crate::mounted::{Error, configured, run, what_is_missing};
use crate::server::{MAX_WRITE, OPENED, VALID};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, TimeOrNow, WriteFlags,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

/// The files of a folder, mounted on another one.
pub struct Passthrough {
    session: Session<Below>,
}

impl Passthrough {
    /// Mounts the files of the folder `below` on another folder. Each of the threads serves one request at a time.
    ///
    /// # Errors
    /// When something is missing, or the kernel refuses.
    pub fn new(below: PathBuf, folder: &Path, threads: NonZeroUsize) -> Result<Self, Error> {
        if let Some(missing) = what_is_missing() {
            return Err(Error::Missing(missing));
        }
        let config = configured(&below.to_string_lossy(), "passthrough", threads);
        let below = Below {
            folder: below,
            files: RwLock::default(),
        };
        let session = Session::new(below, folder, &config);
        let session = session.map_err(Error::Mount)?;
        Ok(Self { session })
    }

    /// Serves until the folder is unmounted.
    ///
    /// # Errors
    /// When the kernel's messages cannot be read any more.
    pub fn serve(self) -> Result<(), Error> {
        run(self.session)
    }
}

impl fmt::Debug for Passthrough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passthrough").finish_non_exhaustive()
    }
}

/// What is below.
struct Below {
    folder: PathBuf,
    /// The files that the kernel knows, by their numbers there.
    files: RwLock<HashMap<u64, Arc<File>>>,
}

impl Below {
    fn file(&self, ino: INodeNo) -> io::Result<Arc<File>> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files
            .get(&ino.0)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens a file, and knows it from now on.
    fn tell(&self, name: &OsStr, options: &OpenOptions) -> io::Result<FileAttr> {
        let file = options.open(self.folder.join(name))?;
        let attributes = attributes_of(&file.metadata()?);
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files
            .entry(attributes.ino.0)
            .or_insert_with(|| Arc::new(file));
        Ok(attributes)
    }

    fn attributes(&self, ino: INodeNo) -> io::Result<FileAttr> {
        if ino == INodeNo::ROOT {
            let folder = attributes_of(&self.folder.metadata()?);
            return Ok(FileAttr { ino, ..folder });
        }
        Ok(attributes_of(&self.file(ino)?.metadata()?))
    }

    fn read_file(&self, ino: INodeNo, offset: u64, size: usize) -> io::Result<Vec<u8>> {
        let file = self.file(ino)?;
        let mut buffer = vec![0; size];
        let mut length = 0;
        while length < size {
            match file.read_at(&mut buffer[length..], offset + length as u64)? {
                0 => break,
                more => length += more,
            }
        }
        buffer.truncate(length);
        Ok(buffer)
    }
}

fn attributes_of(file: &Metadata) -> FileAttr {
    let changed = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    FileAttr {
        ino: INodeNo(file.ino()),
        size: file.size(),
        blocks: file.blocks(),
        atime: changed,
        mtime: changed,
        ctime: changed,
        crtime: changed,
        kind: match file.is_dir() {
            true => FileType::Directory,
            false => FileType::RegularFile,
        },
        perm: u16::try_from(file.mode() & 0o7777).expect("twelve bits"),
        nlink: u32::try_from(file.nlink()).unwrap_or(u32::MAX),
        uid: file.uid(),
        gid: file.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn existing() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

impl Filesystem for Below {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = InitFlags::FUSE_PARALLEL_DIROPS | InitFlags::FUSE_ASYNC_DIO;
        let there = wanted & config.capabilities();
        let set = config.add_capabilities(there).is_ok() && config.set_max_write(MAX_WRITE).is_ok();
        match set {
            true => Ok(()),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.tell(name, &existing()) {
            Ok(attributes) => reply.entry(&VALID, &attributes, Generation(0)),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        match self.attributes(ino) {
            Ok(attributes) => reply.attr(&VALID, &attributes),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let cut = size.map_or(Ok(()), |size| self.file(ino)?.set_len(size));
        match cut.and_then(|()| self.attributes(ino)) {
            Ok(attributes) => reply.attr(&VALID, &attributes),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), OPENED);
    }

    fn opendir(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn create(
        &self,
        _request: &Request,
        _parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        match self.tell(name, existing().create(true)) {
            Ok(attributes) => {
                reply.created(&VALID, &attributes, Generation(0), FileHandle(0), OPENED);
            }
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn unlink(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match std::fs::remove_file(self.folder.join(name)) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn forget(&self, _request: &Request, ino: INodeNo, _nlookup: u64) {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files.remove(&ino.0);
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.read_file(ino, offset, size as usize) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self
            .file(ino)
            .and_then(|file| file.write_all_at(data, offset));
        match written {
            Ok(()) => reply.written(u32::try_from(data.len()).expect("a request is small")),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        _data_alone: bool,
        reply: ReplyEmpty,
    ) {
        match self.file(ino).and_then(|file| file.sync_data()) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(Errno::from(error)),
        }
    }
}
