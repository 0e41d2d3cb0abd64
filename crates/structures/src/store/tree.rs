//! Directories in memory, and the changes that entries of their log describe.
//!
//! All directories share one log, that of the root's inode. So an operation on two directories is one entry, and needs
//! no journal. The number of links of a node is not stored: it follows from the names.

use crate::store::error::{Error, Result};
use std::collections::{BTreeMap, HashMap};

/// The number of a node. Another node may get it once the last name of this one is gone and nobody has it open: who
/// keeps a number for longer compares [`Stat::generation`].
pub type Ino = u64;

/// The node that all paths begin at.
pub const ROOT: Ino = 1;

/// The longest name of a file or directory, in bytes.
pub const MAX_NAME: usize = 255;

/// The longest target of a symbolic link: an entry has room for it, whatever the name.
pub(crate) const MAX_TARGET: usize = 3072;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A pipe, a socket or a device, which the store names only.
    Special,
}

impl Kind {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::File => 1,
            Self::Directory => 2,
            Self::Symlink => 3,
            Self::Special => 4,
        }
    }

    pub(crate) fn of(code: u8) -> Option<Self> {
        let all = [Self::File, Self::Directory, Self::Symlink, Self::Special];
        all.into_iter().find(|kind| kind.code() == code)
    }
}

/// What is set when a node is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNode {
    /// What it is.
    pub kind: Kind,
    /// Permissions. The store keeps them and does not enforce them. For special nodes, the type's bits as well.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The number of a device.
    pub device: u32,
    /// Where a symbolic link points.
    pub target: Vec<u8>,
}

impl NewNode {
    /// A node of the user 0, without a target.
    #[must_use]
    pub fn of(kind: Kind, mode: u32) -> Self {
        Self {
            kind,
            mode,
            uid: 0,
            gid: 0,
            device: 0,
            target: Vec::new(),
        }
    }
}

/// What can be set for a node later. Times are nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Permissions.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// When it was last read. The store sets it when it is told to only.
    pub accessed: i64,
    /// When its content last changed.
    pub modified: i64,
    /// When anything of it last changed.
    pub changed: i64,
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Its number.
    pub ino: Ino,
    /// The number's generation: no two nodes have the same pair.
    pub generation: u64,
    /// What it is.
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    /// Pages that it occupies, its log's not included. Beside a truncation and a write it may be the sum of pages that
    /// were there one after the other.
    pub pages: u64,
    /// Names; for a directory, two and its sub-directories.
    pub links: u32,
    /// The number of a device.
    pub device: u32,
    /// The rest.
    pub attributes: Attributes,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name.
    pub name: Vec<u8>,
    /// What it names.
    pub ino: Ino,
    /// What that is.
    pub kind: Kind,
}

/// A name in a directory.
pub(crate) type Place = (Ino, Vec<u8>);

/// A change of directories, as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A new node and its name.
    Node {
        parent: Ino,
        name: Vec<u8>,
        ino: Ino,
        generation: u64,
        node: NewNode,
    },
    /// A further name.
    Link {
        parent: Ino,
        name: Vec<u8>,
        ino: Ino,
    },
    /// A name less. The last takes the node with it.
    Unlink { parent: Ino, name: Vec<u8> },
    /// Another name, instead of what had that name before.
    Rename {
        from: Ino,
        name: Vec<u8>,
        to: Ino,
        new_name: Vec<u8>,
    },
    /// Two names change places.
    Exchange([Place; 2]),
    /// Other attributes.
    Attributes { ino: Ino, set: Attributes },
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) generation: u64,
    pub(crate) kind: Kind,
    pub(crate) device: u32,
    pub(crate) target: Vec<u8>,
    pub(crate) attributes: Attributes,
    /// Names; of directories, sub-directories.
    pub(crate) names: u32,
    /// Of directories.
    pub(crate) parent: Ino,
    /// Of directories.
    pub(crate) entries: BTreeMap<Vec<u8>, Ino>,
}

/// All directories.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) nodes: HashMap<Ino, Node>,
}

impl Tree {
    /// An empty root.
    pub(crate) fn new() -> Self {
        let node = NewNode::of(Kind::Directory, 0o755);
        let root = new_node(0, &node, ROOT, 0);
        Self {
            nodes: HashMap::from([(ROOT, root)]),
        }
    }

    pub(crate) fn node(&self, ino: Ino) -> Result<&Node> {
        self.nodes.get(&ino).ok_or(Error::NotFound)
    }

    fn directory(&self, ino: Ino) -> Result<&Node> {
        let node = self.node(ino)?;
        match node.kind {
            Kind::Directory => Ok(node),
            _ => Err(Error::NotDirectory),
        }
    }

    /// What a name in a directory names.
    pub(crate) fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Ino> {
        let directory = self.directory(parent)?;
        directory.entries.get(name).copied().ok_or(Error::NotFound)
    }

    /// The entries of a directory whose names come after `after`.
    pub(crate) fn entries(&self, ino: Ino, after: &[u8]) -> Result<Vec<Entry>> {
        let names = self
            .directory(ino)?
            .entries
            .range::<[u8], _>((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded));
        names
            .map(|(name, &ino)| {
                let kind = self.node(ino)?.kind;
                let name = name.clone();
                Ok(Entry { name, ino, kind })
            })
            .collect()
    }

    /// Whether the change is possible.
    ///
    /// # Errors
    /// What is in its way.
    pub(crate) fn check(&self, change: &Change) -> Result<()> {
        match change {
            Change::Node {
                parent,
                name,
                ino,
                node,
                ..
            } => {
                if node.target.len() > MAX_TARGET {
                    return Err(Error::NameTooLong);
                }
                if self.nodes.contains_key(ino) {
                    return Err(Error::Invalid("the inode is in use"));
                }
                self.check_free(*parent, name)
            }
            Change::Link { parent, name, ino } => {
                if self.node(*ino)?.kind == Kind::Directory {
                    return Err(Error::IsDirectory);
                }
                self.check_free(*parent, name)
            }
            Change::Unlink { parent, name } => {
                let node = self.node(self.lookup(*parent, name)?)?;
                match node.entries.is_empty() {
                    true => Ok(()),
                    false => Err(Error::NotEmpty),
                }
            }
            Change::Rename {
                from,
                name,
                to,
                new_name,
            } => {
                check_name(new_name)?;
                let moved = self.lookup(*from, name)?;
                let replaced = match self.lookup(*to, new_name) {
                    Err(Error::NotFound) => None,
                    found => Some(found?),
                };
                self.check_rename(moved, *to, replaced)
            }
            Change::Exchange(places) => self.check_exchange(places),
            Change::Attributes { ino, .. } => self.node(*ino).map(|_| ()),
        }
    }

    fn check_free(&self, parent: Ino, name: &[u8]) -> Result<()> {
        check_name(name)?;
        match self.lookup(parent, name) {
            Err(Error::NotFound) => Ok(()),
            Ok(_) => Err(Error::Exists),
            Err(error) => Err(error),
        }
    }

    fn check_rename(&self, moved: Ino, to: Ino, replaced: Option<Ino>) -> Result<()> {
        let is_directory = self.node(moved)?.kind == Kind::Directory;
        if is_directory {
            self.check_not_inside(moved, to)?;
        }
        let Some(replaced) = replaced.filter(|replaced| *replaced != moved) else {
            return Ok(());
        };
        let replaced = self.node(replaced)?;
        match (is_directory, replaced.kind == Kind::Directory) {
            (true, false) => Err(Error::NotDirectory),
            (false, true) => Err(Error::IsDirectory),
            _ if !replaced.entries.is_empty() => Err(Error::NotEmpty),
            _ => Ok(()),
        }
    }

    /// Makes a change that was [checked](Self::check). Returns the node whose last name is gone, which is no longer in
    /// the tree.
    pub(crate) fn apply(&mut self, change: &Change, time: i64) -> Option<(Ino, Node)> {
        match change {
            Change::Node {
                parent,
                name,
                ino,
                generation,
                node,
            } => {
                let new = new_node(*generation, node, *parent, time);
                self.nodes.insert(*ino, new);
                self.add(*parent, name, *ino, time);
                None
            }
            Change::Link { parent, name, ino } => {
                self.add(*parent, name, *ino, time);
                self.touch(*ino, time);
                None
            }
            Change::Unlink { parent, name } => self.remove(*parent, name, time),
            Change::Rename {
                from,
                name,
                to,
                new_name,
            } => {
                let moved = self.lookup(*from, name).ok()?;
                if self.lookup(*to, new_name).is_ok_and(|there| there == moved) {
                    return None; // Two names of one node: nothing changes, as rename(2) demands.
                }
                let replaced = self.remove(*to, new_name, time);
                // Added first: the last name of a node must not go.
                self.add(*to, new_name, moved, time);
                self.remove(*from, name, time);
                self.touch(moved, time);
                if let Some(node) = self.nodes.get_mut(&moved)
                    && node.kind == Kind::Directory
                {
                    node.parent = *to;
                }
                replaced
            }
            Change::Exchange(places) => {
                self.exchange(places, time);
                None
            }
            Change::Attributes { ino, set } => {
                if let Some(node) = self.nodes.get_mut(ino) {
                    node.attributes = *set;
                }
                None
            }
        }
    }

    fn add(&mut self, parent: Ino, name: &[u8], ino: Ino, time: i64) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.names += 1;
        }
        if let Some(directory) = self.nodes.get_mut(&parent) {
            directory.entries.insert(name.to_vec(), ino);
            directory.attributes.modified = time;
            directory.attributes.changed = time;
        }
    }

    fn remove(&mut self, parent: Ino, name: &[u8], time: i64) -> Option<(Ino, Node)> {
        let directory = self.nodes.get_mut(&parent)?;
        let ino = directory.entries.remove(name)?;
        directory.attributes.modified = time;
        directory.attributes.changed = time;
        self.touch(ino, time);
        let node = self.nodes.get_mut(&ino)?;
        node.names -= 1;
        match node.names {
            0 => self.nodes.remove(&ino).map(|node| (ino, node)),
            _ => None,
        }
    }

    fn touch(&mut self, ino: Ino, time: i64) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.attributes.changed = time;
        }
    }

    /// Links as `stat` counts them.
    pub(crate) fn links(&self, node: &Node) -> u32 {
        if node.kind != Kind::Directory {
            return node.names;
        }
        let kinds = node.entries.values().filter_map(|ino| self.nodes.get(ino));
        let directories = kinds.filter(|node| node.kind == Kind::Directory).count();
        u32::try_from(directories).map_or(u32::MAX, |count| count.saturating_add(2))
    }

    /// Changes that make this tree out of an empty one. The first is about the root.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let attributes = |ino: Ino, node: &Node| {
            let set = node.attributes;
            Change::Attributes { ino, set }
        };
        let root = &self.nodes[&ROOT];
        let (mut changes, mut last) = (vec![attributes(ROOT, root)], Vec::new());
        let mut seen = HashMap::from([(ROOT, ())]);
        let mut waiting = vec![ROOT];
        while let Some(parent) = waiting.pop() {
            let directory = &self.nodes[&parent];
            last.push(attributes(parent, directory));
            for (name, &ino) in &directory.entries {
                let (name, node) = (name.clone(), &self.nodes[&ino]);
                if seen.insert(ino, ()).is_some() {
                    changes.push(Change::Link { parent, name, ino });
                    continue;
                }
                let generation = node.generation;
                changes.push(Change::Node {
                    parent,
                    name,
                    ino,
                    generation,
                    node: again(node),
                });
                match node.kind {
                    Kind::Directory => waiting.push(ino),
                    _ => last.push(attributes(ino, node)),
                }
            }
        }
        changes.append(&mut last);
        changes
    }
}

/// What makes a node anew.
fn again(node: &Node) -> NewNode {
    NewNode {
        kind: node.kind,
        mode: node.attributes.mode,
        uid: node.attributes.uid,
        gid: node.attributes.gid,
        device: node.device,
        target: node.target.clone(),
    }
}

fn new_node(generation: u64, new: &NewNode, parent: Ino, time: i64) -> Node {
    Node {
        generation,
        kind: new.kind,
        device: new.device,
        target: new.target.clone(),
        attributes: Attributes {
            mode: new.mode,
            uid: new.uid,
            gid: new.gid,
            accessed: time,
            modified: time,
            changed: time,
        },
        names: 0,
        parent,
        entries: BTreeMap::new(),
    }
}

/// Whether a new name can be in a directory.
fn check_name(name: &[u8]) -> Result<()> {
    match name {
        [] | b"." | b".." => Err(Error::Invalid("no name for a file")),
        _ if name.len() > MAX_NAME => Err(Error::NameTooLong),
        _ if name.contains(&b'/') || name.contains(&0) => {
            Err(Error::Invalid("a name contains a slash or a zero byte"))
        }
        _ => Ok(()),
    }
}
