//! What the library tells the thread sanitizer, if the program has it: of its own threads, and of locks that a caller
//! does not name. All else is told by the header's inline functions.
//!
//! The library is not compiled for the sanitizer, which sees nothing of it but calls of functions that it intercepts,
//! such as `memmove`. It must ignore those, since it does not see what orders them.

use libc::c_void;
use prim::atomic::{AtomicPtr, Ordering};
use std::ffi::{CStr, c_char, c_int};
use std::mem;
use std::ptr;

type Annotate = extern "C" fn(*mut c_char, c_int);
type Order = extern "C" fn(*const c_void);

/// The functions of the sanitizer.
struct Sanitizer {
    acquire: Order,
    release: Order,
    begin: [Annotate; 2],
    end: [Annotate; 2],
}

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        // The program is not to take that for an error of its own.
        // SAFETY: the function has no preconditions.
        unsafe { libc::dlerror() };
    }
    (!found.is_null()).then_some(found)
}

fn annotate(name: &CStr) -> Option<Annotate> {
    // SAFETY: the functions of these names in the sanitizer's interface have this type.
    Some(unsafe { mem::transmute::<*mut c_void, Annotate>(find(name)?) })
}

fn order(name: &CStr) -> Option<Order> {
    // SAFETY: as above.
    Some(unsafe { mem::transmute::<*mut c_void, Order>(find(name)?) })
}

/// What was found; null while nobody has looked. (It is no `OnceLock`, since a child that is forked while a thread
/// looks would wait for that thread.)
static FOUND: AtomicPtr<Option<Sanitizer>> = AtomicPtr::new(ptr::null_mut());

/// Looks the functions up, the first time. That takes the loader's lock, and a thread should not wait for that while it
/// holds a range: a thread in `dlopen`, which has the loader's, runs constructors, and one of them may wait for the
/// range. So this is called before there is a range lock.
pub(crate) fn look() {
    let _found = sanitizer();
}

#[cold] // Once.
fn look_now() -> *mut Option<Sanitizer> {
    let fresh = Box::into_raw(Box::new(Sanitizer::find()));
    match FOUND.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => fresh,
        Err(theirs) => {
            // SAFETY: made just above, and nobody else knows it.
            drop(unsafe { Box::from_raw(fresh) });
            theirs
        }
    }
}

fn sanitizer() -> Option<&'static Sanitizer> {
    let known = FOUND.load(Ordering::Acquire);
    let known = if known.is_null() { look_now() } else { known };
    // SAFETY: not null, and it is never freed.
    unsafe { &*known }.as_ref()
}

impl Sanitizer {
    fn find() -> Option<Self> {
        Some(Self {
            acquire: order(c"__tsan_acquire")?,
            release: order(c"__tsan_release")?,
            begin: [
                annotate(c"AnnotateIgnoreReadsBegin")?,
                annotate(c"AnnotateIgnoreWritesBegin")?,
            ],
            end: [
                annotate(c"AnnotateIgnoreWritesEnd")?,
                annotate(c"AnnotateIgnoreReadsEnd")?,
            ],
        })
    }
}

fn call(functions: Option<&[Annotate; 2]>) {
    for function in functions.into_iter().flatten() {
        function(ptr::null_mut(), 0);
    }
}

/// Calls `f`, which is the library's own.
pub(crate) fn ignoring<R>(f: impl FnOnce() -> R) -> R {
    call(sanitizer().map(|sanitizer| &sanitizer.begin));
    let result = f();
    call(sanitizer().map(|sanitizer| &sanitizer.end));
    result
}

/// Calls `f`, which is the program's, within the library's own.
pub(crate) fn heeding<R>(f: impl FnOnce() -> R) -> R {
    call(sanitizer().map(|sanitizer| &sanitizer.end));
    let result = f();
    call(sanitizer().map(|sanitizer| &sanitizer.begin));
    result
}

/// Tells that the running thread has acquired a lock.
pub(crate) fn acquired<T>(lock: &T) {
    if let Some(sanitizer) = sanitizer() {
        (sanitizer.acquire)(ptr::from_ref(lock).cast());
    }
}

/// Tells that the running thread is about to release a range of a lock.
pub(crate) fn released<T>(lock: *const T) {
    if let Some(sanitizer) = sanitizer() {
        (sanitizer.release)(lock.cast());
    }
}
