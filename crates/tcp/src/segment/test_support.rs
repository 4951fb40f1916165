//! Segments for tests.

use jostle_congestion::QuickStartRate;

use super::{
    AccEcnFeedback, Ack, AckTag, Data, MAX_BLOCKS, SackBlock, Syn, TimestampClock, TransitTimes,
};

pub const fn syn(ecn: bool, tsval_ms: u32) -> Syn {
    Syn { ecn, rate: QuickStartRate::NONE, tsval_ms }
}

pub const fn data(number: u32, payload_bytes: u16, tsval_ms: u32, cwr: bool) -> Data {
    Data { cwr, payload_bytes, number, tsval_ms, tsecr_ms: 0, trip: TransitTimes::NONE }
}

/// Returns an ACK without SACK blocks.
pub const fn ack(number: u32, tsecr_ms: u32, window: u32, ece: bool) -> Ack {
    Ack {
        tag: AckTag::Ack,
        ece,
        duplicate: false,
        block_count: 0,
        accecn: AccEcnFeedback::NONE,
        clock: TimestampClock(0),
        number,
        tsecr_ms,
        window,
        blocks: [SackBlock { start: 0, end: 0 }; MAX_BLOCKS],
    }
}
