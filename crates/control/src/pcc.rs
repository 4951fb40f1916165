//! What PCC's controllers are made of: monitor intervals, who sends them, trials of rates, and all that a
//! transport sees of them.

mod controller;
mod interval;
mod monitor;
pub(crate) mod parameters;
mod trials;

pub(crate) use controller::{Experiments, Pcc};
pub(crate) use interval::{Interval, RttTrend};
pub(crate) use monitor::{Monitor, NOMINAL_RTT};
pub(crate) use trials::{Trials, Tried};
