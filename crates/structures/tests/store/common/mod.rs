//! What the tests of the store share: operations, a model of what they do, and the comparison of both. The crash tests
//! of the package `spanlock-structures-sim` use it, too: the crate root says which store it is about, as `store`.

use crate::store::{Kind, Medium, PAGE, Store};
use spanlock_range::raw::RawRangeLock;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The lock library that the store is compiled with.
use crate::spanlock_range;

/// An operation. Writes fill their range with bytes that follow from the tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Op {
    Create(&'static str),
    Mkdir(&'static str),
    Write(&'static str, u64, usize, u8),
    Append(&'static str, usize, u8),
    Truncate(&'static str, u64),
    Link(&'static str, &'static str),
    Unlink(&'static str),
    Rmdir(&'static str),
    Rename(&'static str, &'static str),
    Sync,
}

/// What a write writes.
pub fn bytes(length: usize, tag: u8) -> Vec<u8> {
    (0..length)
        .map(|at| tag ^ (at / 61) as u8 ^ (at / PAGE) as u8 | 1)
        .collect()
}

/// Does it; whether it succeeded.
pub fn perform<M: Medium, L: RawRangeLock>(store: &Store<M, L>, op: &Op) -> bool {
    let result = match *op {
        Op::Create(path) => store.create(path, 0o644).map(drop),
        Op::Mkdir(path) => store.mkdir(path, 0o755),
        Op::Write(path, at, length, tag) => store
            .open_file(path)
            .and_then(|file| file.write_at(&bytes(length, tag), at).map(drop)),
        Op::Append(path, length, tag) => store
            .open_file(path)
            .and_then(|file| file.append(&bytes(length, tag)).map(drop)),
        Op::Truncate(path, size) => store.open_file(path).and_then(|file| file.truncate(size)),
        Op::Link(path, new) => store.link(path, new),
        Op::Unlink(path) => store.unlink(path),
        Op::Rmdir(path) => store.rmdir(path),
        Op::Rename(path, new) => store.rename(path, new),
        Op::Sync => store.sync(),
    };
    result.is_ok()
}

/// A node, as a comparison sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Directory,
    /// The content, and the number of names.
    File(Rc<Vec<u8>>, u32),
}

/// All of a store, by path.
pub type Dump = BTreeMap<String, Seen>;

/// What a store contains.
pub fn dump<M: Medium, L: RawRangeLock>(store: &Store<M, L>) -> Result<Dump, String> {
    let mut dump = Dump::new();
    let mut waiting = vec![String::from("/")];
    while let Some(path) = waiting.pop() {
        let entries = store
            .readdir(&path)
            .map_err(|error| format!("{path}: {error}"))?;
        for entry in entries {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            let path = format!("{}/{name}", path.trim_end_matches('/'));
            let seen = match entry.kind {
                Kind::Directory => {
                    waiting.push(path.clone());
                    Seen::Directory
                }
                _ => read(store, &path).map_err(|error| format!("{path}: {error}"))?,
            };
            dump.insert(path, seen);
        }
    }
    Ok(dump)
}

fn read<M: Medium, L: RawRangeLock>(
    store: &Store<M, L>,
    path: &str,
) -> Result<Seen, crate::store::Error> {
    let file = store.open_file(path)?;
    let stat = file.stat()?;
    let mut content = vec![0xEE; stat.size as usize + 1];
    let length = file.read_at(&mut content, 0)?;
    content.truncate(length);
    Ok(Seen::File(Rc::new(content), stat.links))
}

/// A node of the model.
#[derive(Debug, Clone)]
enum Node {
    Directory,
    File(Rc<Vec<u8>>),
}

/// What a store should be.
#[derive(Debug, Clone)]
pub struct Model {
    names: BTreeMap<String, usize>,
    nodes: Vec<Node>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            names: BTreeMap::from([(String::new(), 0)]),
            nodes: vec![Node::Directory],
        }
    }
}

impl Model {
    pub fn dump(&self) -> Dump {
        let names = self.names.iter().filter(|(path, _)| !path.is_empty());
        let seen = |id: usize| match &self.nodes[id] {
            Node::Directory => Seen::Directory,
            Node::File(content) => {
                let links = self.names.values().filter(|other| **other == id).count();
                Seen::File(Rc::clone(content), links as u32)
            }
        };
        names.map(|(path, &id)| (path.clone(), seen(id))).collect()
    }

    /// What a file contains here, that has this path in another model of the same sequence.
    pub fn version(&self, other: &Self, path: &str) -> Option<Rc<Vec<u8>>> {
        match self.nodes.get(*other.names.get(path)?)? {
            Node::File(content) => Some(Rc::clone(content)),
            Node::Directory => None,
        }
    }

    /// Does it, if it is possible.
    pub fn perform(&mut self, op: &Op) -> bool {
        self.attempt(op).is_some()
    }

    fn attempt(&mut self, op: &Op) -> Option<()> {
        match *op {
            Op::Create(path) => self.add(path, Node::File(Rc::default())),
            Op::Mkdir(path) => self.add(path, Node::Directory),
            Op::Write(path, at, length, tag) => {
                let content = self.content(path)?;
                let end = at as usize + length;
                if length > 0 {
                    content.resize(content.len().max(end), 0);
                    content[at as usize..end].copy_from_slice(&bytes(length, tag));
                }
                Some(())
            }
            Op::Append(path, length, tag) => {
                self.content(path)?.extend(bytes(length, tag));
                Some(())
            }
            Op::Truncate(path, size) => {
                self.content(path)?.resize(size as usize, 0);
                Some(())
            }
            Op::Link(path, new) => {
                let id = *self.names.get(path)?;
                self.content(path)?;
                self.is_free(new)?;
                self.names.insert(new.to_owned(), id);
                Some(())
            }
            Op::Unlink(path) => {
                self.content(path)?;
                self.names.remove(path).map(drop)
            }
            Op::Rmdir(path) => {
                self.is_empty_directory(path)?;
                self.names.remove(path).map(drop)
            }
            Op::Rename(path, new) => self.rename(path, new),
            Op::Sync => Some(()),
        }
    }

    fn add(&mut self, path: &str, node: Node) -> Option<()> {
        self.is_free(path)?;
        self.names.insert(path.to_owned(), self.nodes.len());
        self.nodes.push(node);
        Some(())
    }

    /// Whether the name is free, and its directory exists.
    fn is_free(&self, path: &str) -> Option<()> {
        (self.parent_exists(path) && !self.names.contains_key(path)).then_some(())
    }

    fn parent_exists(&self, path: &str) -> bool {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let parent = self.names.get(parent).map(|&id| &self.nodes[id]);
        matches!(parent, Some(Node::Directory))
    }

    fn content(&mut self, path: &str) -> Option<&mut Vec<u8>> {
        match &mut self.nodes[*self.names.get(path)?] {
            Node::File(content) => Some(Rc::make_mut(content)),
            Node::Directory => None,
        }
    }

    fn is_empty_directory(&self, path: &str) -> Option<()> {
        let is_directory = matches!(self.nodes[*self.names.get(path)?], Node::Directory);
        let inside = format!("{path}/");
        let empty = !self.names.keys().any(|name| name.starts_with(&inside));
        (is_directory && empty).then_some(())
    }

    fn rename(&mut self, path: &str, new: &str) -> Option<()> {
        let id = *self.names.get(path)?;
        let is_directory = matches!(self.nodes[id], Node::Directory);
        if !self.parent_exists(new)
            || is_directory && format!("{new}/").starts_with(&format!("{path}/")) && new != path
        {
            return None;
        }
        match self.names.get(new) {
            Some(&there) if there == id => return Some(()),
            Some(_) if is_directory => self.is_empty_directory(new)?,
            Some(&there) if matches!(self.nodes[there], Node::Directory) => return None,
            _ => {}
        }
        let inside = format!("{path}/");
        let moved: Vec<_> = self
            .names
            .keys()
            .filter(|name| *name == path || name.starts_with(&inside))
            .cloned()
            .collect();
        for name in moved {
            let id = self.names.remove(&name)?;
            self.names
                .insert(format!("{new}{}", &name[path.len()..]), id);
        }
        Some(())
    }
}
