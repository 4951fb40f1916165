//! What PCC's controllers are made of: monitor intervals, and who sends them.

mod interval;
mod monitor;

pub(crate) use interval::{Interval, RttTrend};
pub(crate) use monitor::{Monitor, NOMINAL_RTT};
