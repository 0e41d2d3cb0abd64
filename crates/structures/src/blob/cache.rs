//! Aliases that are kept for the next time they are asked for.

use crate::blob::area::Held;
use crate::blob::raw::{Piece, Ranges, Shown};
use crate::blob::sys::Addresses;
use crate::blob::{AliasArea, AliasGuard, Error, Extent};
use spanlock::range::RangeLock;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

/// Aliases that one thread keeps, so that reading the same BLOB again costs neither a system call nor a page fault.
///
/// A cache belongs to the thread that made it, and hides its aliases when it is dropped. It keeps up to `capacity` of
/// them. When there are more, it hides the one that nobody has used for longest.
///
/// An entry says which parts of the pool it shows, and nothing of extents. So it remains correct when extents are
/// dropped, and when others take their place: it shows the bytes that are there now.
///
/// ```
/// use spanlock_structures::blob::{AliasArea, AliasCache, Pool};
///
/// let page = Pool::page();
/// let pool = Pool::new(4 * page)?;
/// let area = AliasArea::new(&pool, 16 * page)?;
/// let cache = AliasCache::new(&area, 2);
/// let blob = [pool.allocate(page)?.seal(), pool.allocate(page)?.seal()];
/// let first = cache.map(&blob)?.as_ptr();
/// assert_eq!(cache.map(&blob)?.as_ptr(), first);
/// # Ok::<(), spanlock_structures::blob::Error>(())
/// ```
///
/// # When not to use it
/// When BLOBs are seldom read again by the same thread. All that the cache keeps takes room in the area, in which other
/// threads then find less: an area for some threads needs room for the caches of all of them.
///
/// # Cost
/// A search through the entries, of which there should be few, and of each the first extent is compared.
pub struct AliasCache<'s, R: Ranges = RangeLock> {
    area: &'s AliasArea<R>,
    capacity: usize,
    /// From the one that was used last.
    entries: RefCell<VecDeque<Entry<'s, R>>>,
}

struct Entry<'s, R: Ranges + 's> {
    pieces: Box<[Piece]>,
    shown: Shown<'s, R, Addresses>,
    /// Each guard has one of these, too.
    users: Rc<()>,
}

impl<R: Ranges> Entry<'_, R> {
    fn is_idle(&self) -> bool {
        Rc::strong_count(&self.users) == 1
    }

    fn shows(&self, extents: &[Extent]) -> bool {
        let pieces = self.pieces.iter().copied();
        pieces.eq(extents.iter().map(Extent::piece))
    }
}

impl<'s, R: Ranges> AliasCache<'s, R> {
    /// A cache of up to `capacity` aliases in an area. With a capacity of 0 it keeps none.
    #[must_use]
    pub fn new(area: &'s AliasArea<R>, capacity: usize) -> Self {
        Self {
            area,
            capacity,
            entries: RefCell::default(),
        }
    }

    /// As [`AliasArea::map`], but finds the alias if the cache has it. If the area is full, the cache hides what nobody
    /// uses.
    ///
    /// If all entries are in use, the alias is hidden with its guard.
    ///
    /// # Errors
    /// As [`AliasArea::map`].
    pub fn map<'a>(&'a self, extents: &'a [Extent]) -> Result<AliasGuard<'a, R>, Error> {
        self.area.check(extents.iter())?;
        if extents.is_empty() {
            return self.area.map(extents);
        }
        let mut entries = self.entries.borrow_mut();
        if let Some(at) = entries.iter().position(|entry| entry.shows(extents)) {
            entries.rotate_at(at);
        } else {
            if entries.len() >= self.capacity && !entries.hide_idle() {
                return self.area.map(extents);
            }
            let shown = loop {
                match self.area.show(extents.iter()) {
                    Err(Error::AreaFull) if entries.hide_idle() => {}
                    shown => break shown?,
                }
            };
            entries.push_front(Entry {
                pieces: extents.iter().map(Extent::piece).collect(),
                shown,
                users: Rc::new(()),
            });
        }
        let Entry { shown, users, .. } = &entries[0];
        let (start, bytes) = (self.area.address(shown), shown.bytes());
        Ok(AliasGuard::new(
            start,
            bytes,
            Held::Cached {
                _user: Rc::clone(users),
            },
        ))
    }

    /// Hides all aliases that nobody uses.
    pub fn clear(&self) {
        self.entries.borrow_mut().retain(|entry| !entry.is_idle());
    }
}

/// What a cache does with its entries, which are in the order of their last use.
trait ByUse {
    /// One was used: it becomes the first.
    fn rotate_at(&mut self, at: usize);

    /// Hides the one that was used first among those that nobody uses. Whether there was one.
    fn hide_idle(&mut self) -> bool;
}

impl<R: Ranges> ByUse for VecDeque<Entry<'_, R>> {
    fn rotate_at(&mut self, at: usize) {
        let used = self.remove(at).expect("it was found there");
        self.push_front(used);
    }

    fn hide_idle(&mut self) -> bool {
        let idle = self.iter().rposition(Entry::is_idle);
        idle.and_then(|at| self.remove(at)).is_some()
    }
}

impl<R: Ranges> fmt::Debug for AliasCache<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries.borrow().len();
        f.debug_struct("AliasCache")
            .field("capacity", &self.capacity)
            .field("entries", &entries)
            .finish_non_exhaustive()
    }
}
