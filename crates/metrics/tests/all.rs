//! Measures as tests, one file a subject. One program: each would be linked with the crate anew.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

#[path = "../../run-spec/tests/common/mod.rs"]
mod common;

mod limits;
mod measures;
mod properties;
mod sampling;
mod summary_shape;
