//! Cache lines: which cores have a line, which requests wait for it, and what each access costs.
//!
//! ```text
//!                         load by another core: a copy
//!        +------------+ ------------------------------> +-----------------------+
//!        | modified   |                                 | shared                |
//!        | one owner  | <------------------------------ | sharers, no owner     |
//!        +------------+   store or read-modify-write:   +-----------------------+
//!              |          all other copies are invalid            |
//!              |                                                  |
//!              +------- busy until the transfer is over; ---------+
//!                       other requests wait in the line's queue
//! ```

use super::{Event, Time, World};
use std::collections::VecDeque;

/// The size of a line.
pub(crate) const BYTES: usize = 64;

/// The kind of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Load,
    Store,
    Rmw,
}

/// The source of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Requester {
    /// A thread that waits for the line.
    Thread(usize),
    /// The oldest store in a thread's store buffer.
    Store(usize),
}

#[derive(Debug, Clone, Copy)]
struct Request {
    who: Requester,
    access: Access,
    core: u8,
}

/// A cache line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The core that has modified the line, if any.
    owner: Option<u8>,
    /// The cores that have a copy, one bit each.
    sharers: u128,
    /// The time before which no other request is served.
    busy: Time,
    queue: VecDeque<Request>,
    /// The socket that got the line last, and how many of its requests in a row have overtaken older ones.
    socket: usize,
    favours: u32,
}

impl World {
    /// The number of the line of a host address. Lines are numbered in the order of first use, because host addresses
    /// differ from run to run.
    pub(super) fn line(&mut self, address: usize) -> u32 {
        let fresh = u32::try_from(self.lines.len()).expect("few lines");
        let line = *self.line_of.entry(address / BYTES).or_insert(fresh);
        if line == fresh {
            self.lines.push(Line::default());
        }
        line
    }

    /// The cost of an access if it can be served now. Otherwise `None`: the request is in the line's queue.
    pub(super) fn request(
        &mut self,
        line: u32,
        who: Requester,
        access: Access,
        core: u8,
        now: Time,
    ) -> Option<u64> {
        let cycles = &self.setup.machine.cycles;
        let at = &mut self.lines[line as usize];
        let mine = 1 << core;
        // A core with the only copy may change it without a transfer.
        let hit = match access {
            Access::Load if at.sharers & mine != 0 => Some(cycles.load_hit),
            Access::Store if at.sharers == mine => Some(1),
            Access::Rmw if at.sharers == mine => Some(cycles.rmw),
            _ => None,
        };
        if hit.is_some() {
            if access != Access::Load {
                at.owner = Some(core);
            }
            return hit;
        }
        if now >= at.busy && at.queue.is_empty() {
            return Some(self.grant(line, access, core, now));
        }
        let is_first = at.queue.is_empty();
        at.queue.push_back(Request { who, access, core });
        let busy = at.busy;
        if is_first {
            self.at(busy.max(now), Event::Serve(line));
        }
        None
    }

    /// Transfers a line to a core that has no copy, or not the only one. Returns the cost.
    fn grant(&mut self, line: u32, access: Access, core: u8, now: Time) -> u64 {
        let machine = &self.setup.machine;
        let cycles = &machine.cycles;
        let socket = machine.socket(core);
        let at = &mut self.lines[line as usize];
        let mine = 1_u128 << core;
        let local = ((1_u128 << machine.cores) - 1) << (socket * machine.cores);
        let (takes, busy) = if access == Access::Load {
            let (takes, busy) = match at.owner {
                Some(owner) if machine.socket(owner) == socket => {
                    (cycles.load_modified_local, cycles.load_modified_local)
                }
                Some(_) => (cycles.load_modified_remote, cycles.load_modified_remote),
                None if at.sharers & local != 0 => (cycles.load_shared_local, cycles.occupy_local),
                None if at.sharers != 0 => (cycles.load_shared_remote, cycles.occupy_remote),
                None => (cycles.memory, cycles.occupy_local),
            };
            at.owner = None;
            at.sharers |= mine;
            (takes, busy)
        } else {
            let own = match at.sharers {
                0 => cycles.memory,
                sharers if sharers & !local == 0 => cycles.own_local,
                _ => cycles.own_remote,
            };
            let takes = match access {
                Access::Rmw => own + cycles.rmw,
                _ => own,
            };
            at.owner = Some(core);
            at.sharers = mine;
            (takes, takes + cycles.keep)
        };
        at.busy = at.busy.max(now + busy);
        at.socket = socket;
        takes
    }

    /// The cost of a plain access. Its order among other accesses does not matter, so it does not queue.
    pub(super) fn touch_line(&mut self, line: u32, access: Access, core: u8, now: Time) -> u64 {
        let at = &self.lines[line as usize];
        let hit = match access {
            Access::Load => at.sharers & 1 << core != 0,
            Access::Store | Access::Rmw => at.sharers == 1 << core,
        };
        if hit {
            return self.setup.machine.cycles.load_hit;
        }
        self.grant(line, access, core, now)
    }

    /// Serves the next request in a line's queue.
    pub(super) fn serve(&mut self, line: u32, now: Time) {
        let machine = &self.setup.machine;
        let at = &mut self.lines[line as usize];
        if now < at.busy {
            let busy = at.busy;
            self.at(busy, Event::Serve(line));
            return;
        }
        let near = at
            .queue
            .iter()
            .position(|request| machine.socket(request.core) == at.socket);
        let chosen = match near {
            Some(near) if at.favours < machine.cycles.favour => near,
            _ => 0,
        };
        at.favours = if chosen == 0 { 0 } else { at.favours + 1 };
        let Some(Request { who, access, core }) = at.queue.remove(chosen) else {
            return;
        };
        // Another thread of the same core may have got the line since the request was queued.
        let hit = match access {
            Access::Load => at.sharers & 1 << core != 0,
            Access::Store | Access::Rmw => at.sharers == 1 << core,
        };
        let takes = if hit {
            machine.cycles.load_hit
        } else {
            self.grant(line, access, core, now)
        };
        let at = &self.lines[line as usize];
        if !at.queue.is_empty() {
            let busy = at.busy;
            self.at(busy.max(now), Event::Serve(line));
        }
        match who {
            Requester::Thread(number) => {
                self.threads[number].granted = takes;
                self.resume_at(number, now);
            }
            Requester::Store(number) => self.commit(number, now, takes),
        }
    }
}
