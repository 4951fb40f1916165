//! Congestion controllers, one file or folder each.

mod bbr;
mod bic;
mod cubic;
#[cfg(test)]
mod fixtures;
mod highspeed;
mod htcp;
mod hybla;
mod reno;
mod scalable;
mod vegas;
mod vivace;
mod westwood;

pub use bbr::Bbr;
pub use bic::Bic;
pub use cubic::Cubic;
pub use highspeed::HighSpeed;
pub use htcp::Htcp;
pub use hybla::Hybla;
pub use reno::Reno;
pub use scalable::Scalable;
pub use vegas::Vegas;
pub use vivace::Vivace;
pub use westwood::Westwood;

pub(crate) use bbr::ROW as BBR;
pub(crate) use bic::ROW as BIC;
pub(crate) use cubic::ROW as CUBIC;
pub(crate) use highspeed::ROW as HIGHSPEED;
pub(crate) use htcp::ROW as HTCP;
pub(crate) use hybla::ROW as HYBLA;
pub(crate) use reno::ROW as RENO;
pub(crate) use scalable::ROW as SCALABLE;
pub(crate) use vegas::ROW as VEGAS;
pub(crate) use vivace::ROW as VIVACE;
pub(crate) use westwood::ROW as WESTWOOD;
