//! Congestion controllers, one file or folder each.

mod bbr;
mod bbr3;
mod cubic;
#[cfg(test)]
mod fixtures;
mod hybla;
mod modest_bbr;
mod reno;
mod vegas;
mod vivace;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cubic::Cubic;
pub use hybla::Hybla;
pub use modest_bbr::ModestBbr;
pub use reno::Reno;
pub use vegas::Vegas;
pub use vivace::Vivace;

pub(crate) use bbr::ROW as BBR;
pub(crate) use bbr3::ROW as BBR3;
pub(crate) use cubic::ROW as CUBIC;
pub(crate) use hybla::ROW as HYBLA;
pub(crate) use modest_bbr::ROW as MODEST_BBR;
pub(crate) use reno::ROW as RENO;
pub(crate) use vegas::ROW as VEGAS;
pub(crate) use vivace::ROW as VIVACE;
