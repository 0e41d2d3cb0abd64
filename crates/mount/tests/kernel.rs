//! `fcntl` locks of a mounted file beside those of a file that the kernel keeps: the same random steps on both, and the
//! same answers. Where nothing can be mounted, each test prints why and passes.
//!
//! In a program of its own, because it forks.
#![cfg(target_os = "linux")]

mod common;

use common::{flock, on_mount};
use libc::{F_RDLCK, F_UNLCK, F_WRLCK, c_int};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const OWNERS: usize = 4;
/// Where most ranges start.
const POSITIONS: i64 = 24;

/// So many steps: `SPANLOCK_LOCK_STEPS`, or a few.
fn steps() -> u64 {
    spanlock_testkit::setting("SPANLOCK_LOCK_STEPS", 2_000)
}

/// What an owner does to a file.
#[derive(Debug, Clone, Copy)]
enum Step {
    Set(c_int, (i64, i64)),
    /// Who is in the way?
    Ask(c_int, (i64, i64)),
    /// Closes a second descriptor of the file, which ends the locks of a process.
    Close,
}

impl Step {
    fn random(random: &mut fastrand::Rng) -> Self {
        let start = match random.u32(..32) {
            0 => i64::MAX - random.i64(0..POSITIONS),
            _ => random.i64(0..POSITIONS),
        };
        let length = match random.u32(..16) {
            0 => 0, // To the end.
            1 => -random.i64(1..6),
            _ => random.i64(1..12),
        };
        let kind = random.choice([F_RDLCK, F_WRLCK]).expect("two");
        match random.u32(..100) {
            0..60 => Self::Set(kind, (start, length)),
            60..80 => Self::Set(F_UNLCK, (start, length)),
            80..99 => Self::Ask(kind, (start, length)),
            _ => Self::Close,
        }
    }

    fn to_words(self) -> [i64; 4] {
        match self {
            Self::Set(kind, (start, length)) => [0, kind.into(), start, length],
            Self::Ask(kind, (start, length)) => [1, kind.into(), start, length],
            Self::Close => [2, 0, 0, 0],
        }
    }

    fn from_words([what, kind, start, length]: [i64; 4]) -> Self {
        let range = (start, length);
        match what {
            0 => Self::Set(kind as c_int, range),
            1 => Self::Ask(kind as c_int, range),
            _ => Self::Close,
        }
    }
}

/// The error, or 0; and for a question the lock in the way: its kind, start, length and process.
type Answer = [i64; 5];

/// The commands that set and ask, of one kind of owner.
type Commands = [c_int; 2];

/// Does not allocate, so that a forked child may call it.
fn act(file: &File, step: Step, [set, ask]: Commands) -> Answer {
    let (command, kind, range) = match step {
        Step::Set(kind, range) => (set, kind, range),
        Step::Ask(kind, range) => (ask, kind, range),
        Step::Close => {
            let copy = file.try_clone();
            return [copy.is_err().into(), 0, 0, 0, 0];
        }
    };
    let mut lock = flock(kind, range);
    if let Err(error) = common::fcntl(file, command, &mut lock) {
        return [error.raw_os_error().unwrap_or(-1).into(), 0, 0, 0, 0];
    }
    match step {
        Step::Ask(..) => [
            0,
            lock.l_type.into(),
            lock.l_start,
            lock.l_len,
            lock.l_pid.into(),
        ],
        _ => [0; 5],
    }
}

/// A file of the kernel's, and one of the mount.
type Files = [File; 2];

fn open(folder: &Path) -> File {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(folder.join("locked")).expect("room")
}

/// Runs random steps, and compares the answers about both files.
fn compare(seed: u64, mut both: impl FnMut(usize, Step) -> [Answer; 2]) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut granted, mut refused, mut found) = (0, 0, 0);
    for number in 0..steps() {
        let (owner, step) = (random.usize(..OWNERS), Step::random(&mut random));
        let [kernel, mount] = both(owner, step);
        assert_eq!(kernel, mount, "step {number}: {step:?} by owner {owner}");
        match step {
            Step::Set(..) => {
                granted += u64::from(kernel[0] == 0);
                refused += u64::from(kernel[0] == libc::EAGAIN.into());
            }
            Step::Ask(..) => found += u64::from(kernel[1] != F_UNLCK.into()),
            Step::Close => {}
        }
    }
    println!("{granted} granted, {refused} refused, {found} locks in the way of questions");
    assert!(granted.min(refused).min(found) > steps() / 20);
}

/// A file of each kind, as the kernel and the mount have it.
fn on_both(test: impl FnOnce(&mut dyn FnMut() -> Files)) {
    // One test at a time: a forked child keeps open what the other test closes.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let kernels = tempfile::tempdir().expect("a folder");
    on_mount(
        4 << 20,
        |mount| test(&mut || [kernels.path(), mount].map(open)),
        |_| (),
    );
}

#[test]
fn open_files_get_the_locks_that_the_kernel_gives() {
    on_both(|open| {
        let owners = [(); OWNERS].map(|()| open());
        let commands = [libc::F_OFD_SETLK, libc::F_OFD_GETLK];
        compare(1, |owner, step| {
            owners[owner]
                .each_ref()
                .map(|file| act(file, step, commands))
        });
    });
}

#[test]
fn processes_get_the_locks_that_the_kernel_gives() {
    on_both(|open| {
        let files = open();
        let mut owners = [(); OWNERS].map(|()| Process::fork(&files));
        compare(2, |owner, step| {
            owners[owner].both(step).expect("the process lives")
        });
    });
}

/// A process that owns locks.
struct Process {
    id: libc::pid_t,
    stream: UnixStream,
}

impl Process {
    /// The child neither allocates nor unwinds.
    fn fork(files: &Files) -> Self {
        let (mine, its) = UnixStream::pair().expect("a pair");
        // SAFETY: the child makes system calls, and nothing else, until it exits.
        match unsafe { libc::fork() } {
            -1 => panic!("{}", io::Error::last_os_error()),
            0 => {
                let _ = serve(its, files);
                // SAFETY: it has no conditions.
                unsafe { libc::_exit(0) }
            }
            id => Self { id, stream: mine },
        }
    }

    fn both(&mut self, step: Step) -> io::Result<[Answer; 2]> {
        self.stream.write_all(&bytes::<4, 32>(step.to_words()))?;
        let mut answers = [[0; 5]; 2];
        for answer in &mut answers {
            let mut read = [0; 40];
            self.stream.read_exact(&mut read)?;
            *answer = words(read);
        }
        Ok(answers)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Not by closing it: processes that were forked later have it, too.
        self.stream.shutdown(Shutdown::Both).expect("it is open");
        // SAFETY: it is a child that nobody else waits for.
        unsafe { libc::waitpid(self.id, std::ptr::null_mut(), 0) };
    }
}

/// What the child does, until nobody asks any more.
fn serve(mut stream: UnixStream, files: &Files) -> io::Result<()> {
    loop {
        let mut read = [0; 32];
        stream.read_exact(&mut read)?;
        let step = Step::from_words(words(read));
        for file in files {
            let answer = act(file, step, [libc::F_SETLK, libc::F_GETLK]);
            stream.write_all(&bytes::<5, 40>(answer))?;
        }
    }
}

fn bytes<const N: usize, const BYTES: usize>(words: [i64; N]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

fn words<const N: usize, const BYTES: usize>(bytes: [u8; BYTES]) -> [i64; N] {
    let mut words = [0; N];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = i64::from_ne_bytes(chunk.try_into().expect("eight"));
    }
    words
}
