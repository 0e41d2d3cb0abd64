//! Two names that change places, in one step.

use crate::store::error::{Error, Result};
use crate::store::tree::{Ino, Kind, Place, ROOT, Tree};

impl Tree {
    /// Whether the names can change places.
    pub(crate) fn check_exchange(&self, places: &[Place; 2]) -> Result<()> {
        let [(from, name), (to, new_name)] = places;
        let (one, other) = (self.lookup(*from, name)?, self.lookup(*to, new_name)?);
        self.check_not_inside(one, *to)?;
        self.check_not_inside(other, *from)
    }

    /// Exchanges what two names name, after a [check](Self::check_exchange).
    pub(crate) fn exchange(&mut self, places: &[Place; 2], time: i64) {
        let [(from, name), (to, new_name)] = places;
        let found = (self.lookup(*from, name), self.lookup(*to, new_name));
        let (Ok(one), Ok(other)) = found else {
            return;
        };
        if one == other {
            return; // Two names of one node: nothing changes, as for a rename.
        }
        for (parent, name, ino) in [(*from, name, other), (*to, new_name, one)] {
            if let Some(directory) = self.nodes.get_mut(&parent) {
                directory.entries.insert(name.clone(), ino);
                directory.attributes.modified = time;
                directory.attributes.changed = time;
            }
            if let Some(node) = self.nodes.get_mut(&ino) {
                node.attributes.changed = time;
                if node.kind == Kind::Directory {
                    node.parent = parent;
                }
            }
        }
    }

    /// # Errors
    /// When `directory` is `moved`, or below it.
    pub(crate) fn check_not_inside(&self, moved: Ino, directory: Ino) -> Result<()> {
        let mut above = directory;
        while above != ROOT {
            if above == moved {
                return Err(Error::Invalid("a directory would be moved into itself"));
            }
            above = self.node(above)?.parent;
        }
        Ok(())
    }
}
