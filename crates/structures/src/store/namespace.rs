//! Operations on directories, by inode.

use crate::store::clean::Part;
use crate::store::error::{Error, Result};
use crate::store::file::File;
use crate::store::format::tree as tree_format;
use crate::store::inode::Inode;
use crate::store::log::Stem;
use crate::store::medium::Medium;
use crate::store::open::{Names, Opened, Shared, Store};
use crate::store::recover::tree_drafts;
use crate::store::tree::{Attributes, Change, Entry, Ino, Kind, NewNode, Node, Stat};
use spanlock::range::raw::RawRangeLock;
use std::sync::Arc;

impl<M: Medium, L: RawRangeLock> Store<M, L> {
    /// What a name in a directory names.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`].
    pub fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Stat> {
        let names = self.shared.names.read();
        let ino = names.tree.lookup(parent, name)?;
        self.shared.stat(&names, ino)
    }

    /// What is known of a node.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn stat_of(&self, ino: Ino) -> Result<Stat> {
        self.shared.stat(&self.shared.names.read(), ino)
    }

    /// The entries of a directory whose names come after `after`, in the order of their bytes. The directory itself and
    /// the one above are not among them.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`].
    pub fn entries(&self, ino: Ino, after: &[u8]) -> Result<Vec<Entry>> {
        self.shared.names.read().tree.entries(ino, after)
    }

    /// The directory above.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`].
    pub fn parent(&self, ino: Ino) -> Result<Ino> {
        let names = self.shared.names.read();
        let node = names.tree.node(ino)?;
        match node.kind {
            Kind::Directory => Ok(node.parent),
            _ => Err(Error::NotDirectory),
        }
    }

    /// Where a symbolic link points.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Invalid`] when it is no symbolic link.
    pub fn target(&self, ino: Ino) -> Result<Vec<u8>> {
        let names = self.shared.names.read();
        let node = names.tree.node(ino)?;
        match node.kind {
            Kind::Symlink => Ok(node.target.clone()),
            _ => Err(Error::Invalid("not a symbolic link")),
        }
    }

    /// Makes a node with a name.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NotFound`], [`Error::NotDirectory`], [`Error::Invalid`], [`Error::NameTooLong`];
    /// [`Error::NoSpace`], [`Error::Poisoned`].
    pub fn make_node(&self, parent: Ino, name: &[u8], node: NewNode) -> Result<Stat> {
        let shared = &self.shared;
        shared.core.check()?;
        let generation = shared.core.generation()?;
        let ino = shared.core.take_inode()?;
        let kind = node.kind;
        let mut names = shared.names.write();
        let name = name.to_vec();
        let change = Change::Node {
            parent,
            name,
            ino,
            generation,
            node,
        };
        if let Err(error) = shared.change(&mut names, &change) {
            drop(names);
            shared.core.give_back_inode(ino);
            return Err(error);
        }
        if kind == Kind::File {
            let inode = Arc::new(Inode::new((shared.new_lock)(), ino, generation));
            let (handles, nameless) = (0, false);
            shared.files.lock().insert(
                ino,
                Opened {
                    inode,
                    handles,
                    nameless,
                },
            );
        }
        let stat = shared.stat(&names, ino);
        drop(names);
        shared.core.finish()?;
        stat
    }

    /// Gives a node a further name.
    ///
    /// # Errors
    /// As [`make_node`](Self::make_node); [`Error::IsDirectory`].
    pub fn link_node(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<()> {
        let name = name.to_vec();
        self.alter(|_| Ok(Change::Link { parent, name, ino }))
    }

    /// Removes a name of something that is no directory. The last takes the node with it, once nobody has it open.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::IsDirectory`], [`Error::NoSpace`], [`Error::Poisoned`].
    pub fn unlink_name(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.alter(|names| match names.kind_of(parent, name)? {
            Kind::Directory => Err(Error::IsDirectory),
            _ => Ok(Change::Unlink {
                parent,
                name: name.to_vec(),
            }),
        })
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`Error::NotEmpty`], [`Error::NotFound`], [`Error::NotDirectory`], [`Error::NoSpace`], [`Error::Poisoned`].
    pub fn remove_directory(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.alter(|names| match names.kind_of(parent, name)? {
            Kind::Directory => Ok(Change::Unlink {
                parent,
                name: name.to_vec(),
            }),
            _ => Err(Error::NotDirectory),
        })
    }

    /// Gives a node another name, in one step. What had the new name before loses it.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::IsDirectory`], [`Error::NotEmpty`]; [`Error::Invalid`]
    /// when a directory would be moved into itself; [`Error::NoSpace`], [`Error::Poisoned`].
    pub fn rename_node(&self, from: Ino, name: &[u8], to: Ino, new_name: &[u8]) -> Result<()> {
        let (name, new_name) = (name.to_vec(), new_name.to_vec());
        self.alter(|_| {
            Ok(Change::Rename {
                from,
                name,
                to,
                new_name,
            })
        })
    }

    /// Exchanges what two names name, in one step.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`]; [`Error::Invalid`] when a directory would be moved into itself;
    /// [`Error::NoSpace`], [`Error::Poisoned`].
    pub fn exchange_nodes(&self, from: Ino, name: &[u8], to: Ino, new_name: &[u8]) -> Result<()> {
        let places = [(from, name.to_vec()), (to, new_name.to_vec())];
        self.alter(|_| Ok(Change::Exchange(places)))
    }

    /// Sets attributes of a node: `set` gets those that it has. Of a file, it waits for the writes that are under way.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NoSpace`], [`Error::Poisoned`].
    pub fn set_attributes(&self, ino: Ino, set: impl FnOnce(&mut Attributes)) -> Result<()> {
        let shared = &self.shared;
        let file = shared
            .files
            .lock()
            .get(&ino)
            .map(|file| Arc::clone(&file.inode));
        // [attributes-wait]
        let waits = file.as_ref().filter(|_| prim::intact!("attributes-wait"));
        let _no_write = waits.map(|file| file.write_nothing());
        self.alter(|names| {
            let mut attributes = shared.stat(names, ino)?.attributes;
            // Clocks are set back, and then what is set now would count as older than the last write.
            attributes.changed = shared.core.now().max(attributes.changed);
            set(&mut attributes);
            Ok(Change::Attributes {
                ino,
                set: attributes,
            })
        })
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::IsDirectory`]; [`Error::Unsupported`] for what is neither.
    pub fn open_node(&self, ino: Ino) -> Result<File<M, L>> {
        let kind = self.shared.names.read().tree.node(ino)?.kind;
        match kind {
            Kind::File => {}
            Kind::Directory => return Err(Error::IsDirectory),
            Kind::Symlink | Kind::Special => {
                return Err(Error::Unsupported("only files can be opened"));
            }
        }
        let mut files = self.shared.files.lock();
        let file = files.get_mut(&ino).ok_or(Error::NotFound)?;
        file.handles += 1;
        Ok(File {
            shared: Arc::clone(&self.shared),
            inode: Arc::clone(&file.inode),
        })
    }

    /// Makes a change of directories.
    fn alter(&self, change: impl FnOnce(&Names) -> Result<Change>) -> Result<()> {
        let shared = &self.shared;
        shared.core.check()?;
        let mut names = shared.names.write();
        let change = change(&names)?;
        shared.change(&mut names, &change)?;
        drop(names);
        shared.core.finish()
    }
}

impl Names {
    fn kind_of(&self, parent: Ino, name: &[u8]) -> Result<Kind> {
        let ino = self.tree.lookup(parent, name)?;
        Ok(self.tree.node(ino)?.kind)
    }
}

impl<M: Medium, L: RawRangeLock> Shared<M, L> {
    /// Checks a change, logs it, and makes it.
    fn change(&self, names: &mut Names, change: &Change) -> Result<()> {
        names.tree.check(change)?;
        if !matches!(change, Change::Unlink { .. }) {
            self.core.leave_reserve()?;
        }
        let now = self.core.now();
        self.log_change(names, change, now)?;
        if let Some((ino, node)) = names.tree.apply(change, now) {
            self.nameless(ino, &node);
        }
        match self.tree_log.is_long(&self.core) {
            true => self.rewrite_tree(names),
            false => Ok(()),
        }
    }

    fn log_change(&self, names: &mut Names, change: &Change, now: i64) -> Result<()> {
        // [rename-once] A crash between two entries would leave two names, or none.
        if let Change::Rename {
            from,
            name,
            to,
            new_name,
        } = change
            && !prim::intact!("rename-once")
            && names.kind_of(*from, name)? != Kind::Directory
        {
            if names.tree.lookup(*to, new_name).is_ok() {
                let (parent, name) = (*to, new_name.clone());
                self.log_entry(names, &Change::Unlink { parent, name }, now)?;
            }
            let ino = names.tree.lookup(*from, name)?;
            let (parent, name, new_name) = (*from, name.clone(), new_name.clone());
            self.log_entry(
                names,
                &Change::Link {
                    parent: *to,
                    name: new_name,
                    ino,
                },
                now,
            )?;
            return self.log_entry(names, &Change::Unlink { parent, name }, now);
        }
        self.log_entry(names, change, now)
    }

    fn log_entry(&self, names: &mut Names, change: &Change, now: i64) -> Result<()> {
        let (mut head, payload) = tree_format::encode(change, now);
        (head.epoch, head.number) = (self.core.epoch, names.number);
        self.tree_log
            .append(&self.core, Stem::Slot, &head, &payload)?;
        names.number = names.number.wrapping_add(1);
        Ok(())
    }

    /// Rewrites the directories' log as what they are now. The caller keeps others from changing them.
    fn rewrite_tree(&self, names: &mut Names) -> Result<()> {
        let old = self.tree_log.tail.lock().pages.clone();
        let mut number = names.number;
        let drafts = tree_drafts(&names.tree, &mut number, &self.core);
        let rewritten = self.tree_log.rewrite(&self.core, &old, Part::All, &drafts);
        let mut tail = self.tree_log.tail.lock();
        match rewritten {
            Ok(()) => names.number = number,
            // A full store keeps its long log.
            Err(Error::NoSpace) => tail.after_rewriting = tail.pages.len(),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The last name of a node is gone.
    fn nameless(&self, ino: Ino, node: &Node) {
        if node.kind != Kind::File {
            return self.core.free_inode(ino);
        }
        let mut files = self.files.lock();
        if let Some(file) = files.get_mut(&ino) {
            file.nameless = true;
            self.free_if_unused(&mut files, ino);
        }
    }

    fn free_if_unused(&self, files: &mut std::collections::HashMap<Ino, Opened<L>>, ino: Ino) {
        if files
            .get(&ino)
            .is_some_and(|file| file.nameless && file.handles == 0)
            && let Some(file) = files.remove(&ino)
        {
            file.inode.free(&self.core);
            self.core.free_inode(ino);
        }
    }

    /// A further handle of an open file.
    pub(crate) fn open_again(&self, ino: Ino) {
        if let Some(file) = self.files.lock().get_mut(&ino) {
            file.handles += 1;
        }
    }

    /// A handle less.
    pub(crate) fn close_one(&self, ino: Ino) {
        let mut files = self.files.lock();
        if let Some(file) = files.get_mut(&ino) {
            file.handles -= 1;
        }
        self.free_if_unused(&mut files, ino);
    }

    fn stat(&self, names: &Names, ino: Ino) -> Result<Stat> {
        let node = names.tree.node(ino)?;
        let mut stat = Stat {
            ino,
            generation: node.generation,
            kind: node.kind,
            size: node.target.len() as u64,
            pages: 0,
            links: names.tree.links(node),
            device: node.device,
            attributes: node.attributes,
        };
        if let Some(file) = self.files.lock().get(&ino) {
            file.inode.complete(&mut stat);
        }
        Ok(stat)
    }

    /// What is known of an open file, which may have no name any more.
    pub(crate) fn stat_open(&self, inode: &Inode<L>, ino: Ino) -> Stat {
        let names = self.names.read();
        self.stat(&names, ino).unwrap_or_else(|_| {
            let zero = NewNode::of(Kind::File, 0);
            let mut stat = Stat {
                ino,
                generation: 0,
                kind: zero.kind,
                size: 0,
                pages: 0,
                links: 0,
                device: 0,
                attributes: Attributes {
                    mode: 0,
                    uid: 0,
                    gid: 0,
                    accessed: 0,
                    modified: 0,
                    changed: 0,
                },
            };
            inode.complete(&mut stat);
            stat
        })
    }
}
