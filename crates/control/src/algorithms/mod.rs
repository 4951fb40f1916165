//! Congestion controllers, one file or folder each.

mod bbr;
mod bbr3;
mod cdg;
mod cubic;
mod dctcp;
#[cfg(test)]
pub(crate) mod fixtures;
mod hybla;
mod illinois;
mod lp;
mod modest_bbr;
mod nv;
mod reno;
mod round_rtts;
mod vegas;
mod veno;
mod vivace;
mod yeah;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cdg::Cdg;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use hybla::Hybla;
pub use illinois::Illinois;
pub use lp::Lp;
pub use modest_bbr::ModestBbr;
pub use nv::Nv;
pub use reno::Reno;
pub use vegas::Vegas;
pub use veno::Veno;
pub use vivace::Vivace;
pub use yeah::Yeah;

pub(crate) use bbr::ROW as BBR;
pub(crate) use bbr3::ROW as BBR3;
pub(crate) use cdg::ROW as CDG;
pub(crate) use cubic::ROW as CUBIC;
pub(crate) use dctcp::ROW as DCTCP;
pub(crate) use hybla::ROW as HYBLA;
pub(crate) use illinois::ROW as ILLINOIS;
pub(crate) use lp::ROW as LP;
pub(crate) use modest_bbr::ROW as MODEST_BBR;
pub(crate) use nv::ROW as NV;
pub(crate) use reno::ROW as RENO;
pub(crate) use vegas::ROW as VEGAS;
pub(crate) use veno::ROW as VENO;
pub(crate) use vivace::ROW as VIVACE;
pub(crate) use yeah::ROW as YEAH;
