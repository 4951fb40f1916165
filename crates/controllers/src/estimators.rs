//! Estimators on ACKs: round trips, rates, maxima.

mod acked_bytes;
mod packet_pairs;
mod round_rtts;
mod rtt_range;
mod windowed_max;

pub(crate) use acked_bytes::AckedBytes;
pub(crate) use packet_pairs::PacketPairs;
pub(crate) use round_rtts::RoundRtts;
pub(crate) use rtt_range::RttRange;
pub use windowed_max::WindowedMax;
