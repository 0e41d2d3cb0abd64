//! A resource that checks fences, and the history of each of its positions.

use libc::{SIGSTOP, kill, pid_t};
use spanlock_lease::{Fence, Span};
use spanlock_testkit::history::{History, Model};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::ops::RangeInclusive;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// How many positions it has.
pub const POSITIONS: u64 = 16;

/// Whether writes that come too late are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// They are.
    Fences,
    /// They are not, as by a resource that knows no fences.
    Nothing,
}

/// One position, at which numbers are counted up. What was begun by who did not live to write has not happened.
#[derive(Clone, Debug, Default)]
struct Counter(u64);

#[derive(Clone, Debug, Default)]
struct Increment {
    happened: Arc<AtomicBool>,
}

impl Model for Counter {
    type Operation = Increment;
    /// What was there before, if it has happened.
    type Outcome = Option<u64>;
    type State = u64;

    fn apply(&mut self, operation: &Increment) -> Option<u64> {
        operation.happened.load(SeqCst).then(|| {
            self.0 += 1;
            self.0 - 1
        })
    }

    fn state(&self) -> u64 {
        self.0
    }
}

/// The values and the fences, and what has happened to them.
struct Shared {
    checks: Checks,
    cells: Mutex<Cells>,
    changed: Condvar,
    histories: Vec<History<Counter>>,
}

#[derive(Default)]
struct Cells {
    values: [u64; POSITIONS as usize],
    /// The largest fence that was seen at each, in a read or in a write.
    fences: [Option<Fence>; POSITIONS as usize],
    /// What was done at each, in order.
    done: [Vec<Done>; POSITIONS as usize],
    reads: u64,
    refused: u64,
    written: u64,
    /// How many clients there are.
    clients: u64,
    /// Who reads next is stopped before it is answered.
    stops_the_next: bool,
    stopped: Option<pid_t>,
}

/// What was done at a position.
#[derive(Clone, Copy, Debug)]
struct Done {
    fence: Fence,
    what: What,
    /// What was found, or written.
    value: u64,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Read,
    Written,
}

impl Cells {
    fn note(&mut self, places: RangeInclusive<usize>, fence: Fence, what: What) {
        for at in places {
            let value = self.values[at];
            self.done[at].push(Done { fence, what, value });
        }
    }
}

/// It ends with the process.
pub struct Store {
    shared: Arc<Shared>,
    /// Where it is reached.
    pub socket: PathBuf,
}

impl Store {
    /// It begins with zeros.
    ///
    /// # Panics
    /// When the store has panicked.
    #[must_use]
    pub fn new(checks: Checks) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "spanlock-store.{}.{}",
            std::process::id(),
            NUMBER.fetch_add(1, SeqCst)
        );
        let socket = std::env::temp_dir().join(name);
        let shared = Arc::new(Shared {
            checks,
            cells: Mutex::default(),
            changed: Condvar::new(),
            histories: (0..POSITIONS).map(|_| History::default()).collect(),
        });
        let listener = UnixListener::bind(&socket).expect("a socket can be made");
        let serves = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, serves) = (stream.expect("it is accepted"), Arc::clone(&serves));
                serves.cells.lock().unwrap().clients += 1;
                thread::spawn(move || serves.serve(stream));
            }
        });
        Self { shared, socket }
    }

    fn wait_until<T>(&self, found: impl Fn(&mut Cells) -> Option<T>) -> T {
        let mut cells = self.shared.cells.lock().unwrap();
        loop {
            if let Some(found) = found(&mut cells) {
                return found;
            }
            cells = self.shared.changed.wait(cells).unwrap();
        }
    }

    /// Until so much was read.
    ///
    /// # Panics
    /// When the store has panicked.
    pub fn wait_for_reads(&self, reads: u64) {
        self.wait_until(|cells| (cells.reads >= reads).then_some(()));
    }

    /// Until so many writes were accepted or refused.
    ///
    /// # Panics
    /// When the store has panicked.
    pub fn wait_for_writes(&self, writes: u64) {
        self.wait_until(|cells| (cells.written + cells.refused >= writes).then_some(()));
    }

    /// Who reads next sends its write late.
    ///
    /// # Panics
    /// When the store has panicked.
    pub fn stop_the_next(&self) {
        self.shared.cells.lock().unwrap().stops_the_next = true;
    }

    /// Who was stopped.
    ///
    /// # Panics
    /// When the store has panicked.
    pub fn stopped(&self) -> pid_t {
        self.wait_until(|cells| cells.stopped.take())
    }

    /// Who reads within this time is stopped before it is answered. Nobody may do so.
    ///
    /// # Panics
    /// When the store has panicked.
    pub fn stopped_within(&self, time: Duration) -> Option<pid_t> {
        self.stop_the_next();
        let cells = self.shared.cells.lock().unwrap();
        let waits = |cells: &mut Cells| cells.stopped.is_none();
        let changed = &self.shared.changed;
        let (mut cells, _) = changed.wait_timeout_while(cells, time, waits).unwrap();
        cells.stops_the_next = false;
        cells.stopped.take()
    }

    /// How many writes were accepted.
    ///
    /// # Panics
    /// When the store has panicked.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.shared.cells.lock().unwrap().written
    }

    /// How many reads and writes came too late.
    ///
    /// # Panics
    /// When the store has panicked.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shared.cells.lock().unwrap().refused
    }

    /// Whether a fence is no smaller than those that were seen.
    ///
    /// # Panics
    /// When the store has panicked.
    pub fn admits(&self, fence: Fence) -> bool {
        self.shared
            .cells
            .lock()
            .unwrap()
            .fences
            .iter()
            .all(|seen| *seen <= Some(fence))
    }

    /// When all clients are gone: whether holders followed each other, at each position. No fence comes back after a
    /// larger one, and who reads gets what was written last.
    ///
    /// # Errors
    /// What was done at the first position where they did not.
    ///
    /// # Panics
    /// When the store has panicked.
    pub fn holders_follow_each_other(&self) -> Result<(), String> {
        self.wait_until(|cells| (cells.clients == 0).then_some(()));
        let cells = self.shared.cells.lock().unwrap();
        for (at, done) in cells.done.iter().enumerate() {
            let mut before = (None, 0);
            for (number, step) in done.iter().enumerate() {
                let (fence, value) = before;
                let is_next = match step.what {
                    What::Read => step.value == value,
                    // It was counted up from what the same holder read.
                    What::Written => step.value == value + 1 && fence == Some(step.fence),
                };
                if fence > Some(step.fence) || !is_next {
                    let around = &done[number.saturating_sub(3)..=number];
                    return Err(format!("position {at}: {around:?}"));
                }
                before = (Some(step.fence), step.value);
            }
        }
        Ok(())
    }

    /// When all clients are gone: each position's history has an order in which no update is lost, the values are what
    /// it leads to, and holders followed each other.
    ///
    /// # Panics
    /// When there is none.
    pub fn is_explained(&self) {
        assert_eq!(self.holders_follow_each_other(), Ok(()));
        self.has_an_order();
    }

    /// As [`is_explained`](Self::is_explained), whatever the fences were.
    ///
    /// # Panics
    /// When there is no order.
    pub fn has_an_order(&self) {
        self.wait_until(|cells| (cells.clients == 0).then_some(()));
        let values = self.shared.cells.lock().unwrap().values;
        for (history, value) in self.shared.histories.iter().zip(values) {
            assert_eq!(history.explained(Counter::default()).0, value);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

/// What a client has read and not written yet.
struct Begun {
    span: Span,
    values: Vec<u64>,
    events: Vec<(usize, Increment)>,
}

impl Shared {
    /// Lines: `PID read FIRST LAST FENCE`, and `PID write FIRST LAST FENCE VALUES`.
    fn serve(&self, stream: UnixStream) {
        let mut answers = stream.try_clone().expect("a socket is copied");
        let mut begun = None;
        let (mut requests, mut line) = (BufReader::new(stream), String::new());
        // Of the last line, a process that is killed may have sent a part.
        while requests.read_line(&mut line).is_ok() && line.ends_with('\n') {
            let words: Vec<&str> = line.trim_end().split(' ').collect();
            let number = |at: usize| -> u64 { words[at].parse().expect("a number") };
            let span = Span::inclusive(number(2), number(3)).expect("in order");
            let fence = Fence {
                epoch: number(4) as u32,
                counter: number(5),
            };
            let answer = match words[1] {
                "read" => self.read(&mut begun, span, fence, number(0) as pid_t),
                _ => self.write(
                    &mut begun,
                    span,
                    fence,
                    (6..words.len()).map(number).collect(),
                ),
            };
            if writeln!(answers, "{answer}").is_err() {
                break;
            }
            line.clear();
        }
        self.forget(begun);
        self.cells.lock().unwrap().clients -= 1;
        self.changed.notify_all();
    }

    /// Whether the fence is as large as those that were seen in the range; they are replaced then.
    fn admit(&self, cells: &mut Cells, span: Span, fence: Fence) -> bool {
        let seen = &mut cells.fences[span.start() as usize..=span.last() as usize];
        if self.checks == Checks::Fences && seen.iter().any(|seen| *seen > Some(fence)) {
            cells.refused += 1;
            return false;
        }
        seen.fill(Some(fence));
        true
    }

    fn read(&self, begun: &mut Option<Begun>, span: Span, fence: Fence, pid: pid_t) -> String {
        self.forget(begun.take());
        let mut cells = self.cells.lock().unwrap();
        if !self.admit(&mut cells, span, fence) {
            return "stale".to_owned();
        }
        let places = span.start() as usize..=span.last() as usize;
        let events = places.clone().map(|at| {
            let operation = Increment::default();
            (self.histories[at].begin(operation.clone()), operation)
        });
        let events = events.collect();
        cells.note(places.clone(), fence, What::Read);
        let values = cells.values[places].to_vec();
        let answer = values
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(" ");
        *begun = Some(Begun {
            span,
            values,
            events,
        });
        cells.reads += 1;
        if std::mem::take(&mut cells.stops_the_next) {
            // SAFETY: it has no effect on this process.
            unsafe { kill(pid, SIGSTOP) };
            cells.stopped = Some(pid);
        }
        self.changed.notify_all();
        answer
    }

    fn write(
        &self,
        begun: &mut Option<Begun>,
        span: Span,
        fence: Fence,
        values: Vec<u64>,
    ) -> String {
        let mut cells = self.cells.lock().unwrap();
        let is_admitted = self.admit(&mut cells, span, fence);
        if is_admitted {
            let places = span.start() as usize..=span.last() as usize;
            let begun = begun.take().expect("it was read before");
            assert_eq!(begun.span, span);
            cells.values[places.clone()].copy_from_slice(&values);
            cells.note(places.clone(), fence, What::Written);
            for ((at, (event, operation)), old) in places.zip(begun.events).zip(begun.values) {
                operation.happened.store(true, SeqCst);
                self.histories[at].end(event, Some(old));
            }
            cells.written += 1;
        }
        self.changed.notify_all();
        if is_admitted { "ok" } else { "stale" }.to_owned()
    }

    /// It will not be written any more.
    fn forget(&self, begun: Option<Begun>) {
        let Some(Begun { span, events, .. }) = begun else {
            return;
        };
        for (at, (event, _)) in (span.start() as usize..).zip(events) {
            self.histories[at].end(event, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Checks, Store};
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    /// A process that is killed as it writes has sent the first digit of a number.
    #[test]
    fn a_part_of_a_line_is_no_write() {
        let store = Store::new(Checks::Fences);
        let mut stream = UnixStream::connect(&store.socket).unwrap();
        stream
            .write_all(b"1 read 0 0 1 1\n1 write 0 0 1 1 1")
            .unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answers = String::new();
        stream.read_to_string(&mut answers).unwrap();
        assert_eq!((answers.as_str(), store.written()), ("0\n", 0));
    }
}
