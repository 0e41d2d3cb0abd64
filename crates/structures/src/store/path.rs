//! Operations by path. Paths begin at the root, with or without a slash, and symbolic links are not followed.

use crate::store::error::{Error, Result};
use crate::store::file::File;
use crate::store::medium::Medium;
use crate::store::open::Store;
use crate::store::tree::{Entry, Ino, Kind, NewNode, ROOT, Stat};
use spanlock::range::raw::RawRangeLock;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

impl<M: Medium, L: RawRangeLock> Store<M, L> {
    /// The node of a path.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`].
    pub fn stat(&self, path: impl AsRef<Path>) -> Result<Stat> {
        let mut ino = ROOT;
        for name in names(path.as_ref())? {
            ino = self.lookup(ino, name)?.ino;
        }
        self.stat_of(ino)
    }

    /// Makes a file and opens it.
    ///
    /// # Errors
    /// As [`make_node`](Self::make_node).
    pub fn create(&self, path: impl AsRef<Path>, mode: u32) -> Result<File<M, L>> {
        let (parent, name) = self.parent_of(path.as_ref())?;
        let stat = self.make_node(parent, name, NewNode::of(Kind::File, mode))?;
        self.open_node(stat.ino)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// As [`open_node`](Self::open_node).
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File<M, L>> {
        self.open_node(self.stat(path)?.ino)
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// As [`make_node`](Self::make_node).
    pub fn mkdir(&self, path: impl AsRef<Path>, mode: u32) -> Result<()> {
        let (parent, name) = self.parent_of(path.as_ref())?;
        self.make_node(parent, name, NewNode::of(Kind::Directory, mode))
            .map(|_| ())
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As [`make_node`](Self::make_node).
    pub fn symlink(&self, target: impl AsRef<Path>, path: impl AsRef<Path>) -> Result<()> {
        let (parent, name) = self.parent_of(path.as_ref())?;
        let target = target.as_ref().as_os_str().as_bytes().to_vec();
        let node = NewNode {
            target,
            ..NewNode::of(Kind::Symlink, 0o777)
        };
        self.make_node(parent, name, node).map(|_| ())
    }

    /// Gives a file a further name.
    ///
    /// # Errors
    /// As [`link_node`](Self::link_node).
    pub fn link(&self, path: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<()> {
        let ino = self.stat(path)?.ino;
        let (parent, name) = self.parent_of(new.as_ref())?;
        self.link_node(ino, parent, name)
    }

    /// Removes a name of a file.
    ///
    /// # Errors
    /// As [`unlink_name`](Self::unlink_name).
    pub fn unlink(&self, path: impl AsRef<Path>) -> Result<()> {
        let (parent, name) = self.parent_of(path.as_ref())?;
        self.unlink_name(parent, name)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As [`remove_directory`](Self::remove_directory).
    pub fn rmdir(&self, path: impl AsRef<Path>) -> Result<()> {
        let (parent, name) = self.parent_of(path.as_ref())?;
        self.remove_directory(parent, name)
    }

    /// Gives a file or directory another name.
    ///
    /// # Errors
    /// As [`rename_node`](Self::rename_node).
    pub fn rename(&self, path: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<()> {
        let (from, name) = self.parent_of(path.as_ref())?;
        let (to, new_name) = self.parent_of(new.as_ref())?;
        self.rename_node(from, name, to, new_name)
    }

    /// The entries of a directory, in the order of their names.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    pub fn readdir(&self, path: impl AsRef<Path>) -> Result<Vec<Entry>> {
        self.entries(self.stat(path)?.ino, b"")
    }

    /// The directory that has the last name of a path, and that name.
    fn parent_of<'a>(&self, path: &'a Path) -> Result<(Ino, &'a [u8])> {
        let mut names = names(path)?;
        let name = names.pop().ok_or(Error::Invalid("the root has no name"))?;
        let mut parent = ROOT;
        for name in names {
            parent = self.lookup(parent, name)?.ino;
        }
        Ok((parent, name))
    }
}

/// The names in a path.
fn names(path: &Path) -> Result<Vec<&[u8]>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => names.push(name.as_bytes()),
            Component::ParentDir | Component::Prefix(_) => {
                return Err(Error::Invalid("a path in a store has no `..`"));
            }
        }
    }
    Ok(names)
}
