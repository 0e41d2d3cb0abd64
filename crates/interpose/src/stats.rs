//! Counts for each lock, if the environment asks for them. They are written as lines of JSON when the process exits.
//!
//! Counting costs an atomic operation on a shared word for each acquisition, so counted locks do not scale.
//!
//! The counts are in a table of fixed size, found by a hash of the lock's address: a lock has no room for them, and to
//! allocate while a lock is acquired could recurse, because an allocator may use locks.

use crate::errno::Errno;
use libc::{c_int, c_void};
use std::ffi::{CStr, OsString};
use std::fmt::Write as _;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// The most locks with counts of their own. Later ones are counted together.
const LOCKS: usize = 1 << 12;

/// Functions noted of those that acquired a lock first. The innermost is often a wrapper that many locks share.
const FRAMES: usize = 3;

/// The counts of one lock. All accesses are relaxed: counts order nothing.
pub(crate) struct Counts {
    /// The lock's address; zero while these counts are free.
    lock: AtomicUsize,
    /// Addresses in the functions that acquired it first, the innermost first; zero where the stack ends.
    callers: [AtomicUsize; FRAMES],
    fast_reads: AtomicU64,
    slow_reads: AtomicU64,
    writes: AtomicU64,
    waited: AtomicU64,
}

impl Counts {
    const fn new() -> Self {
        Self {
            lock: AtomicUsize::new(0),
            callers: [const { AtomicUsize::new(0) }; FRAMES],
            fast_reads: AtomicU64::new(0),
            slow_reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        }
    }

    pub(crate) fn fast_read(&self) {
        self.fast_reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn slow_read(&self, waited: u64) {
        self.slow_reads.fetch_add(1, Ordering::Relaxed);
        self.waited.fetch_add(waited, Ordering::Relaxed);
    }

    pub(crate) fn write(&self, waited: u64) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.waited.fetch_add(waited, Ordering::Relaxed);
    }

    fn counters(&self) -> [&AtomicU64; 4] {
        [
            &self.fast_reads,
            &self.slow_reads,
            &self.writes,
            &self.waited,
        ]
    }
}

/// By a hash of the lock's address, and then the next that are free. The last is for locks that find none free.
static TABLE: [Counts; LOCKS + 1] = [const { Counts::new() }; LOCKS + 1];

/// Where the counts are written.
static TO: OnceLock<To> = OnceLock::new();

struct To {
    /// Bytes of `PATH`.
    length: usize,
    /// `None` for the standard error, or if it cannot be opened.
    file: Option<Kept>,
}

/// A copy of the path. That in the environment does not last: servers write their titles over it.
static PATH: [AtomicU8; libc::PATH_MAX as usize] =
    [const { AtomicU8::new(0) }; libc::PATH_MAX as usize];

fn path(to: &To) -> PathBuf {
    let bytes = PATH[..to.length].iter();
    let bytes: Vec<_> = bytes.map(|byte| byte.load(Ordering::Relaxed)).collect();
    OsString::from_vec(bytes).into()
}

/// The file, open since the environment was read. At its exit the process may run as another user, who may not open it.
struct Kept {
    descriptor: c_int,
    /// The program may have closed the descriptor, and opened another file by its number.
    identity: Identity,
}

/// Device and number of a file.
type Identity = (u64, u64);

/// Programs may rely on which number `open` gives next. None of them has so many files open.
const HIGH: c_int = 512;

impl Kept {
    /// Opens it, without allocation, by system calls alone: functions of glibc's may be wrapped by other libraries,
    /// which may use the lock that is acquired now.
    fn open(path: &CStr) -> Option<Self> {
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
        // SAFETY: the path is a C string.
        let low = unsafe {
            libc::syscall(
                libc::SYS_openat,
                libc::AT_FDCWD,
                path.as_ptr(),
                flags,
                0o666,
            )
        };
        let low = c_int::try_from(low).ok().filter(|&low| low >= 0)?;
        // Where so high a number is not to be had, the low one stays.
        let descriptor = copy(low, HIGH).inspect(|_| close(low)).unwrap_or(low);
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: it writes a whole `stat`, which on 64-bit machines is the kernel's.
        let failed = unsafe { libc::syscall(libc::SYS_fstat, descriptor, stat.as_mut_ptr()) };
        if failed != 0 {
            close(descriptor);
            return None;
        }
        // SAFETY: written just above.
        let stat = unsafe { stat.assume_init_ref() };
        let identity = (stat.st_dev, stat.st_ino);
        Some(Self {
            descriptor,
            identity,
        })
    }

    /// The file, by another descriptor, if it is open still.
    fn file(&self) -> Option<File> {
        // SAFETY: it was made just now, and nobody else has it.
        let file = unsafe { File::from_raw_fd(copy(self.descriptor, 0)?) };
        let is_kept = |it: &Metadata| (it.dev(), it.ino()) == self.identity;
        file.metadata().is_ok_and(|it| is_kept(&it)).then_some(file)
    }
}

/// Another descriptor of the same file, with the next free number from `least` on.
fn copy(descriptor: c_int, least: c_int) -> Option<c_int> {
    // SAFETY: it takes any descriptor, open or not.
    let copy = unsafe { libc::syscall(libc::SYS_fcntl, descriptor, libc::F_DUPFD_CLOEXEC, least) };
    c_int::try_from(copy).ok().filter(|&copy| copy >= 0)
}

/// Closes a descriptor that nobody else has.
fn close(descriptor: c_int) {
    // SAFETY: it takes any descriptor.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}

/// The counts of the lock at that address. A lock where an earlier one was goes on with the earlier one's counts.
pub(crate) fn of(address: usize) -> &'static Counts {
    let hash = (address >> 3).wrapping_mul(0x9E37_79B9) >> 7; // The golden ratio's.
    let near = (0..32).map(|step| &TABLE[(hash + step) % LOCKS]);
    near.into_iter()
        .find(|counts| counts.lock.load(Ordering::Relaxed) == address || claim(counts, address))
        .unwrap_or(&TABLE[LOCKS])
}

fn claim(counts: &Counts, address: usize) -> bool {
    match counts
        .lock
        .compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed)
    {
        Ok(_) => {
            note_callers(&counts.callers);
            true
        }
        Err(theirs) => theirs == address,
    }
}

/// The answer of `acquire` and the nanoseconds that it took; or zero twice, if `attempt` succeeded.
pub(crate) fn timed(attempt: impl Fn() -> c_int, acquire: impl Fn() -> c_int) -> (c_int, u64) {
    if attempt() == 0 {
        return (0, 0);
    }
    let started = Instant::now();
    (acquire(), since(started))
}

/// The nanoseconds since then.
pub(crate) fn since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Registers that the counts are appended to that file when the process exits; `-` is the standard error. No file can
/// have a path that is too long for `PATH`.
pub(crate) fn keep(to: &CStr) {
    find_own_code();
    let length = to.count_bytes();
    if length > PATH.len() {
        return;
    }
    // Several threads may do this at the same time, with the same bytes.
    for (byte, &value) in PATH.iter().zip(to.to_bytes()) {
        byte.store(value, Ordering::Relaxed);
    }
    let _errno = Errno::kept();
    let file = if to == c"-" { None } else { Kept::open(to) };
    match TO.set(To { length, file }) {
        Ok(()) => {
            // SAFETY: the function lives as long as this library, which is not unloaded before the process exits.
            unsafe { libc::atexit(report) };
        }
        Err(another) => another.file.iter().for_each(|kept| close(kept.descriptor)),
    }
}

/// A forked child counts for itself.
pub(crate) fn reset() {
    for counter in TABLE.iter().flat_map(Counts::counters) {
        counter.store(0, Ordering::Relaxed);
    }
}

/// Writes that this process counts, if it does. Otherwise a process that cannot write at its end would go unnoticed.
pub(crate) fn announce() {
    if TO.get().is_some() {
        let process = std::process::id();
        let _ = PROGRAM.set(std::fs::read_link("/proc/self/exe").unwrap_or_default());
        let program = program().to_string_lossy();
        append(&format!(
            "{{\"process\":{process},\"program\":\"{}\"}}\n",
            unescaped(&program)
        ));
    }
}

/// The running program's file, as it was found when the library was loaded: later the process may have another root.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

fn program() -> &'static Path {
    PROGRAM.get().map_or(Path::new(""), PathBuf::as_path)
}

extern "C" fn report() {
    append(&lines());
}

fn append(lines: &str) {
    let write = |to: &To| -> io::Result<()> {
        let path = path(to);
        if path.as_os_str() == "-" {
            return io::stderr().write_all(lines.as_bytes());
        }
        let kept = to.file.as_ref().and_then(Kept::file);
        let mut file = match kept {
            Some(file) => file,
            None => OpenOptions::new().append(true).create(true).open(path)?,
        };
        // In one piece, because other processes append to the file too.
        file.write_all(lines.as_bytes())
    };
    let _uncancelled = prim::thread::Uncancelled::new();
    // A failure cannot be reported anywhere.
    let _ = TO.get().map(write);
}

fn lines() -> String {
    let mut lines = String::new();
    let process = std::process::id();
    for counts in &TABLE {
        let [fast_reads, slow_reads, writes, waited] = counts
            .counters()
            .map(|counter| counter.load(Ordering::Relaxed));
        if fast_reads + slow_reads + writes == 0 {
            continue;
        }
        let lock = counts.lock.load(Ordering::Relaxed);
        let addresses = counts.callers.iter().map(|at| at.load(Ordering::Relaxed));
        let callers: Vec<_> = addresses.take_while(|&at| at != 0).map(place).collect();
        let callers = callers.join(",");
        // Writing to a string cannot fail.
        let _ = writeln!(
            lines,
            "{{\"process\":{process},\"lock\":\"{lock:#x}\",\"callers\":[{callers}],\
             \"fast_reads\":{fast_reads},\"slow_reads\":{slow_reads},\"writes\":{writes},\
             \"waited_ns\":{waited}}}"
        );
    }
    let _ = writeln!(lines, "{{\"process\":{process},\"exited\":true}}");
    lines
}

#[repr(C)]
struct Context(c_void);

unsafe extern "C" {
    // From libgcc, which is linked for std anyway.
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut Context, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}

/// Where this library lies in memory: its first address, and the one after its last. A thread that holds a lock of the
/// program's compares with these and does not ask `dladdr`, which takes the loader's lock: a thread in `dlopen`, which
/// has that lock, runs constructors, and one of them may wait for the lock that the first thread holds.
static OWN_CODE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

fn find_own_code() {
    unsafe extern "C" fn visit(
        object: *mut libc::dl_phdr_info,
        _size: usize,
        _unused: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader calls this with an object that is valid during the call.
        let object = unsafe { &*object };
        // SAFETY: it has so many program headers there.
        let headers = unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
        let loaded = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD);
        let (start, end) = loaded.fold((usize::MAX, 0), |(start, end), header| {
            let at = (object.dlpi_addr + header.p_vaddr) as usize;
            (start.min(at), end.max(at + header.p_memsz as usize))
        });
        if !(start..end).contains(&(visit as *const () as usize)) {
            return 0; // Go on.
        }
        OWN_CODE[0].store(start, Ordering::Relaxed);
        OWN_CODE[1].store(end, Ordering::Relaxed);
        1 // Stop: any other value does.
    }
    // SAFETY: the loader calls `visit` during this call only.
    unsafe { libc::dl_iterate_phdr(Some(visit), ptr::null_mut()) };
}

/// Notes addresses in the innermost functions on the stack that are not this library's.
fn note_callers(callers: &[AtomicUsize]) {
    extern "C" fn visit(context: *mut Context, rest: *mut c_void) -> c_int {
        // SAFETY: the unwinder calls this with a context that is valid during the call.
        let address = unsafe { _Unwind_GetIP(context) };
        let [start, end] = OWN_CODE.each_ref().map(|at| at.load(Ordering::Relaxed));
        if (start..end).contains(&address) {
            return 0; // Go on.
        }
        // SAFETY: it is the pointer to a live slice that is passed to the unwinder below, which nobody else uses.
        let rest = unsafe { &mut *rest.cast::<&[AtomicUsize]>() };
        if let Some((caller, others)) = rest.split_first() {
            caller.store(address, Ordering::Relaxed);
            *rest = others;
        }
        c_int::from(rest.is_empty()) // Any value but zero stops.
    }
    let mut rest = callers;
    // SAFETY: the unwinder calls `visit` during this call only, with a pointer to `rest`, which lives longer.
    unsafe { _Unwind_Backtrace(visit, (&raw mut rest).cast()) };
}

fn info(address: usize) -> Option<libc::Dl_info> {
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: `dladdr` accepts any address, and `info` is live.
    let known = unsafe { libc::dladdr(address as *const c_void, &raw mut info) };
    (known != 0).then_some(info)
}

fn object_of(address: usize) -> usize {
    info(address).map_or(0, |info| info.dli_fbase as usize)
}

/// The text with characters that JSON would escape replaced.
fn unescaped(text: &str) -> String {
    text.replace(|c: char| c.is_control() || c == '"' || c == '\\', "?")
}

/// A JSON object: `at`, which is `function+offset (file)`, or `file+offset` where no function is known, or nothing;
/// `object`, the file with the code, and `offset`, the place in it, counted from where the file was loaded.
fn place(address: usize) -> String {
    // SAFETY: `dladdr` returns C strings that live as long as the object that they describe, which is still loaded.
    let text =
        |text: *const libc::c_char| unescaped(&unsafe { CStr::from_ptr(text) }.to_string_lossy());
    let Some(info) = info(address).filter(|info| !info.dli_fname.is_null()) else {
        return "{\"at\":\"\",\"object\":\"\",\"offset\":0}".to_owned();
    };
    // The linker knows the program by what it was called.
    let object = if info.dli_fbase as usize == object_of(program_headers()) {
        unescaped(&program().to_string_lossy())
    } else {
        text(info.dli_fname)
    };
    let offset = address - info.dli_fbase as usize;
    let at = if info.dli_sname.is_null() {
        format!("{object}+{offset:#x}")
    } else {
        let from = address - info.dli_saddr as usize;
        format!("{}+{from:#x} ({object})", text(info.dli_sname))
    };
    format!("{{\"at\":\"{at}\",\"object\":\"{object}\",\"offset\":{offset}}}")
}

/// An address in the program's own file.
fn program_headers() -> usize {
    // SAFETY: the function has no preconditions.
    (unsafe { libc::getauxval(libc::AT_PHDR) }) as usize
}
