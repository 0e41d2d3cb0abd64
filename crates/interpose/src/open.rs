//! `dlopen` without `RTLD_DEEPBIND`. A library that is loaded with that flag finds glibc's lock functions before ours,
//! and glibc's code would then work on the words of our locks.
//!
//! glibc finds out which library has called `dlopen` from the address to which the function returns: that library's
//! `RUNPATH`, `$ORIGIN` and namespace count. So our function does not call glibc's. It clears the flag and jumps there.

use crate::next::Next;
use libc::{RTLD_DEEPBIND, c_char, c_int, c_void};
use std::arch::naked_asm;
use std::ptr;

/// glibc's function.
static NEXT: Next = Next::new(c"dlopen");

/// Finds the address to jump to, the first time.
extern "C" fn find() -> *mut c_void {
    let found = NEXT.address();
    if found.is_null() {
        return absent as *mut c_void;
    }
    found
}

/// Stands for glibc's function where that is in a library of its own that is not loaded: then nothing can be loaded.
extern "C" fn absent(_name: *const c_char, _flags: c_int) -> *mut c_void {
    ptr::null_mut()
}

/// The function of that name in `dlfcn.h`.
///
/// # Safety
/// That of the function in `dlfcn.h`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "and esi, {kept}",
        "mov rax, qword ptr [rip + {next}]",
        "test rax, rax",
        "jnz 2f",
        // Saves the arguments across the call, and aligns the stack for it.
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

/// The function of that name in `dlfcn.h`.
///
/// # Safety
/// That of the function in `dlfcn.h`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "and w1, w1, {kept}",
        "adrp x16, {next}",
        "ldr x16, [x16, :lo12:{next}]",
        "cbnz x16, 2f",
        // Saves the arguments and the return address across the call.
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
