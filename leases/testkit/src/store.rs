//! A resource that checks fences, and what was done at each of its positions.

use libc::{SIGSTOP, kill, pid_t};
use spanlock_lease::{Fence, Span};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::ops::RangeInclusive;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
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

/// The values and the fences, and what has happened to them.
struct Shared {
    checks: Checks,
    cells: Mutex<Cells>,
    changed: Condvar,
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
    pub fn wait_for_reads(&self, reads: u64) {
        self.wait_until(|cells| (cells.reads >= reads).then_some(()));
    }

    /// Until so many writes were accepted or refused.
    pub fn wait_for_writes(&self, writes: u64) {
        self.wait_until(|cells| (cells.written + cells.refused >= writes).then_some(()));
    }

    /// Who reads next sends its write late.
    pub fn stop_the_next(&self) {
        self.shared.cells.lock().unwrap().stops_the_next = true;
    }

    /// Who was stopped.
    pub fn stopped(&self) -> pid_t {
        self.wait_until(|cells| cells.stopped.take())
    }

    /// Who reads within this time is stopped before it is answered. Nobody may do so.
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
    #[must_use]
    pub fn written(&self) -> u64 {
        self.shared.cells.lock().unwrap().written
    }

    /// How many reads and writes came too late.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shared.cells.lock().unwrap().refused
    }

    /// Whether a fence is no smaller than those that were seen.
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
    /// larger one, and no update is lost: who reads gets what was written last, and who writes has counted that up.
    ///
    /// # Errors
    /// What is wrong at the first position where they did not, and what was done there.
    pub fn holders_follow_each_other(&self) -> Result<(), String> {
        self.wait_until(|cells| (cells.clients == 0).then_some(()));
        let cells = self.shared.cells.lock().unwrap();
        for (at, done) in cells.done.iter().enumerate() {
            let (mut fence, mut value) = (None, 0);
            for (number, step) in done.iter().enumerate() {
                let came_back = fence > Some(step.fence);
                let is_lost = match step.what {
                    What::Read => step.value != value,
                    // It was counted up from what the same holder read.
                    What::Written => step.value != value + 1 || fence < Some(step.fence),
                };
                if came_back || is_lost {
                    let around = &done[number.saturating_sub(3)..=number];
                    return Err(format!(
                        "position {at}: a fence came back: {came_back}, an update is lost: {is_lost}; {around:?}"
                    ));
                }
                (fence, value) = (Some(step.fence), step.value);
            }
        }
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

impl Shared {
    /// Lines: `PID read FIRST LAST FENCE`, and `PID write FIRST LAST FENCE VALUES`.
    fn serve(&self, stream: UnixStream) {
        let mut answers = stream.try_clone().expect("a socket is copied");
        let mut read = None;
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
                "read" => {
                    read = Some(span);
                    self.read(span, fence, number(0) as pid_t)
                }
                _ => {
                    assert_eq!(read, Some(span), "it was read before");
                    let values: Vec<_> = (6..words.len()).map(number).collect();
                    self.write(span, fence, &values)
                }
            };
            if writeln!(answers, "{answer}").is_err() {
                break;
            }
            line.clear();
        }
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

    fn read(&self, span: Span, fence: Fence, pid: pid_t) -> String {
        let mut cells = self.cells.lock().unwrap();
        if !self.admit(&mut cells, span, fence) {
            return "stale".to_owned();
        }
        let places = span.start() as usize..=span.last() as usize;
        cells.note(places.clone(), fence, What::Read);
        let values = cells.values[places].iter().map(u64::to_string);
        let answer = values.collect::<Vec<_>>().join(" ");
        cells.reads += 1;
        if std::mem::take(&mut cells.stops_the_next) {
            // SAFETY: it has no effect on this process.
            unsafe { kill(pid, SIGSTOP) };
            cells.stopped = Some(pid);
        }
        self.changed.notify_all();
        answer
    }

    fn write(&self, span: Span, fence: Fence, values: &[u64]) -> String {
        let mut cells = self.cells.lock().unwrap();
        let is_admitted = self.admit(&mut cells, span, fence);
        if is_admitted {
            let places = span.start() as usize..=span.last() as usize;
            cells.values[places.clone()].copy_from_slice(values);
            cells.note(places, fence, What::Written);
            cells.written += 1;
        }
        self.changed.notify_all();
        if is_admitted { "ok" } else { "stale" }.to_owned()
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
