//! Rewriting logs: what a log says now, in fewer entries, in pages of its own. Then the inode's slot points there.
//!
//! ```text
//!   slot ---> [old 1] -> [old 2] -> ... -> [old n] -> [next] -> ...      threads go on appending behind `next`
//!      \                                                ^
//!       `---> [new 1] -> ... -> [new k] ----------------'                written and synced, then the slot is switched
//! ```
//!
//! What the old part says may be out of date: a page may have been replaced by an entry behind `next`, and may be in
//! use elsewhere. That does no harm. Whoever reads the log takes the entry behind `next`, too.

use crate::store::core::Core;
use crate::store::error::Result;
use crate::store::format::entry::{self, Draft, Head, MAX_ITEMS, What};
use crate::store::format::page::{self, ENTRY_SLOT, ENTRY_SLOTS};
use crate::store::format::{Item, LogPage, PAGE, PAGE_BYTES, offset, zeros};
use crate::store::log::Log;
use crate::store::medium::Medium;
use crate::store::replay::FileState;

/// Pages that a log may have which needs so many, besides a thousandth of the store.
///
/// A rewriting takes as long as the file has pages, and writes pay for it. A page of a rewritten log stands for
/// hundreds of pages of data, so eight for one are little. A file of few pages has a log of one, which may become
/// two.
pub(crate) fn limit(after_rewriting: usize) -> usize {
    2 + 8 * after_rewriting.saturating_sub(1)
}

/// The part of a log that is replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    /// Its first pages. The log goes on in this page.
    Before(LogPage),
    /// All of it.
    All,
}

impl Log {
    /// Replaces the first pages of the log, which are `old`, by pages with these entries. No thread reserves slots in
    /// the old pages, and if they are all of the log, no thread appends meanwhile.
    pub(crate) fn rewrite<M: Medium>(
        &self,
        core: &Core<M>,
        old: &[LogPage],
        part: Part,
        drafts: &[Draft],
    ) -> Result<()> {
        let mut new = Vec::new();
        let slot = match self.write_chain(core, part, drafts, &mut new) {
            Ok(slot) => slot,
            Err(error) => {
                let blocks: Vec<_> = new.iter().map(|page: &LogPage| page.block).collect();
                core.give_back(&blocks);
                return Err(error);
            }
        };
        // [clean-sync] The slot must not lead to pages that are not there.
        if prim::intact!("clean-sync") {
            core.sync()?;
        }
        let mut tail = self.tail.lock();
        self.write_head(core, &mut tail, new[0])?;
        self.replace(&mut tail, old.len(), &new);
        if let (Part::All, Some(&last)) = (part, new.last()) {
            self.go_on_in(last, slot);
        }
        drop(tail);
        let blocks: Vec<_> = old.iter().map(|page| page.block).collect();
        core.free(&blocks);
        Ok(())
    }

    /// Writes entries into new pages, and flushes them. Returns the first free slot of the last page.
    fn write_chain<M: Medium>(
        &self,
        core: &Core<M>,
        part: Part,
        drafts: &[Draft],
        new: &mut Vec<LogPage>,
    ) -> Result<usize> {
        let mut slot = ENTRY_SLOTS;
        let mut page = zeros();
        let mut drafts = drafts.iter().peekable();
        loop {
            let slots = drafts.peek().map(|draft| draft.len() / ENTRY_SLOT);
            let full = slots.is_some_and(|slots| slot + slots > ENTRY_SLOTS);
            if full || new.is_empty() {
                let fresh = self.new_page(core)?;
                if let Some(&last) = new.last() {
                    put_link(&mut page, last, fresh, core.id);
                    core.write(offset(last.block), &*page)?;
                }
                new.push(fresh);
                *page = page::empty(fresh, core.id, self.ino);
                slot = 1;
            }
            let last = *new.last().expect("it has just got one");
            let Some(draft) = drafts.next() else {
                if let Part::Before(next) = part {
                    put_link(&mut page, last, next, core.id);
                }
                core.write(offset(last.block), &*page)?;
                core.medium.fence();
                return Ok(slot);
            };
            let mut marked = draft.clone();
            entry::mark(&mut marked, &self.place(core.id, last, slot));
            page[slot * ENTRY_SLOT..][..marked.len()].copy_from_slice(&marked);
            slot += marked.len() / ENTRY_SLOT;
        }
    }
}

/// Writes a link into the copy of its page.
fn put_link(page: &mut [u8; PAGE], from: LogPage, to: LogPage, store: u64) {
    let (place, link) = page::link(from, to, store);
    let at = usize::try_from(place % PAGE_BYTES).expect("within a page");
    page[at..at + link.len()].copy_from_slice(&link);
}

/// Entries that say what a file is: its size first, then runs of its pages.
pub(crate) fn drafts(state: &FileState, epoch: u32) -> Vec<Draft> {
    let time = state.modified;
    let head = |what, a, b| Head {
        what,
        epoch,
        number: 0,
        time,
        a,
        b,
    };
    let mut drafts = vec![entry::draft(&head(What::Truncate, state.size, 0), &[])];
    let mut run: Vec<Item> = Vec::new();
    let mut first = 0;
    for (&page, &item) in &state.pages {
        if page != first + run.len() as u64 || run.len() == MAX_ITEMS {
            flush_run(&mut drafts, &mut run, |run| {
                entry::draft(&head(What::Write, 0, first), &entry::payload_of(run))
            });
            first = page;
        }
        run.push(item);
    }
    flush_run(&mut drafts, &mut run, |run| {
        entry::draft(&head(What::Write, 0, first), &entry::payload_of(run))
    });
    drafts
}

fn flush_run(drafts: &mut Vec<Draft>, run: &mut Vec<Item>, draft: impl Fn(&[Item]) -> Draft) {
    if !run.is_empty() {
        drafts.push(draft(run));
        run.clear();
    }
}
