//! Memory of the caller's: what its pointers lead to.

use crate::answer::{Answer, Refused, ensure};
use libc::{EINVAL, ENOTSUP, c_char};

/// What a pointer of the caller points to; `EINVAL` if it is null.
///
/// # Safety
/// It is null, or valid for reads for `'a`.
#[inline]
pub(crate) unsafe fn given<'a, T>(pointer: *const T) -> Answer<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(Refused::by(EINVAL))
}

/// A place of the caller's to write to; `EINVAL` if it is null.
///
/// # Safety
/// It is null, or valid for reads and writes for `'a`, and nobody else uses it meanwhile.
#[inline]
pub(crate) unsafe fn place<'a, T>(pointer: *mut T) -> Answer<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or(Refused::by(EINVAL))
}

/// Several elements of the caller's; `EINVAL` if the pointer is null and there is one.
///
/// # Safety
/// The pointer is null, or valid for reads of `count` elements for `'a`.
pub(crate) unsafe fn elements<'a, T>(pointer: *const T, count: usize) -> Answer<&'a [T]> {
    ensure(count == 0 || !pointer.is_null(), EINVAL)?;
    Ok(match count {
        0 => &[],
        // SAFETY: not null, and the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(pointer, count) },
    })
}

/// Places of the caller's for several elements; `EINVAL` if the pointer is null and there is one.
///
/// # Safety
/// The pointer is null, or valid for writes of `count` initialised elements for `'a`; nobody else uses them meanwhile.
pub(crate) unsafe fn places<'a, T>(pointer: *mut T, count: usize) -> Answer<&'a mut [T]> {
    ensure(count == 0 || !pointer.is_null(), EINVAL)?;
    Ok(match count {
        0 => &mut [],
        // SAFETY: not null, and the caller's promise.
        _ => unsafe { std::slice::from_raw_parts_mut(pointer, count) },
    })
}

/// Writes a text with a zero at its end, cut off where `size` bytes do not suffice; `needed`, unless null, gets the
/// bytes that would have. `EINVAL` if `buffer` is null and `size` is not zero.
///
/// # Safety
/// The pointers are null or valid, `buffer` for `size` bytes.
pub(crate) unsafe fn write_text(
    text: &str,
    buffer: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> Answer {
    // SAFETY: the caller's promise.
    if let Some(needed) = unsafe { needed.as_mut() } {
        *needed = text.len() + 1;
    }
    // SAFETY: the caller's promise; any byte is a value of this type.
    let buffer = unsafe { places(buffer.cast::<u8>(), size) }?;
    if let Some(room) = size.checked_sub(1) {
        let text = &text.as_bytes()[..text.len().min(room)];
        buffer[..text.len()].copy_from_slice(text);
        buffer[text.len()] = 0;
    }
    Ok(())
}

/// Options that a program gives as a structure, which may be that of an earlier or a later version of the library.
///
/// # Safety
/// A structure of numbers, whose first is a `usize`: its size.
pub(crate) unsafe trait Options: Copy {}

/// The options at a pointer; `None` if it is null. `EINVAL` if the structure is too small, and `ENOTSUP` if it is of a
/// later version, and says something in a field that this one does not know.
///
/// # Safety
/// The pointer is null, or valid for as many bytes as its first number says.
pub(crate) unsafe fn options<T: Options>(options: *const T) -> Answer<Option<T>> {
    if options.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, so it is valid for the first field, at least.
    let size = unsafe { options.cast::<usize>().read() };
    ensure(size >= size_of::<T>(), EINVAL)?;
    // SAFETY: valid for so many bytes, as the caller promises.
    let all = unsafe { std::slice::from_raw_parts(options.cast::<u8>(), size) };
    let is_zero = all[size_of::<T>()..].iter().all(|&byte| byte == 0);
    ensure(is_zero, ENOTSUP)?;
    // SAFETY: valid for the fields of this version.
    Ok(Some(unsafe { options.read() }))
}
