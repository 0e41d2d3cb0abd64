//! What the kernel asks for, and how the store answers.

use crate::convert::{attributes_of, errno, kind_of};
use crate::keeper::{Keeper, Patience, Request as LockRequest, asked};
use crate::nodes::Nodes;
use crate::operations::Listed;
use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, Notifier, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLock, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use spanlock::range::Span;
use spanlock_structures::store::{Kind, MAX_NAME, NewNode, PAGE, ROOT, Store};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// How long the kernel may keep what it was told: as libfuse has it. The kernel makes all changes, so it knows them.
pub(crate) const VALID: Duration = Duration::from_secs(1);

/// The most that the kernel sends in one request to write: as much as its buffers of 256 pages have room for.
pub(crate) const MAX_WRITE: u32 = 1 << 20;

/// Files bypass the kernel's cache, and the kernel lets several writers of one file through.
pub(crate) const OPENED: FopenFlags =
    FopenFlags::FOPEN_DIRECT_IO.union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);

/// A store, as the kernel sees it.
pub(crate) struct Server {
    pub(crate) store: Arc<Store>,
    pub(crate) nodes: Nodes,
    /// Tells the kernel what has changed without its doing. Known once it has mounted.
    pub(crate) kernel: Arc<OnceLock<Notifier>>,
    keeper: Keeper,
    /// Open directories.
    pub(crate) directories: Mutex<HashMap<u64, Arc<Vec<Listed>>>>,
    handles: AtomicU64,
}

impl Server {
    pub(crate) fn new(store: Arc<Store>, threads: NonZeroUsize) -> io::Result<Self> {
        Ok(Self {
            store,
            nodes: Nodes::new(threads),
            kernel: Arc::default(),
            keeper: Keeper::start()?,
            directories: Mutex::default(),
            handles: AtomicU64::new(1),
        })
    }

    fn handle(&self) -> FileHandle {
        FileHandle(self.handles.fetch_add(1, Ordering::Relaxed))
    }
}

fn done(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Server {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let root = self.store.stat_of(ROOT).map_err(io::Error::other)?;
        let told = self.nodes.tell(&self.store, &root);
        told.map_err(|error| io::Error::from_raw_os_error(error.code()))?;
        let wanted = InitFlags::FUSE_POSIX_LOCKS
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        // An older kernel has fewer of them, and then keeps locks itself or refuses shared mappings.
        let there = wanted & config.capabilities();
        let set = config.add_capabilities(there).is_ok() && config.set_max_write(MAX_WRITE).is_ok();
        match set {
            true => Ok(()),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn destroy(&mut self) {
        self.nodes.clear();
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(self.lookup_name(parent, name), reply);
    }

    fn forget(&self, _request: &Request, ino: INodeNo, nlookup: u64) {
        self.nodes.forget(ino.0, nlookup);
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        let known = self.nodes.get(ino.0);
        match known.and_then(|known| known.stat(&self.store)) {
            Ok(stat) => reply.attr(&VALID, &attributes_of(&stat)),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let known = self.nodes.get(ino.0);
        let set = known.and_then(|known| self.set(&known, mode, (uid, gid), size, (atime, mtime)));
        match set {
            Ok(stat) => reply.attr(&VALID, &attributes_of(&stat)),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        let known = self.nodes.get(ino.0).and_then(|known| known.live());
        match known.and_then(|ino| self.store.target(ino).map_err(|error| errno(&error))) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let kind = kind_of(mode);
        let kept = match kind {
            Kind::Special => mode,
            _ => mode & 0o7777,
        };
        let node = NewNode {
            device: rdev,
            ..NewNode::of(kind, kept)
        };
        self.entry(self.make(request, parent, name, node), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let node = NewNode::of(Kind::Directory, mode & 0o7777);
        self.entry(self.make(request, parent, name, node), reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(self.remove(parent, name, Kind::File), reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(self.remove(parent, name, Kind::Directory), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let node = NewNode {
            target: target.as_os_str().as_bytes().to_vec(),
            ..NewNode::of(Kind::Symlink, 0o777)
        };
        self.entry(self.make(request, parent, name, node), reply);
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        done(
            self.rename_name((parent, name), (newparent, newname), flags),
            reply,
        );
    }

    fn link(
        &self,
        _request: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        self.entry(self.link_name(ino, newparent, newname), reply);
    }

    fn open(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let known = self.nodes.get(ino.0);
        match known.and_then(|known| known.file().map(|_| ())) {
            Ok(()) => reply.opened(self.handle(), OPENED),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let node = NewNode::of(Kind::File, mode & 0o7777);
        let made = self.make(request, parent, name, node);
        let told = made.and_then(|stat| self.nodes.tell(&self.store, &stat).map(|()| stat));
        match told {
            Ok(stat) => reply.created(
                &VALID,
                &attributes_of(&stat),
                Generation(stat.generation),
                self.handle(),
                OPENED,
            ),
            Err(error) => reply.error(error),
        }
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
        self.read_file(ino, offset, size as usize, reply);
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.write_file(ino, offset, data, write_flags) {
            Ok(written) => reply.written(written),
            Err(error) => reply.error(error),
        }
    }

    /// A process closes a file. That ends all its locks of the file, whatever it set them through.
    fn flush(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.nodes.closed(ino.0);
        if self.keeper.is_idle() {
            return reply.ok();
        }
        self.keeper.serve(LockRequest::Clear {
            file: ino.0,
            owner: lock_owner.0,
            span: Span::ALL,
            reply,
        });
    }

    /// The last process has closed an open file. That ends the locks that belong to the open file.
    fn release(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if self.keeper.is_idle() {
            return reply.ok();
        }
        self.keeper.serve(LockRequest::Closed {
            file: ino.0,
            handle: handle.0,
            reply,
        });
    }

    fn fsync(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.sync(reply);
    }

    fn opendir(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(self.handle(), FopenFlags::empty());
    }

    fn readdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = match self.listing(ino, handle.0, offset) {
            Ok(listed) => listed,
            Err(error) => return reply.error(error),
        };
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        for (index, (name, id, kind)) in listed.iter().enumerate().skip(begin) {
            if reply.add(
                INodeNo(*id),
                index as u64 + 1,
                *kind,
                OsStr::from_bytes(name),
            ) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        let directories = self.directories.lock();
        directories
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&handle.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.sync(reply);
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let space = self.store.status().space;
        let free = space.free + space.free_at_sync;
        let page = u32::try_from(PAGE).expect("4096");
        let longest_name = u32::try_from(MAX_NAME).expect("255");
        reply.statfs(
            space.pages,
            free,
            free,
            space.inodes,
            space.free_inodes,
            page,
            longest_name,
            page,
        );
    }

    /// Asked when the kernel does not check permissions itself, since one user alone has access.
    fn access(&self, _request: &Request, _ino: INodeNo, _mask: AccessFlags, reply: ReplyEmpty) {
        reply.ok();
    }

    fn getlk(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        let asked = asked(handle, lock_owner, (start, end), typ, pid);
        match asked.parse() {
            Ok((_, Some(lock))) => self.keeper.serve(LockRequest::Test {
                file: ino.0,
                lock,
                reply,
            }),
            Ok((_, None)) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(error),
        }
    }

    fn setlk(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let asked = asked(handle, lock_owner, (start, end), typ, pid);
        let patience = match sleep {
            true => Patience::Wait(request.pid()),
            false => Patience::None,
        };
        let (file, owner) = (ino.0, lock_owner.0);
        let request = match asked.parse() {
            Ok((_, Some(lock))) => LockRequest::Set {
                file,
                lock,
                patience,
                reply,
            },
            Ok((span, None)) => LockRequest::Clear {
                file,
                owner,
                span,
                reply,
            },
            Err(error) => return reply.error(error),
        };
        self.keeper.serve(request);
    }
}
