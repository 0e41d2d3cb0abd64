//! `dlopen` without `RTLD_DEEPBIND`: a library that is loaded with it finds glibc's functions before ours, and glibc's
//! code would work on the words of our locks.
//!
//! glibc asks who has called `dlopen`, by the address it returns to: the caller's `RUNPATH` and `$ORIGIN` count, and the
//! namespace that it is in. So ours does not call glibc's but jumps there.

use crate::next::Next;
use libc::{RTLD_DEEPBIND, c_char, c_int, c_void};
use std::arch::naked_asm;
use std::ptr;

/// glibc's function.
static NEXT: Next = Next::new(c"dlopen");

/// Where to jump when it was not looked for yet.
extern "C" fn find() -> *mut c_void {
    let found = NEXT.address();
    if found.is_null() {
        return absent as *mut c_void;
    }
    found
}

/// In place of glibc's, where that is in a library of its own that was not loaded: then nobody can have called it.
extern "C" fn absent(_name: *const c_char, _flags: c_int) -> *mut c_void {
    ptr::null_mut()
}

/// As the function of that name in `dlfcn.h`.
///
/// # Safety
/// As there.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "and esi, {kept}",
        "mov rax, qword ptr [rip + {next}]",
        "test rax, rax",
        "jnz 2f",
        // The arguments outlive the call; and the stack is aligned for it.
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "2:",
        "jmp rax",
        kept = const !RTLD_DEEPBIND,
        next = sym NEXT,
        find = sym find,
    )
}

/// As the function of that name in `dlfcn.h`.
///
/// # Safety
/// As there.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "and w1, w1, {kept}",
        "adrp x16, {next}",
        "ldr x16, [x16, :lo12:{next}]",
        "cbnz x16, 2f",
        // The arguments and the address to return to outlive the call.
        "stp x29, x30, [sp, #-32]!",
        "stp x0, x1, [sp, #16]",
        "bl {find}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "2:",
        "br x16",
        kept = const !RTLD_DEEPBIND as u32,
        next = sym NEXT,
        find = sym find,
    )
}
