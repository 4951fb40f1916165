//! Congestion controllers and slow-start methods without input or output of their own.
//!
//! A transport tells a [`Controller`] what happened and asks it for a congestion window and a
//! pacing rate. Time is passed in; a controller never reads a clock and draws random numbers only
//! from the stream it was given. [`Sampler`] turns a transport's sends and ACKs into the samples
//! that controllers work on.

pub mod algorithms;
mod controller;
mod estimate;
#[cfg(test)]
mod fixtures;
mod jiffies;
pub mod learning;
pub mod memory;
mod pcc;
mod rate_code;
pub mod registry;
mod row;
mod rtt_estimator;
mod sampler;
pub mod slow_start;
pub mod transport;
mod window;
mod windowed;

pub use controller::{
    AckSample, Congestion, Controller, EcnFeedback, Established, HostExtension, LostPacket, Marks,
    Measurement, Observer, Prospect, RateSample, RecoveryOwner, RecoveryState, Sent, Signal,
    TcpExtension, Timestamps,
};
pub use estimate::WindowedMax;
pub use rate_code::RateCode;
pub use rtt_estimator::RttEstimator;
pub use sampler::{Delivery, Sampler, SendStamp};
pub use slow_start::SlowStart;
pub use window::{INFINITE_SSTHRESH, Window};
pub use windowed::{WindowLaw, Windowed};
