//! Threads: a small dense index for each, hooks for their exit, ids for people, and tables with a place per thread.
//!
//! An index is the smallest one free when a thread first asks; it is the thread's until the thread exits, and then
//! goes to another. A thread whose thread-locals are already torn down borrows an index for the length of a call,
//! so locks work in any destructor.

mod table;

pub use std::thread::{JoinHandle, spawn, yield_now};
pub use table::Table;

use crate::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::clock::{Duration, Instant};
use crate::futex;
use std::cell::RefCell;

/// Runs when a thread gives an index back, with the index, on the thread that held it.
pub type ExitHook = fn(usize);

/// How long an index belongs to the caller of [`with_index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tenure {
    /// Until the thread exits.
    Thread,
    /// Until the closure returns: the thread is exiting.
    Call,
}

const WORD: usize = u64::BITS as usize;
const WORDS: usize = 1024;

/// Bit `i` of word `w` is set while index `w * 64 + i` is taken.
static TAKEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// One more than the largest index ever taken.
static HIGH_WATER: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

/// A taken index. Dropping it runs the exit hooks and frees the index.
struct Seat {
    index: usize,
    hooks: Vec<ExitHook>,
}

impl Seat {
    fn take() -> Self {
        for (at, word) in TAKEN.iter().enumerate() {
            // Acquire: pairs with the Release in `drop`, so that the tables' entries of this index arrive whole.
            let claim = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |taken| {
                (taken != u64::MAX).then(|| taken | (taken + 1))
            });
            if let Ok(before) = claim {
                let index = at * WORD + before.trailing_ones() as usize;
                // SeqCst: whoever scans all indices after a SeqCst fence sees this one, or this thread's own later
                // fence comes after the scanner's.
                HIGH_WATER.fetch_max(index + 1, Ordering::SeqCst);
                return Self {
                    index,
                    hooks: Vec::new(),
                };
            }
        }
        panic!("more than {} threads use locks at once", WORD * WORDS);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        for hook in &self.hooks {
            hook(self.index);
        }
        let bit = 1 << (self.index % WORD);
        TAKEN[self.index / WORD].fetch_and(!bit, Ordering::Release);
    }
}

/// Calls `f` with this thread's index; `on_exit` will run when the thread gives the index back.
///
/// Every call registers its hook, so callers remember that they have called. Cold: keep what it yields.
///
/// # Panics
/// When more than 65,536 threads hold an index.
#[cold]
pub fn with_index<R>(on_exit: ExitHook, f: impl FnOnce(usize, Tenure) -> R) -> R {
    let seated = SEAT.try_with(|seat| {
        let mut seat = seat.borrow_mut();
        let seat = seat.get_or_insert_with(Seat::take);
        seat.hooks.push(on_exit);
        seat.index
    });
    match seated {
        Ok(index) => f(index, Tenure::Thread),
        Err(_) => {
            let mut seat = Seat::take();
            seat.hooks.push(on_exit);
            f(seat.index, Tenure::Call)
        }
    }
}

/// Sleeps for a moment: for a loop that waits for a thread which has a few instructions to go, and wakes nobody.
pub fn nap() {
    let nobody_wakes = AtomicU32::new(0);
    futex::wait(&nobody_wakes, 0, Some(Instant::now() + NAP));
}

/// Long enough for a thread of lower priority to run.
const NAP: Duration = Duration::from_micros(50);

/// All indices in use are below this. Load it after a `SeqCst` fence to miss nobody who entered before.
#[inline]
pub fn high_water() -> usize {
    HIGH_WATER.load(Ordering::Relaxed)
}

/// How many threads this process can run at a time; one, if the platform does not tell. Who asks first may be a thread
/// that was bound to few processors: for what lasts as long as the process ask for [`processors`].
#[must_use]
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, core::num::NonZero::get)
}

/// How many processors the machine has, whichever of them the thread may run on; where the platform does not tell,
/// [`cpus`]. The system is asked once: the answer does not change, and later a sandbox may forbid to read the file that has it.
#[must_use]
pub fn processors() -> usize {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        /// Zero: not yet known. Relaxed: whoever asks finds the same.
        static KNOWN: AtomicUsize = AtomicUsize::new(0);
        let known = KNOWN.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        // SAFETY: sysconf has no preconditions.
        let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let found = usize::try_from(configured).map_or(1, |count| count.max(1));
        KNOWN.store(found, Ordering::Relaxed);
        found
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        cpus()
    }
}

/// The processor that runs the thread: a guess, for it may be another the next moment. Where the platform does not
/// tell, a number that is the thread's.
#[must_use]
pub fn cpu() -> usize {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        // SAFETY: sched_getcpu has no preconditions.
        let cpu = unsafe { libc::sched_getcpu() };
        usize::try_from(cpu).unwrap_or(0)
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        id() as usize
    }
}

/// The memory node of the processor that runs the thread: a guess, as [`cpu`].
#[must_use]
pub fn node() -> usize {
    let cpu = cpu();
    match NODES.get(cpu).map(|node| node.load(Ordering::Relaxed)) {
        Some(UNKNOWN_NODE) => find_node(cpu),
        Some(node) => node.into(),
        None => 0,
    }
}

/// The nodes of the first processors, as far as known. Relaxed: whoever asks finds the same.
static NODES: [AtomicU8; 1024] = [const { AtomicU8::new(UNKNOWN_NODE) }; 1024];

const UNKNOWN_NODE: u8 = u8::MAX;

#[cold] // Once for each processor.
fn find_node(cpu: usize) -> usize {
    #[cfg(all(target_os = "linux", not(miri)))]
    let (found, node) = {
        let (mut cpu, mut node) = (0_u32, 0_u32);
        let unused = core::ptr::null_mut::<libc::c_void>();
        // SAFETY: it writes to the two places it is given.
        unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, unused) };
        (cpu as usize, node)
    };
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let (found, node) = (cpu, 0_u32);
    let node = u8::try_from(node).unwrap_or(0);
    // The thread may have moved between the two questions.
    if found == cpu {
        NODES[cpu].store(node, Ordering::Relaxed);
    }
    node.into()
}

/// The running thread's id as tools show it; on Linux the number in `ps -L` and a debugger.
#[must_use]
pub fn id() -> u32 {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: gettid has no preconditions.
        unsafe { libc::gettid() }.cast_unsigned()
    }
    #[cfg(not(target_os = "linux"))]
    {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let fresh = || NEXT.fetch_add(1, Ordering::Relaxed);
        thread_local!(static ID: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
        ID.with(|id| {
            if id.get() == 0 {
                id.set(fresh());
            }
            id.get()
        })
    }
}

/// Has `hook` run in the child after each `fork`, on its only thread. Where there is no fork it is never run.
pub fn after_fork_in_child(hook: extern "C" fn()) {
    #[cfg(target_os = "linux")]
    {
        unsafe extern "C" {
            safe fn pthread_atfork(
                prepare: Option<extern "C" fn()>,
                parent: Option<extern "C" fn()>,
                child: Option<extern "C" fn()>,
            ) -> libc::c_int;
        }
        // It fails for want of memory only, and then a forked child merely reclaims less.
        pthread_atfork(None, None, Some(hook));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = hook;
}

/// How often this process's ancestors and it were made by a fork since one of them first asked this, at least: a child has
/// another number than its parent, if that has asked. Where there is no fork, zero. For what a thread is about to wait
/// by, and nobody but that thread will take back.
#[must_use]
pub fn forks() -> u32 {
    extern "C" fn forked() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static FORKS: AtomicU32 = AtomicU32::new(0);
    static COUNTED: ForkHook = ForkHook::new(forked);
    COUNTED.register();
    FORKS.load(Ordering::Relaxed)
}

/// A hook for the children of `fork`, to be registered before it is needed and as often as that is convenient.
#[derive(Debug)]
pub struct ForkHook {
    hook: extern "C" fn(),
    is_registered: AtomicBool,
}

impl ForkHook {
    /// A hook that may run more than once in a child, and has to stand that.
    #[must_use]
    pub const fn new(hook: extern "C" fn()) -> Self {
        Self {
            hook,
            is_registered: AtomicBool::new(false),
        }
    }

    /// Has the hook run in the child after each `fork` from now on, as [`after_fork_in_child`] does.
    ///
    /// No thread waits here for another one that registers the same hook: a child forked meanwhile does not have that
    /// thread, and would wait forever. Instead both register it.
    #[inline]
    pub fn register(&self) {
        // Acquire and Release: who finds it registered is in a process whose next child will run it.
        if !self.is_registered.load(Ordering::Acquire) {
            after_fork_in_child(self.hook);
            self.is_registered.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Tenure, with_index};
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn index() -> usize {
        with_index(|_| (), |index, _| index)
    }

    #[test]
    fn living_threads_have_distinct_indices_and_keep_them() {
        let barrier = Barrier::new(40);
        let indices = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..40)
                .map(|_| {
                    scope.spawn(|| {
                        let mine = index();
                        barrier.wait();
                        assert_eq!(index(), mine);
                        barrier.wait();
                        mine
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect::<HashSet<_>>()
        });
        assert_eq!(indices.len(), 40);
    }

    #[test]
    fn nodes_are_found_once_and_agree() {
        let nodes: HashSet<_> = (0..1000).map(|_| super::node()).collect();
        assert!(nodes.len() <= super::processors(), "{nodes:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processors_are_the_machine_s_and_not_the_thread_s() {
        let before = super::processors();
        let (bound, after) = std::thread::spawn(|| {
            // SAFETY: a set of processors is plain data, and empty if all zero.
            let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: the number of a processor that exists.
            unsafe { libc::CPU_SET(super::cpu(), &mut one) };
            // SAFETY: the set is live and as large as said.
            unsafe { libc::sched_setaffinity(0, size_of_val(&one), &raw const one) };
            (super::cpus(), super::processors())
        })
        .join()
        .unwrap();
        assert_eq!(bound, 1);
        assert_eq!(after, before);
        assert!(after >= super::cpus());
    }

    #[test]
    fn indices_stay_dense_over_many_short_threads() {
        let largest = (0..500)
            .map(|_| std::thread::spawn(index).join().unwrap())
            .max();
        assert!(largest < Some(200), "{largest:?}: indices are not re-used");
    }

    #[test]
    fn exit_runs_the_hook_and_destructors_after_it_borrow_an_index() {
        static EXITS: AtomicUsize = AtomicUsize::new(0);
        static LATE: AtomicUsize = AtomicUsize::new(0);
        fn hook(_: usize) {
            EXITS.fetch_add(1, Ordering::SeqCst);
        }
        struct UsesIndexWhenDropped;
        impl Drop for UsesIndexWhenDropped {
            fn drop(&mut self) {
                with_index(hook, |_, tenure| {
                    if tenure == Tenure::Call {
                        LATE.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        }
        thread_local!(static EARLIER: UsesIndexWhenDropped = const { UsesIndexWhenDropped });
        std::thread::spawn(|| {
            // Destructors run in reverse order of first use: this one after the seat's.
            EARLIER.with(|_| ());
            with_index(hook, |_, tenure| assert_eq!(tenure, Tenure::Thread));
        })
        .join()
        .unwrap();
        let late = LATE.load(Ordering::SeqCst);
        assert_eq!(EXITS.load(Ordering::SeqCst), 1 + late.max(1));
    }
}
