//! Status codes, and the message of the last one of a thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The call succeeded. A run has met its condition.
pub const JTK_OK: i32 = 0;
/// The time limit of a run was reached before its condition was met.
pub const JTK_TIME_LIMIT: i32 = 1;
/// Nothing can happen any more: no packet is in transit and no host has a deadline.
pub const JTK_IDLE: i32 = 2;
/// A host sends without end, or its deadline does not move after it has passed.
pub const JTK_ENDLESS_LOOP: i32 = 3;
/// An argument is null, misaligned, of another size, or has an impossible value.
pub const JTK_BAD_ARGUMENT: i32 = -1;
/// The network is invalid.
pub const JTK_BAD_NETWORK: i32 = -2;
/// A function of an endpoint returned something impossible.
pub const JTK_BAD_ENDPOINT: i32 = -3;
/// A function of an endpoint called a function with its own simulation.
pub const JTK_BUSY: i32 = -4;
/// A file cannot be written.
pub const JTK_IO: i32 = -5;
/// A fault of the test kit.
pub const JTK_INTERNAL: i32 = -6;

/// Status other than [`JTK_OK`], with its message.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: i32,
    pub message: String,
}

impl Failure {
    pub fn new(code: i32, message: impl ToString) -> Self {
        Self { code, message: message.to_string() }
    }

    pub fn argument(message: impl ToString) -> Self {
        Self::new(JTK_BAD_ARGUMENT, message)
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Returns the message of the last call in this thread that did not return `JTK_OK`. It is valid
/// until the next such call.
#[unsafe(no_mangle)]
pub extern "C" fn jtk_last_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// Runs a call and returns its status. A panic does not leave it.
pub(crate) fn status(call: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return JTK_OK,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(JTK_INTERNAL, "a fault of the test kit: see the standard error"),
    };
    let text = CString::new(failure.message.replace('\0', "\\0")).unwrap_or_default();
    LAST.replace(text);
    failure.code
}
