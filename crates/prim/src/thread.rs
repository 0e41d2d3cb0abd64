//! Threads: small dense indices, exit hooks, ids for people, and tables with an entry for each thread.
//!
//! A thread gets the smallest free index when it first asks. It keeps the index until it exits; then another thread may
//! get it. While a thread exits, after its thread-locals have been destroyed, it borrows an index for the length of one
//! call. So locks work in any destructor.

mod cancelled;
mod own;
mod table;

pub use cancelled::Uncancelled;
pub use own::start_own;
pub use std::thread::{JoinHandle, spawn, yield_now};
pub use table::Table;

use crate::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::clock::{Duration, Instant};
use crate::futex;
use std::cell::RefCell;

/// A function that a thread calls when it gives its index back, with that index.
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
    static HELD: RefCell<Option<HeldIndex>> = const { RefCell::new(None) };
}

/// A taken index. Dropping it runs the exit hooks and frees the index.
struct HeldIndex {
    index: usize,
    hooks: Vec<ExitHook>,
}

impl HeldIndex {
    fn take() -> Self {
        for (at, word) in TAKEN.iter().enumerate() {
            // Acquire: pairs with the Release in `drop`. The table entries of this index are as their last user left
            // them.
            let claim = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |taken| {
                (taken != u64::MAX).then(|| taken | (taken + 1))
            });
            if let Ok(before) = claim {
                let index = at * WORD + before.trailing_ones() as usize;
                // SeqCst: a thread that scans all indices after a SeqCst fence sees this one, unless this thread's own
                // later fence comes after the scanner's fence.
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

impl Drop for HeldIndex {
    fn drop(&mut self) {
        for hook in &self.hooks {
            hook(self.index);
        }
        let bit = 1 << (self.index % WORD);
        TAKEN[self.index / WORD].fetch_and(!bit, Ordering::Release);
    }
}

/// Calls `f` with this thread's index, and registers `on_exit` to run when the thread gives the index back.
///
/// Every call registers its hook again. The function is slow, so a caller calls it once for each thread and keeps the
/// result.
///
/// # Panics
/// When more than 65,536 threads hold an index.
#[cold]
pub fn with_index<R>(on_exit: ExitHook, f: impl FnOnce(usize, Tenure) -> R) -> R {
    let of_thread = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        let held = held.get_or_insert_with(HeldIndex::take);
        held.hooks.push(on_exit);
        held.index
    });
    match of_thread {
        Ok(index) => f(index, Tenure::Thread),
        Err(_) => {
            let mut held = HeldIndex::take();
            held.hooks.push(on_exit);
            f(held.index, Tenure::Call)
        }
    }
}

/// Sleeps for a moment. For a loop that waits until another thread has executed a few more instructions, when that
/// thread does not wake this one.
pub fn nap() {
    let nobody_wakes = AtomicU32::new(0);
    futex::wait(&nobody_wakes, 0, Some(Instant::now() + NAP));
}

/// Long enough for a thread of lower priority to run.
const NAP: Duration = Duration::from_micros(50);

/// An upper bound of the indices: all that are in use are smaller. Call it after a `SeqCst` fence to miss no thread
/// that took its index before.
#[inline]
pub fn high_water() -> usize {
    HIGH_WATER.load(Ordering::Relaxed)
}

/// The number of threads that can run at a time; one if the platform does not report it.
///
/// The answer depends on the processors that the calling thread is bound to. For a decision that lasts as long as the
/// process use [`processors`].
#[must_use]
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, core::num::NonZero::get)
}

/// The number of processors of the machine, including those that the thread may not run on. If the platform does not
/// report it, [`cpus`].
///
/// The first call asks the system and keeps the answer. It does not change, and a sandbox that the program enters later
/// may forbid to read the file that contains it.
#[must_use]
pub fn processors() -> usize {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        /// Zero while not known. Relaxed: every thread that asks the system gets the same answer.
        static KNOWN: AtomicUsize = AtomicUsize::new(0);
        let known = KNOWN.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        // SAFETY: `sysconf` accepts any number and accesses no memory of the caller.
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

/// The processor that runs the thread. The system may move the thread at any time, so the answer is a hint. If the
/// platform does not report it, a number of the thread.
#[must_use]
pub fn cpu() -> usize {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        // SAFETY: `sched_getcpu` takes no argument and accesses no memory of the caller.
        let cpu = unsafe { libc::sched_getcpu() };
        usize::try_from(cpu).unwrap_or(0)
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        id() as usize
    }
}

/// The memory (NUMA) node of the processor that runs the thread: a hint, like [`cpu`].
#[must_use]
pub fn node() -> usize {
    let cpu = cpu();
    match NODES.get(cpu).map(|node| node.load(Ordering::Relaxed)) {
        Some(UNKNOWN_NODE) => find_node(cpu),
        Some(node) => node.into(),
        None => 0,
    }
}

/// The nodes of the first processors, as far as known. Relaxed: every thread that asks the system gets the same answer.
static NODES: [AtomicU8; 1024] = [const { AtomicU8::new(UNKNOWN_NODE) }; 1024];

const UNKNOWN_NODE: u8 = u8::MAX;

#[cold] // Once for each processor.
fn find_node(cpu: usize) -> usize {
    #[cfg(all(target_os = "linux", not(miri)))]
    let (found, node) = {
        let (mut cpu, mut node) = (0_u32, 0_u32);
        let unused = core::ptr::null_mut::<libc::c_void>();
        // SAFETY: the call writes one `u32` to each of the first two pointers, which are live; the third may be null.
        unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, unused) };
        (cpu as usize, node)
    };
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let (found, node) = (cpu, 0_u32);
    let node = u8::try_from(node).unwrap_or(0);
    // The thread may have moved to another processor between the two calls.
    if found == cpu {
        NODES[cpu].store(node, Ordering::Relaxed);
    }
    node.into()
}

/// The id of the running thread as tools show it; on Linux the number in `ps -L` and in a debugger.
#[must_use]
pub fn id() -> u32 {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: `gettid` takes no argument and cannot fail.
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

/// Registers `hook` to run in the child after each `fork`, on the child's only thread. On platforms without `fork` it
/// never runs.
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
        // It fails for lack of memory only. Then a forked child reclaims less memory, and nothing else changes.
        pthread_atfork(None, None, Some(hook));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = hook;
}

/// A count of forks: after the first call in a process, each child has a larger number than its parent. On platforms
/// without `fork` it is zero.
///
/// A thread writes the number beside a mark that only the same thread removes, such as a mark in a lock's word before
/// it sleeps. In a forked child that thread does not exist, and the number reveals that the mark is stale.
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

/// A hook for the children of `fork`. Register it before it is needed, any number of times.
#[derive(Debug)]
pub struct ForkHook {
    hook: extern "C" fn(),
    is_registered: AtomicBool,
}

impl ForkHook {
    /// A hook. It may run more than once in the same child, and must allow for that.
    #[must_use]
    pub const fn new(hook: extern "C" fn()) -> Self {
        Self {
            hook,
            is_registered: AtomicBool::new(false),
        }
    }

    /// Has the hook run in the child after each `fork` from now on, as [`after_fork_in_child`] does.
    ///
    /// Two threads that call this at the same time both register the hook, and neither waits for the other. A child
    /// that is forked at that moment has only one of them, and would wait for the other for ever.
    #[inline]
    pub fn register(&self) {
        // Acquire and Release: a thread that finds `true` is in a process whose next child runs the hook.
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
            // SAFETY: `cpu_set_t` is plain data, for which all zeros is a valid value: the empty set.
            let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: the processor exists, so its number is within the set.
            unsafe { libc::CPU_SET(super::cpu(), &mut one) };
            // SAFETY: the set is live, and its size is passed with it.
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
            // Destructors run in reverse order of first use, so this one runs after the index has been given back.
            EARLIER.with(|_| ());
            with_index(hook, |_, tenure| assert_eq!(tenure, Tenure::Thread));
        })
        .join()
        .unwrap();
        let late = LATE.load(Ordering::SeqCst);
        assert_eq!(EXITS.load(Ordering::SeqCst), 1 + late.max(1));
    }
}
