//! All tests, in one program.
#![allow(clippy::unwrap_used, clippy::expect_used)] // Clippy takes only functions marked `#[test]` for tests.
#![allow(missing_docs)]

#[cfg(unix)]
mod c_program;
mod header;
mod wrong_arguments;
