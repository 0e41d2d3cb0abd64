//! The largest fences of each position.

use spanlock_lease::{Fence, Mode, Span};
use std::collections::BTreeMap;

/// Smaller than all that engines give, or as small.
const NONE: Fence = Fence {
    epoch: 0,
    counter: 0,
};

/// The largest fences that have entered a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    exclusive: Fence,
    shared: Fence,
}

impl Mark {
    const NONE: Self = Self {
        exclusive: NONE,
        shared: NONE,
    };

    /// The fence that comes too late for, if any.
    fn later(&self, mode: Mode) -> Fence {
        match mode {
            Mode::Shared => self.exclusive,
            Mode::Exclusive => self.exclusive.max(self.shared),
        }
    }

    fn of(&self, mode: Mode) -> Fence {
        match mode {
            Mode::Shared => self.shared,
            Mode::Exclusive => self.exclusive,
        }
    }

    fn raised(mut self, mode: Mode, fence: Fence) -> Self {
        let raised = match mode {
            Mode::Shared => &mut self.shared,
            Mode::Exclusive => &mut self.exclusive,
        };
        *raised = fence.max(*raised);
        self
    }
}

/// The marks of a file: extents that do not overlap, by their first positions. What is in none has no mark. Extents
/// that touch differ.
#[derive(Debug, Default)]
pub(crate) struct Marks(BTreeMap<u64, (u64, Mark)>);

impl Marks {
    /// Extents that overlap a span, in order.
    fn overlapping(&self, span: Span) -> impl Iterator<Item = (u64, u64, Mark)> {
        let before = self.0.range(..span.start()).next_back();
        let before = before.filter(|(_, (last, _))| *last >= span.start());
        let within = self.0.range(span.start()..=span.last());
        before
            .into_iter()
            .chain(within)
            .map(|(&start, &(last, mark))| (start, last, mark))
    }

    /// # Errors
    /// A fence that has entered some of the span, for which this one comes too late.
    pub(crate) fn admit(&self, span: Span, mode: Mode, fence: Fence) -> Result<(), Fence> {
        let later = self
            .overlapping(span)
            .map(|(_, _, mark)| mark.later(mode))
            .max();
        match later.filter(|&later| later > fence) {
            Some(later) => Err(later),
            None => Ok(()),
        }
    }

    /// Whether all of the span has a fence as large as that one.
    pub(crate) fn have(&self, span: Span, mode: Mode, fence: Fence) -> bool {
        let mut next = Some(span.start());
        for (start, last, mark) in self.overlapping(span) {
            if next.is_none_or(|next| start > next) || mark.of(mode) < fence {
                return false;
            }
            next = last.checked_add(1);
        }
        next.is_none_or(|next| next > span.last())
    }

    /// From now on, all of the span has a fence at least as large as that one.
    pub(crate) fn raise(&mut self, span: Span, mode: Mode, fence: Fence) {
        let old: Vec<_> = self.overlapping(span).collect();
        let mut new: Vec<(u64, u64, Mark)> = Vec::with_capacity(2 * old.len() + 3);
        let mut next = Some(span.start());
        for &(start, last, mark) in &old {
            self.0.remove(&start);
            if start < span.start() {
                new.push((start, span.start() - 1, mark));
            }
            let (from, to) = (start.max(span.start()), last.min(span.last()));
            if let Some(gap) = next.filter(|&next| next < from) {
                new.push((gap, from - 1, Mark::NONE.raised(mode, fence)));
            }
            new.push((from, to, mark.raised(mode, fence)));
            if last > span.last() {
                new.push((span.last() + 1, last, mark));
            }
            next = to.checked_add(1);
        }
        if let Some(gap) = next.filter(|&next| next <= span.last()) {
            new.push((gap, span.last(), Mark::NONE.raised(mode, fence)));
        }
        for (start, last, mark) in new {
            self.insert(start, last, mark);
        }
        self.join_with_next(span.last());
    }

    /// Adds an extent behind all that end before it, and joins it with the one that it touches there.
    fn insert(&mut self, start: u64, last: u64, mark: Mark) {
        let before = self.0.range_mut(..start).next_back();
        match before.map(|(_, extent)| extent) {
            Some((end, same)) if *same == mark && end.checked_add(1) == Some(start) => *end = last,
            _ => drop(self.0.insert(start, (last, mark))),
        }
    }

    /// Joins the extent that holds a position with the next one, if they touch and are the same.
    fn join_with_next(&mut self, position: u64) {
        let here = self.0.range(..=position).next_back();
        let Some((&start, &(last, mark))) = here else {
            return;
        };
        let Some(next) = last.checked_add(1) else {
            return;
        };
        if let Some(&(end, same)) = self.0.get(&next)
            && same == mark
        {
            self.0.remove(&next);
            self.0.insert(start, (end, mark));
        }
    }

    /// How many extents differ from their neighbours.
    pub(crate) fn extents(&self) -> usize {
        self.0.len()
    }

    /// What makes the same marks when all of it is [raised](Self::raise).
    pub(crate) fn list(&self) -> impl Iterator<Item = (Span, Mode, Fence)> {
        self.0.iter().flat_map(|(&start, &(last, mark))| {
            let span = Span::inclusive(start, last).expect("an extent is not empty");
            let of = [Mode::Exclusive, Mode::Shared].map(|mode| (span, mode, mark.of(mode)));
            of.into_iter().filter(|&(_, _, fence)| fence > NONE)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLACES: u64 = 12;

    /// Places of the test are the last ones of the space, too, so that sums run over.
    fn at(place: u64) -> u64 {
        match place < PLACES / 2 {
            true => place,
            false => u64::MAX - (PLACES - 1 - place),
        }
    }

    proptest! {
        #[test]
        fn are_those_of_each_place(
            steps in prop::collection::vec((0..PLACES, 0..PLACES, any::<bool>(), 0_u64..6), 1..40)
        ) {
            let mut marks = Marks::default();
            let mut model = [Mark::NONE; PLACES as usize];
            for (one, other, alone, counter) in steps {
                let (from, to) = (one.min(other), one.max(other));
                let span = Span::inclusive(at(from), at(to)).unwrap();
                let mode = if alone { Mode::Exclusive } else { Mode::Shared };
                let fence = Fence { epoch: 1, counter };
                let places = &mut model[from as usize..=to as usize];
                // What lies between the two halves of the places was entered if both of its neighbours were together.
                let later = places.iter().map(|mark| mark.later(mode)).max().unwrap();
                if from >= PLACES / 2 || to < PLACES / 2 {
                    let have = places.iter().all(|mark| mark.of(mode) >= fence);
                    prop_assert_eq!(marks.have(span, mode, fence), have);
                    let admitted = if later > fence { Err(later) } else { Ok(()) };
                    prop_assert_eq!(marks.admit(span, mode, fence), admitted);
                }
                marks.raise(span, mode, fence);
                for mark in places {
                    *mark = mark.raised(mode, fence);
                }
                prop_assert!(marks.have(span, mode, fence));
                let extents: Vec<_> = marks.0.iter().map(|(&start, &(last, mark))| (start, last, mark)).collect();
                for pair in extents.windows(2) {
                    let [(_, last, mark), (start, _, next)] = pair else { unreachable!() };
                    prop_assert!(last < start && (last + 1 < *start || mark != next), "{:?}", extents);
                }
                for place in 0..PLACES {
                    let one = Span::inclusive(at(place), at(place)).unwrap();
                    let found = marks.overlapping(one).next().map_or(Mark::NONE, |(_, _, mark)| mark);
                    prop_assert_eq!(found, model[place as usize], "{}", place);
                }
            }
            let mut again = Marks::default();
            for (span, mode, fence) in marks.list() {
                again.raise(span, mode, fence);
            }
            prop_assert_eq!(again.0, marks.0);
        }
    }
}
