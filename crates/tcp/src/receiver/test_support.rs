//! Processing of segments with their ACKs, for tests.

use super::*;

/// A [`SegmentArrival`] with its ACKs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalWithAcks {
    pub bytes: u64,
    pub early: Option<Ack>,
    pub ack: Option<Ack>,
    pub reopens: bool,
}

/// Processes a data segment and builds its ACKs.
pub(crate) fn take(receiver: &mut Receiver, now: Time, data: &Data, ecn: Ecn) -> ArrivalWithAcks {
    let SegmentArrival { bytes, early, answers, reopens } = receiver.on_data(now, data, ecn);
    let taken = receiver.take_immediate_ack();
    assert_eq!(taken.is_some(), early);
    ArrivalWithAcks { bytes, early: taken, ack: answers.then(|| receiver.build_ack(now)), reopens }
}

/// Acknowledges all data received so far.
pub(crate) fn acknowledge(receiver: &mut Receiver, now: Time) -> Ack {
    receiver.acknowledge();
    receiver.build_ack(now)
}
