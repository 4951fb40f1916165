//! All tests, in one program.
#![allow(clippy::unwrap_used, clippy::expect_used)] // Clippy takes only functions marked `#[test]` for tests.
#![allow(missing_docs)]
#![allow(clippy::duplicate_mod)] // Two stacks of one family share the code of their endpoint.

mod files;
mod museum;
mod network;
mod noq_stack;
mod quinn_stack;
mod smoltcp_stack;
mod transfers;
