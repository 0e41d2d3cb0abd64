//! What the server does for the kernel's requests, in the store and in the table of nodes.

use crate::convert::{attributes_of, errno, id_of, nanoseconds, type_of};
use crate::nodes::Known;
use crate::server::{Server, VALID};
use fuser::{
    Errno, FileType, Generation, INodeNo, RenameFlags, ReplyData, ReplyEmpty, ReplyEntry, Request,
    TimeOrNow, WriteFlags,
};
use spanlock_structures::store::{Error, Kind, MAX_NAME, NewNode, Stat};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, PoisonError};

/// An entry of a directory, as it was when the directory was read from its beginning.
pub(crate) type Listed = (Vec<u8>, u64, FileType);

impl Server {
    /// Does something that may need space, of which some may be about to become free.
    fn with_room<T>(&self, act: impl Fn() -> Result<T, Error>) -> Result<T, Errno> {
        let departures = &self.nodes.departures;
        departures.with_room(|| act().map_err(|error| errno(&error)))
    }

    pub(crate) fn lookup_name(&self, parent: INodeNo, name: &OsStr) -> Result<Stat, Errno> {
        if name.len() > MAX_NAME {
            return Err(Errno::ENAMETOOLONG);
        }
        let parent = self.nodes.get(parent.0)?.live()?;
        let found = self.store.lookup(parent, name.as_bytes());
        found.map_err(|error| errno(&error))
    }

    pub(crate) fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mut node: NewNode,
    ) -> Result<Stat, Errno> {
        let parent = self.nodes.get(parent.0)?.live()?;
        (node.uid, node.gid) = (request.uid(), request.gid());
        let above = self.store.stat_of(parent);
        let above = above.map_err(|error| errno(&error))?.attributes;
        if above.mode & libc::S_ISGID != 0 {
            node.gid = above.gid;
            if node.kind == Kind::Directory {
                node.mode |= libc::S_ISGID;
            }
        }
        self.with_room(|| self.store.make_node(parent, name.as_bytes(), node.clone()))
    }

    pub(crate) fn entry(&self, found: Result<Stat, Errno>, reply: ReplyEntry) {
        let told = found.and_then(|stat| self.nodes.tell(&self.store, &stat).map(|()| stat));
        match told {
            Ok(stat) => reply.entry(&VALID, &attributes_of(&stat), Generation(stat.generation)),
            Err(error) => reply.error(error),
        }
    }

    pub(crate) fn set(
        &self,
        known: &Known,
        mode: Option<u32>,
        owners: (Option<u32>, Option<u32>),
        size: Option<u64>,
        times: (Option<TimeOrNow>, Option<TimeOrNow>),
    ) -> Result<Stat, Errno> {
        if let Some(size) = size {
            let file = known.file()?;
            self.with_room(|| file.truncate(size))?;
        }
        let (accessed, modified) = (times.0.map(nanoseconds), times.1.map(nanoseconds));
        let is_more = mode.is_some() || owners != (None, None);
        if is_more || accessed.is_some() || modified.is_some() {
            known.set(&self.store, now(), |set| {
                set.mode = mode.map_or(set.mode, |mode| set.mode & !0o7777 | mode & 0o7777);
                set.uid = owners.0.unwrap_or(set.uid);
                set.gid = owners.1.unwrap_or(set.gid);
                set.accessed = accessed.unwrap_or(set.accessed);
                set.modified = modified.unwrap_or(set.modified);
            })?;
        }
        known.stat(&self.store)
    }

    pub(crate) fn remove(&self, parent: INodeNo, name: &OsStr, kind: Kind) -> Result<(), Errno> {
        let removed = self.lookup_name(parent, name)?;
        let parent = self.nodes.get(parent.0)?.live()?;
        let name = name.as_bytes();
        let done = match kind {
            Kind::Directory => self.store.remove_directory(parent, name),
            _ => self.store.unlink_name(parent, name),
        };
        done.map_err(|error| errno(&error))?;
        self.nodes.unnamed(&removed, now());
        Ok(())
    }

    pub(crate) fn rename_name(
        &self,
        (from, name): (INodeNo, &OsStr),
        (to, new_name): (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        if flags == RenameFlags::RENAME_EXCHANGE {
            let (from, to) = (
                self.nodes.get(from.0)?.live()?,
                self.nodes.get(to.0)?.live()?,
            );
            let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
            return self.with_room(|| self.store.exchange_nodes(from, name, to, new_name));
        }
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            return Err(Errno::EINVAL);
        }
        let moved = self.lookup_name(from, name)?;
        // The kernel keeps others from changing either directory meanwhile.
        let replaced = self.lookup_name(to, new_name).ok();
        if replaced.is_some() && !flags.is_empty() {
            return Err(Errno::EEXIST);
        }
        let (from, to) = (
            self.nodes.get(from.0)?.live()?,
            self.nodes.get(to.0)?.live()?,
        );
        let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
        self.with_room(|| self.store.rename_node(from, name, to, new_name))?;
        if let Some(replaced) = replaced.filter(|replaced| replaced.ino != moved.ino) {
            self.nodes.unnamed(&replaced, now());
        }
        Ok(())
    }

    pub(crate) fn list(&self, known: &Known) -> Result<Vec<Listed>, Errno> {
        let own = known.stat(&self.store)?;
        let mut listed = vec![(b".".to_vec(), id_of(&own), FileType::Directory)];
        let Ok(ino) = known.live() else {
            return Ok(listed);
        };
        let stat_of = |ino| self.store.stat_of(ino).map_err(|error| errno(&error));
        let above = self.store.parent(ino).map_err(|error| errno(&error))?;
        listed.push((b"..".to_vec(), id_of(&stat_of(above)?), FileType::Directory));
        let entries = self.store.entries(ino, b"");
        for entry in entries.map_err(|error| errno(&error))? {
            // What was removed just now is left out.
            if let Ok(stat) = stat_of(entry.ino) {
                let kind = type_of(stat.kind, stat.attributes.mode);
                listed.push((entry.name, id_of(&stat), kind));
            }
        }
        Ok(listed)
    }

    pub(crate) fn listing(
        &self,
        ino: INodeNo,
        handle: u64,
        offset: u64,
    ) -> Result<Arc<Vec<Listed>>, Errno> {
        let lock = || {
            self.directories
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if offset > 0 {
            return lock().get(&handle).map(Arc::clone).ok_or(Errno::EBADF);
        }
        let known = self.nodes.get(ino.0)?;
        let listed = Arc::new(self.list(&known)?);
        lock().insert(handle, Arc::clone(&listed));
        Ok(listed)
    }

    pub(crate) fn write_file(
        &self,
        ino: INodeNo,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
    ) -> Result<u32, Errno> {
        let known = self.nodes.get(ino.0)?;
        let file = known.file()?;
        let written = self.with_room(|| file.write_at(data, offset))?;
        if flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            let mode = known.stat(&self.store)?.attributes.mode;
            let cleared = without_privileges(mode);
            if cleared != mode {
                known.set(&self.store, now(), |set| set.mode = cleared)?;
                if let Some(kernel) = self.kernel.get() {
                    // It keeps attributes, and a program must not run with privileges that are gone. No data with it;
                    // where it fails, the kernel does not know the file.
                    let _ = kernel.inval_inode(ino, -1, 0);
                }
            }
        }
        u32::try_from(written).map_err(|_| Errno::EIO)
    }

    pub(crate) fn link_name(
        &self,
        ino: INodeNo,
        parent: INodeNo,
        name: &OsStr,
    ) -> Result<Stat, Errno> {
        let ino = self.nodes.get(ino.0)?.live()?;
        let parent = self.nodes.get(parent.0)?.live()?;
        self.with_room(|| self.store.link_node(ino, parent, name.as_bytes()))?;
        self.store.stat_of(ino).map_err(|error| errno(&error))
    }

    pub(crate) fn read_file(&self, ino: INodeNo, offset: u64, size: usize, reply: ReplyData) {
        thread_local! {
            static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            let read = self.nodes.get(ino.0).and_then(|known| {
                let read = known.file()?.read_at(&mut buffer[..size], offset);
                read.map_err(|error| errno(&error))
            });
            match read {
                Ok(length) => reply.data(&buffer[..length]),
                Err(error) => reply.error(error),
            }
        });
    }

    pub(crate) fn sync(&self, reply: ReplyEmpty) {
        match self.store.sync() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }
}

/// What is left of a mode after a write by somebody without the privilege to keep it.
fn without_privileges(mode: u32) -> u32 {
    let group = libc::S_ISGID | libc::S_IXGRP;
    let cleared = match mode & group == group {
        true => libc::S_ISUID | libc::S_ISGID,
        false => libc::S_ISUID,
    };
    mode & !cleared
}

fn now() -> i64 {
    nanoseconds(TimeOrNow::Now)
}
