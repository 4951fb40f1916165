//! Limits of a run that the validation and other crates share.

/// Maximum number of flows with captures. Each flow needs two open files.
pub const CAPTURED_FLOWS_MAX: usize = 100;
/// Maximum number of rows in the table of ACKs, 44 bytes each.
pub const MAX_ACK_ROWS: u64 = 50_000_000;
/// Maximum number of objects of a web page.
pub const MOST_OBJECTS: u64 = 10_000;
