//! Common parts of PCC's controllers: monitor intervals, the monitor that sends them, trials of
//! rates, and the interface to the transport.

mod controller;
mod monitor;
mod monitor_interval;
pub(crate) mod parameters;
mod rate_trials;

pub(crate) use controller::{Pcc, RateExperiment};
pub(crate) use monitor::{IntervalMonitor, MIN_PACKETS_PER_RTT, NOMINAL_RTT};
pub(crate) use monitor_interval::{MonitorInterval, RttTrend};
pub(crate) use rate_trials::{RateTrials, RateUtility};
