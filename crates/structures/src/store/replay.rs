//! What a file is, by the entries of its logs: replayed in their order, at the opening of a store and when logs are
//! rewritten.

use crate::store::error::{Error, Result};
use crate::store::format::entry::{self, Head, What};
use crate::store::format::{Block, Item, LogPage, PAGE_BYTES};
use crate::store::inode::{LAST_TIME, since_1970};
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
    /// Takes an entry into account. `is_there` says whether the content of a page is, which that opening has written.
    pub(crate) fn apply(
        &mut self,
        head: &Head,
        payload: &[u8],
        is_there: &mut impl FnMut(u32, Item) -> Result<bool>,
    ) -> Result<()> {
        match head.what {
            What::Write => {
                for (page, item) in (head.b..).zip(entry::items(payload)) {
                    self.replace(page, item, |item| is_there(head.epoch, item))?;
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
                    self.replace(head.b, item, |item| is_there(head.epoch, item))?;
                }
                self.size = head.a;
            }
            What::Branch | What::Tree(_) => {
                return Err(Error::Corrupt(
                    "an entry about something else in the log of a file".to_owned(),
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
        is_there: impl FnOnce(Item) -> Result<bool>,
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

/// A log of a file, as far as that says what may be in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Trunk,
    Branch,
}

/// The entries of all logs of a file, on their way into one order.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    state: FileState,
    /// Those that count by their times, and their payloads.
    by_time: Vec<(Head, Vec<u8>)>,
    /// The first pages of further logs.
    pub(crate) branches: Vec<LogPage>,
}

impl Merge {
    /// Takes an entry. Those of one log come in its order, and the trunk's come first. `is_there` says whether a page's
    /// content is.
    ///
    /// # Errors
    /// [`Error::Corrupt`], about an entry that no store writes into that log.
    pub(crate) fn take(
        &mut self,
        which: Which,
        head: &Head,
        payload: &[u8],
        is_there: &mut impl FnMut(u32, Item) -> Result<bool>,
    ) -> Result<()> {
        match (head.what, head.number) {
            (_, Head::IN_PLACE) if which == Which::Branch => {
                return Err(Error::Corrupt(
                    "an entry of the first log is in a further one".to_owned(),
                ));
            }
            (What::Branch, Head::IN_PLACE) => {
                let block = Block::try_from(head.a).map_err(|_| {
                    Error::Corrupt("a log that begins outside the store".to_owned())
                })?;
                let generation = head.b;
                self.branches.push(LogPage { block, generation });
            }
            // One about directories is refused at once.
            (What::Tree(_), _) | (_, Head::IN_PLACE) => {
                self.state.apply(head, payload, is_there)?
            }
            // [later] One after it would be lost.
            (_, Head::BY_TIME) if since_1970(head.time) > LAST_TIME => {
                return Err(Error::Corrupt(
                    "an entry of its logs is later than 2116".to_owned(),
                ));
            }
            (What::Write | What::Truncate, Head::BY_TIME) => {
                self.by_time.push((*head, payload.to_vec()))
            }
            (_, number) => {
                return Err(Error::Corrupt(format!(
                    "an entry of its logs has the number {number}"
                )));
            }
        }
        Ok(())
    }

    /// What they say together.
    pub(crate) fn finish(
        mut self,
        is_there: &mut impl FnMut(u32, Item) -> Result<bool>,
    ) -> Result<FileState> {
        // [by-time] Entries of two logs about one page are in the order of the writes.
        if prim::intact!("by-time") {
            self.by_time.sort_by_key(|(head, _)| head.time);
        }
        for (head, payload) in &self.by_time {
            self.state.apply(head, payload, is_there)?;
        }
        Ok(self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_the_entries_that_a_store_writes_there() {
        let takes = |which, what, number| {
            let (epoch, time, a, b) = (1, 1, 0, 0);
            let head = Head {
                what,
                epoch,
                number,
                time,
                a,
                b,
            };
            let mut is_there = |_, _| Ok(true);
            Merge::default()
                .take(which, &head, &[], &mut is_there)
                .is_ok()
        };
        for what in [What::Write, What::Truncate] {
            assert!(takes(Which::Trunk, what, Head::IN_PLACE));
            assert!(!takes(Which::Branch, what, Head::IN_PLACE));
            for which in [Which::Trunk, Which::Branch] {
                assert!(takes(which, what, Head::BY_TIME));
                assert!(!takes(which, what, 2));
            }
        }
        assert!(takes(Which::Trunk, What::Branch, Head::IN_PLACE));
        assert!(!takes(Which::Trunk, What::Branch, Head::BY_TIME));
        assert!(!takes(Which::Branch, What::Branch, Head::IN_PLACE));
        assert!(!takes(Which::Branch, What::Branch, Head::BY_TIME));
    }
}
