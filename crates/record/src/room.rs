//! Room for what a run records. A process that runs out of memory ends as a whole; so what is large is
//! asked for, and a run that does not get it ends alone.

use std::sync::{Arc, OnceLock};

use thiserror::Error;

use crate::RunSpec;
use crate::link_meter::LinkMeter;
use crate::sink::AckRow;
use crate::tables::{AckTable, seconds, seconds_or_nan};
use crate::timeline::Timeline;
use jostle_units::{Span, Time};

/// Most rows of ACKs, 44 bytes each.
pub(crate) const MAX_ACK_ROWS: u64 = 50_000_000;
/// Bytes of a row of the flows' series.
const FLOW_ROW_BYTES: usize = 132;
/// Rows that an empty table of ACKs makes room for.
const FIRST_ROWS: usize = 1 << 12;

/// There is no room in memory for what a run records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is no room in memory for {what} of this run, {rows} rows")]
pub struct NoRoom {
    what: &'static str,
    rows: u64,
}

/// Whether a recorder has stopped recording because it found no room.
#[derive(Clone, Debug, Default)]
pub struct Shortage(Arc<OnceLock<NoRoom>>);

impl Shortage {
    /// What there was no room for; none if there was.
    pub fn get(&self) -> Option<NoRoom> {
        self.0.get().copied()
    }
}

/// Tries whether the series of a run would fit.
///
/// # Errors
/// When they would not.
pub(crate) fn for_series(spec: &RunSpec, timeline: &Timeline) -> Result<(), NoRoom> {
    let (bins, flows, links) = (timeline.bins(), spec.flows.len(), spec.links.len());
    let bytes = bins.saturating_mul(
        (flows * FLOW_ROW_BYTES).saturating_add(links.saturating_mul(LinkMeter::BIN_BYTES)),
    );
    let mut room = Vec::<u8>::new();
    let rows = (bins as u64).saturating_mul((flows + links) as u64);
    room.try_reserve_exact(bytes).map_err(|_| NoRoom { what: "the series", rows })
}

impl AckTable {
    /// Adds a row, if there is room for it; if not, `shortage` says so from then on.
    #[inline]
    pub(crate) fn push(
        &mut self,
        now: Time,
        flow: u32,
        row: &AckRow,
        ack_rtt: Option<Span>,
        shortage: &Shortage,
    ) {
        if self.time_s.len() == self.time_s.capacity() && !self.make_room() {
            let rows = self.time_s.len() as u64 + 1;
            // What is set already is the first row that there was no room for.
            let _ = shortage.0.set(NoRoom { what: "the ACKs", rows });
            return;
        }
        self.time_s.push(seconds(now.as_ns()));
        self.flow.push(flow);
        self.rtt_s.push(seconds_or_nan(row.rtt));
        self.ack_rtt_s.push(seconds_or_nan(ack_rtt));
        self.cwnd_bytes.push(row.cwnd_bytes as f64);
        self.in_flight_bytes.push(row.in_flight_bytes as f64);
        self.acked_bytes.push(row.acked_bytes);
        self.lost_packets.push(row.lost_packets);
    }

    /// Makes room for as many rows again, in the column of times last: it tells of all.
    #[cold]
    fn make_room(&mut self) -> bool {
        let rows = self.time_s.len().max(FIRST_ROWS);
        (self.time_s.len() as u64) < MAX_ACK_ROWS
            && self.flow.try_reserve_exact(rows).is_ok()
            && self.rtt_s.try_reserve_exact(rows).is_ok()
            && self.ack_rtt_s.try_reserve_exact(rows).is_ok()
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
        let row = AckRow {
            rtt: Some(Span::from_ms(1)),
            cwnd_bytes: 14_480,
            in_flight_bytes: 14_480,
            acked_bytes: 1_448,
            lost_packets: 0,
        };
        let shortage = Shortage::default();
        let mut table = AckTable::default();
        table.push(Time::ZERO, 0, &row, None, &shortage);
        assert_eq!((table.time_s.len(), shortage.get()), (1, None));
        // As long as it may become: no column has room for another row.
        table.time_s = vec![0.0; MAX_ACK_ROWS as usize];
        table.time_s.shrink_to_fit();
        table.push(Time::ZERO, 0, &row, None, &shortage);
        assert_eq!(table.flow.len(), 1);
        let message = shortage.get().map(|shortage| shortage.to_string());
        assert_eq!(
            message.as_deref(),
            Some("there is no room in memory for the ACKs of this run, 50000001 rows")
        );
    }
}
