//! One program, as in the other crates.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../controllers/tests/common/mod.rs"]
mod common;
mod recorder;
mod replay;
