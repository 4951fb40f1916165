//! Functions that all transports with a congestion window share: pacing, Proportional Rate
//! Reduction, congestion window validation, and the timers of hosts.

mod cwnd_validation;
mod host_timers;
mod pacer;
mod prr;

pub use cwnd_validation::CwndUsage;
pub use host_timers::HostTimers;
pub use pacer::Pacer;
pub use prr::{ProportionalRateReduction, RecoverFlightSize};
