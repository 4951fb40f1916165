//! What a segment brings about, with the ACKs themselves.

use super::*;

/// An [`Arrival`], and the ACKs that it asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub bytes: u64,
    pub early: Option<Ack>,
    pub ack: Option<Ack>,
    pub reopens: bool,
}

/// A data segment arrives, and its ACKs leave.
pub(crate) fn take(receiver: &mut Receiver, now: Time, data: &Data, ecn: Ecn) -> Seen {
    let Arrival { bytes, early, answers, reopens } = receiver.on_data(now, data, ecn);
    let taken = receiver.take_early();
    assert_eq!(taken.is_some(), early);
    Seen { bytes, early: taken, ack: answers.then(|| receiver.answer(now)), reopens }
}

/// What has arrived is acknowledged now.
pub(crate) fn acknowledge(receiver: &mut Receiver, now: Time) -> Ack {
    receiver.acknowledge();
    receiver.answer(now)
}
