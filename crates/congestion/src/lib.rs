//! The interface between transports and congestion controllers.
//!
//! A transport reports events to a [`CongestionController`] and asks it for a congestion window and
//! a pacing rate. Time is an argument: a controller never reads a clock. [`DeliveryRateSampler`]
//! computes the delivery-rate samples of ACKs. [`transport`] contains the pacer, PRR and congestion
//! window validation. [`peer_cache`] contains the data that a host saves about its peers between
//! connections. [`ControllerLayer`] is the interface of algorithms that use this data.

#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;

mod controller;
mod controller_layer;
mod delivery_rate;
pub mod peer_cache;
mod quick_start_rate;
mod rtt_estimator;
pub mod transport;

pub use controller::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EcnFeedback, EcnMarks, EstablishedEvent, FirstFlightLimits, HostExtension, LostPacket,
    RateSample, RawAckSample, RecoveryState, SendEvent, StateObserver, TcpExtension, Timestamps,
};
pub use controller_layer::{ControllerLayer, LayeredController};
pub use delivery_rate::{DeliveryRateSampler, DeliveryUpdate, PacketDeliveryState};
pub use quick_start_rate::QuickStartRate;
pub use rtt_estimator::{RTO_MAX, RttEstimator};
