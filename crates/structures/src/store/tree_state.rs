//! What the directories are, by the entries of their log.

use crate::store::format::entry::Head;
use crate::store::format::tree as tree_format;
use crate::store::load::Loader;
use crate::store::medium::Medium;
use crate::store::tree::{Change, ROOT, Tree};

/// What the entries about directories say, so far.
pub(crate) struct TreeState {
    pub(crate) tree: Tree,
    pub(crate) next: u32,
    pub(crate) begun: bool,
    pub(crate) dropped: u64,
    /// The epoch and the number of the first entry that was dropped.
    pub(crate) gap: Option<(u32, u32)>,
}

impl Default for TreeState {
    fn default() -> Self {
        Self {
            tree: Tree::new(),
            next: 0,
            begun: false,
            dropped: 0,
            gap: None,
        }
    }
}

impl TreeState {
    /// Takes an entry into account.
    pub(crate) fn apply(
        &mut self,
        loader: &mut Loader<'_, impl Medium>,
        head: &Head,
        payload: &[u8],
    ) {
        let Some(change) = tree_format::decode(head, payload) else {
            return loader.damage(format!(
                "entry {} of the directories' log makes no sense",
                head.number
            ));
        };
        let opens = matches!(change, Change::Attributes { ino: ROOT, .. });
        let follows = match self.begun {
            true => head.number == self.next,
            false => opens,
        };
        // [tree-order] Behind a gap, entries speak of what recovery does not know.
        let missing = !follows && prim::intact!("tree-order");
        if missing || self.dropped > 0 {
            self.dropped += 1;
            self.gap.get_or_insert((head.epoch, head.number));
            return;
        }
        self.begun = true;
        self.next = head.number.wrapping_add(1);
        match self.tree.check(&change) {
            Ok(()) => {
                self.tree.apply(&change, head.time);
            }
            Err(error) => loader.damage(format!("directories: {change:?} is impossible: {error}")),
        }
    }
}
