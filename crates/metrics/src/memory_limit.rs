//! Memory checks for the records of a run. A process that runs out of memory is aborted with all
//! its runs. Large allocations therefore use `try_reserve`, so that only the run that needs them
//! fails.

use std::sync::{Arc, OnceLock};

use thiserror::Error;

use crate::event_sink::AckEvent;
use crate::link_meter::LinkMeter;
use crate::tables::{AckTable, seconds, seconds_or_nan};
use crate::timeline::Timeline;
use jostle_run_spec::{MAX_ACK_ROWS, RunSpec};
use jostle_units::{FlowId, Span, Time};

/// Bytes of a row of the flows' series.
const FLOW_ROW_BYTES: usize = 132;
/// Rows of the first allocation of an ACK table.
const FIRST_ROWS: usize = 1 << 12;

/// Error: there is not enough memory for the records of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is no room in memory for {what} of this run, {rows} rows")]
pub struct OutOfMemory {
    what: &'static str,
    rows: u64,
}

/// Shared flag that a recorder sets when it stops recording because memory ran out.
#[derive(Clone, Debug, Default)]
pub struct MemoryShortage(Arc<OnceLock<OutOfMemory>>);

impl MemoryShortage {
    /// Returns the allocation that failed, or `None`.
    pub fn get(&self) -> Option<OutOfMemory> {
        self.0.get().copied()
    }
}

/// Checks whether the series of a run fits into memory.
///
/// # Errors
/// If it does not fit.
pub(crate) fn for_series(spec: &RunSpec, timeline: &Timeline) -> Result<(), OutOfMemory> {
    let (bins, flows, links) = (timeline.bins(), spec.flows.len(), spec.links.len());
    let bytes = bins.saturating_mul(
        (flows * FLOW_ROW_BYTES).saturating_add(links.saturating_mul(LinkMeter::BIN_BYTES)),
    );
    let mut room = Vec::<u8>::new();
    let rows = (bins as u64).saturating_mul((flows + links) as u64);
    room.try_reserve_exact(bytes).map_err(|_| OutOfMemory { what: "the series", rows })
}

impl AckTable {
    /// Adds a row. If there is no memory for it, sets `shortage`.
    #[inline]
    pub(crate) fn push(
        &mut self,
        now: Time,
        flow: FlowId,
        row: &AckEvent,
        segment_rtt: Option<Span>,
        shortage: &MemoryShortage,
    ) {
        if self.time_s.len() == self.time_s.capacity() && !self.reserve() {
            let rows = self.time_s.len() as u64 + 1;
            // `set` keeps the first failed row.
            let _ = shortage.0.set(OutOfMemory { what: "the ACKs", rows });
            return;
        }
        self.time_s.push(seconds(now.as_ns()));
        self.flow.push(flow.0);
        self.rtt_s.push(seconds_or_nan(row.rtt));
        self.segment_rtt_s.push(seconds_or_nan(segment_rtt));
        self.cwnd_bytes.push(row.cwnd_bytes as f64);
        self.in_flight_bytes.push(row.in_flight_bytes as f64);
        self.acked_bytes.push(row.acked_bytes);
        self.lost_packets.push(row.lost_packets);
    }

    /// Doubles the capacity. The time column is last, because its capacity is the one that `push`
    /// checks.
    #[cold]
    fn reserve(&mut self) -> bool {
        let rows = self.time_s.len().max(FIRST_ROWS);
        (self.time_s.len() as u64) < MAX_ACK_ROWS
            && self.flow.try_reserve_exact(rows).is_ok()
            && self.rtt_s.try_reserve_exact(rows).is_ok()
            && self.segment_rtt_s.try_reserve_exact(rows).is_ok()
            && self.cwnd_bytes.try_reserve_exact(rows).is_ok()
            && self.in_flight_bytes.try_reserve_exact(rows).is_ok()
            && self.acked_bytes.try_reserve_exact(rows).is_ok()
            && self.lost_packets.try_reserve_exact(rows).is_ok()
            && self.time_s.try_reserve_exact(rows).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_room_stops_and_says_so() {
        let row = AckEvent {
            rtt: Some(Span::from_ms(1)),
            cwnd_bytes: 14_480,
            in_flight_bytes: 14_480,
            acked_bytes: 1_448,
            lost_packets: 0,
        };
        let shortage = MemoryShortage::default();
        let mut table = AckTable::default();
        table.push(Time::ZERO, FlowId(0), &row, None, &shortage);
        assert_eq!((table.time_s.len(), shortage.get()), (1, None));
        // As long as it may become: no column has room for another row.
        table.time_s = vec![0.0; MAX_ACK_ROWS as usize];
        table.time_s.shrink_to_fit();
        table.push(Time::ZERO, FlowId(0), &row, None, &shortage);
        assert_eq!(table.flow.len(), 1);
        let message = shortage.get().map(|shortage| shortage.to_string());
        assert_eq!(
            message.as_deref(),
            Some("there is no room in memory for the ACKs of this run, 50000001 rows")
        );
    }
}
