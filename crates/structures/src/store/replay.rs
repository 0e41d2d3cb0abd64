//! What a file is, by the entries of its log: replayed in their order, at the opening of a store and when a log is
//! rewritten.

use crate::store::error::{Error, Result};
use crate::store::format::entry::{self, Head, What};
use crate::store::format::{Item, PAGE_BYTES};
use std::collections::{BTreeMap, BTreeSet};

/// What the entries of a file's log say.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileState {
    pub(crate) pages: BTreeMap<u64, Item>,
    pub(crate) size: u64,
    /// When the last entry was written.
    pub(crate) modified: i64,
    /// Pages in entries whose contents are not there. Most were replaced later, and then used for something else.
    pub(crate) dropped: u64,
    /// Pages whose last contents are not there.
    pub(crate) lost: BTreeSet<u64>,
}

impl FileState {
    /// Takes an entry into account. `is_there` says whether a page's content is.
    pub(crate) fn apply(
        &mut self,
        head: &Head,
        payload: &[u8],
        is_there: &mut impl FnMut(Item) -> Result<bool>,
    ) -> Result<()> {
        match head.what {
            What::Write => {
                for (page, item) in (head.b..).zip(entry::items(payload)) {
                    self.replace(page, item, is_there)?;
                }
                // [size-max] Writes that extend a file at a time commit in any order.
                self.size = if prim::intact!("size-max") {
                    self.size.max(head.a)
                } else {
                    head.a
                };
            }
            What::Truncate => {
                // [truncate-zaps] They must not come back when the file grows again.
                if prim::intact!("truncate-zaps") {
                    self.pages.split_off(&head.a.div_ceil(PAGE_BYTES));
                    self.lost.split_off(&head.a.div_ceil(PAGE_BYTES));
                }
                // The truncation happened even if this page is not there: it may have been replaced later.
                if let Some(item) = entry::items(payload).next() {
                    self.replace(head.b, item, is_there)?;
                }
                self.size = head.a;
            }
            What::Tree(_) => {
                return Err(Error::Corrupt(
                    "an entry about directories in the log of a file".to_owned(),
                ));
            }
        }
        self.modified = self.modified.max(head.time);
        Ok(())
    }

    /// Takes the item of one page into account.
    fn replace(
        &mut self,
        page: u64,
        item: Item,
        is_there: &mut impl FnMut(Item) -> Result<bool>,
    ) -> Result<()> {
        if item.is_hole() {
            self.pages.remove(&page);
            self.lost.remove(&page);
        } else if is_there(item)? {
            self.pages.insert(page, item);
            self.lost.remove(&page);
        } else {
            self.dropped += 1;
            self.lost.insert(page);
        }
        Ok(())
    }
}
