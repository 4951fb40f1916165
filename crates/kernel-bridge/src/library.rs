//! Functions of a shared library. A panic of a controller ends the run, not the process.

extern crate std;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::cell::RefCell;
use core::slice;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::thread_local;

use crate::exported::controllers;

thread_local! {
    /// Place and message of the last panic of this thread.
    static FAILURE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Calls a function, and returns `None` if it panicked.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    // The library contains a copy of the standard library: this hook does not change the engine's.
    HOOK.call_once(|| panic::set_hook(alloc::boxed::Box::new(keep)));
    panic::catch_unwind(AssertUnwindSafe(call)).ok()
}

fn keep(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(String::new, |place| format!("{place}: "));
    let payload = panic.payload();
    let message = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    FAILURE.set(format!("{place}{message}"));
}

/// Copies as much of a text as fits, and returns its length.
///
/// # Safety
/// `to` points to `room` bytes.
unsafe fn copy(text: &str, to: *mut u8, room: usize) -> usize {
    // SAFETY: the caller passes memory and its size.
    let to = unsafe { slice::from_raw_parts_mut(to, room) };
    let length = text.len().min(room);
    to[..length].copy_from_slice(&text.as_bytes()[..length]);
    text.len()
}

/// Writes where and why the last call of this thread panicked; returns the length of the text.
///
/// # Safety
/// `text` points to `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_failure(text: *mut u8, room: usize) -> usize {
    let failure = FAILURE.with_borrow(ToOwned::to_owned);
    // SAFETY: the caller passes memory and its size.
    unsafe { copy(&failure, text, room) }
}

/// Writes the rows of the controllers as JSON, in the form of `jostle._core.registry`; returns the
/// length of the text, 0 if a controller panicked.
///
/// # Safety
/// `text` points to `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_describe(text: *mut u8, room: usize) -> usize {
    let described = guarded(|| serde_json::json!(controllers()).to_string());
    // SAFETY: the caller passes memory and its size.
    described.map_or(0, |described| unsafe { copy(&described, text, room) })
}
