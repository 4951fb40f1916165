//! Congestion controllers, one file or folder each.

mod bbr;
mod cubic;
mod dctcp;
#[cfg(test)]
mod fixtures;
mod hybla;
mod prague;
mod reno;
mod vegas;
mod vivace;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use hybla::Hybla;
pub use prague::Prague;
pub use reno::Reno;
pub use vegas::Vegas;
pub use vivace::Vivace;

pub(crate) use bbr::ROW as BBR;
pub(crate) use cubic::ROW as CUBIC;
pub(crate) use dctcp::ROW as DCTCP;
pub(crate) use hybla::ROW as HYBLA;
pub(crate) use prague::ROW as PRAGUE;
pub(crate) use reno::ROW as RENO;
pub(crate) use vegas::ROW as VEGAS;
pub(crate) use vivace::ROW as VIVACE;
