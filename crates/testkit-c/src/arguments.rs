//! Pointers of a caller: all that is read and written through them.

use std::ffi::{CStr, c_char};

use crate::failure::Failure;

/// A structure of the interface.
///
/// # Safety
/// It is `repr(C)`, its first field is a `usize` with its size, and all bit patterns that C can write
/// to it are valid.
pub(crate) unsafe trait Structure: Copy {}

fn check<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format_args!("`{name}` is null")));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format_args!("`{name}` is not aligned")));
    }
    Ok(())
}

/// Reads a text.
///
/// # Safety
/// `text` is null, or a string that ends with a zero byte.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    check(text, name)?;
    // SAFETY: it is not null, and the caller says that it is a string.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| Failure::argument(format_args!("`{name}` is not UTF-8")))
}

/// Checks the size of a structure, which is its first field.
///
/// # Safety
/// `pointer` is null, or a `size_t` can be read from it.
unsafe fn check_size<T: Structure>(pointer: *const T, name: &str) -> Result<(), Failure> {
    check(pointer, name)?;
    // SAFETY: it is aligned, and the caller says that a size can be read.
    let size = unsafe { pointer.cast::<usize>().read() };
    if size != size_of::<T>() {
        let message = format!(
            "`{name}.size` is {size}, not {}: set it to sizeof, and compile with the header of this \
             library",
            size_of::<T>()
        );
        return Err(Failure::argument(message));
    }
    Ok(())
}

/// Reads a structure.
///
/// # Safety
/// `pointer` is null, or a structure of the size that is its first field.
pub(crate) unsafe fn structure<T: Structure>(pointer: *const T, name: &str) -> Result<T, Failure> {
    // SAFETY: a size can be read, since a structure can.
    unsafe { check_size(pointer, name)? };
    // SAFETY: it is aligned and has the size of `T`, whose bit patterns are valid.
    Ok(unsafe { pointer.read() })
}

/// Writes a structure, whose size the caller has set.
///
/// # Safety
/// `pointer` is null, or a structure of the size that is its first field.
pub(crate) unsafe fn put_structure<T: Structure>(
    pointer: *mut T,
    value: T,
    name: &str,
) -> Result<(), Failure> {
    // SAFETY: a size can be read, since it is a structure.
    unsafe { check_size(pointer, name)? };
    // SAFETY: it is aligned and has the size of `T`.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Writes a number.
///
/// # Safety
/// `pointer` is null, or a number can be written to it.
pub(crate) unsafe fn put<T: Copy>(pointer: *mut T, value: T, name: &str) -> Result<(), Failure> {
    check(pointer, name)?;
    // SAFETY: it is aligned, and the caller says that it can be written.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Writes a text and its zero byte into a buffer.
///
/// # Safety
/// `buffer` is null, or `capacity` bytes can be written to it.
pub(crate) unsafe fn put_text(
    buffer: *mut c_char,
    capacity: usize,
    text: &str,
    name: &str,
) -> Result<(), Failure> {
    check(buffer, name)?;
    if capacity <= text.len() {
        let message = format!("`{name}` has {capacity} bytes: {} are needed", text.len() + 1);
        return Err(Failure::argument(message));
    }
    // SAFETY: the buffer has more bytes than the text, and cannot overlap with it: the text is ours.
    unsafe { buffer.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
    // SAFETY: the byte behind the text is in the buffer.
    unsafe { buffer.add(text.len()).write(0) };
    Ok(())
}
