//! The two ends of a TCP connection with SACK, timestamps and RACK, modelled on Linux 6.1. They
//! contain no clock, network or application.
//!
//! The caller passes segments and the current time to a [`Sender`] or [`Receiver`], sends the
//! segments that it returns, and calls it again at its deadlines. A simulator does this from its
//! event queue, tests do it directly.

pub mod gro;
mod out_of_order;
mod receiver;
mod receiver_behaviour;
mod reciprocal_division;
mod segment;
mod sender;

pub use receiver::{Receiver, SegmentArrival};
pub use receiver_behaviour::{ForgedAcks, ReceiverBehaviour};
pub use segment::{
    AccEcnFeedback, Ack, AckTag, Data, DataWithAck, MAX_BLOCKS, SYN_BYTES, SackBlock, Segment, Syn,
    SynAck, TimestampClock, TransitTimes, timestamp_ms,
};
pub use sender::{AckOutcome, SegmentSink, Sender, SenderConfig, SenderTimers};
