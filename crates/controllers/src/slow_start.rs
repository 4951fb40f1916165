//! Slow-start methods: the growth of a window-based controller below ssthresh. One file each.

mod algorithm;
mod capstart;
mod first_flight;
mod hystart;
mod hystart_plus_plus;
mod jumpstart;
mod limited;
mod paced_chirping;
mod quickstart;
mod search;
mod standard;
pub(crate) mod stopeg;
mod suss;

pub use algorithm::SlowStart;
pub use capstart::CapStart;
pub use hystart::HyStart;
pub use hystart_plus_plus::HyStartPlusPlus;
pub use jumpstart::JumpStart;
pub use limited::Limited;
pub use paced_chirping::PacedChirping;
pub use quickstart::QuickStart;
pub use search::Search;
pub use standard::Standard;
pub use stopeg::StopEg;
pub use suss::Suss;

pub(crate) use capstart::ROW as CAPSTART;
pub(crate) use hystart::{PAPER_ROW as HYSTART_PAPER, ROW as HYSTART};
pub(crate) use hystart_plus_plus::ROW as HYSTART_PLUS_PLUS;
pub(crate) use jumpstart::ROW as JUMPSTART;
pub(crate) use limited::ROW as LIMITED;
pub(crate) use paced_chirping::ROW as PACED_CHIRPING;
pub(crate) use quickstart::ROW as QUICKSTART;
pub(crate) use search::ROW as SEARCH;
pub(crate) use standard::ROW as STANDARD;
pub(crate) use stopeg::ROW as STOPEG;
pub(crate) use suss::ROW as SUSS;
