//! Functions that all transports with a congestion window share: pacing, Proportional Rate
//! Reduction and congestion window validation.

mod cwnd_validation;
mod pacer;
mod prr;

pub use cwnd_validation::CwndUsage;
pub use pacer::Pacer;
pub use prr::{ProportionalRateReduction, RecoverFlightSize};
