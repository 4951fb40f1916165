//! The two ends of a TCP connection, as Linux 6.1 behaves with SACK, timestamps and RACK, without a
//! clock, a network or an application of their own.
//!
//! Who drives a [`Sender`] or a [`Receiver`] hands it segments and the time, sends what it answers,
//! and calls it again at the time of its deadlines. A simulator does that from its event queue; tests
//! do it by hand.

mod conduct;
pub mod offload;
mod receiver;
mod runs;
mod segment;
mod sender;
mod size;

pub use conduct::{Answers, Conduct};
pub use receiver::{Arrival, Receiver};
pub use segment::{
    Ack, AckTag, Block, Clock, Data, MAX_BLOCKS, SYN_BYTES, Segment, Syn, SynAck, Trip,
    timestamp_ms,
};
pub use sender::{Acknowledged, Deadlines, Egress, Options, Sender};
