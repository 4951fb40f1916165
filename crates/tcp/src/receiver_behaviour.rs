//! Receivers that deviate from Linux: they change the processing of segments or the ACKs. rLEDBAT
//! limits its window to yield to other flows. The others are misbehaving receivers (S. Savage et
//! al.: TCP Congestion Control with a Misbehaving Receiver, CCR 29(5), 1999).

mod optimistic_ack;
mod rledbat;

use jostle_congestion::CongestionController;
use jostle_units::{Ecn, Span, Time};

use crate::segment::{Ack, Data};
use optimistic_ack::{OptimisticAcker, OptimisticArrival};
use rledbat::Rledbat;

/// Behaviour of a receiver that deviates from Linux.
#[derive(Debug)]
pub struct ReceiverBehaviour {
    kind: ReceiverBehaviourKind,
}

#[derive(Debug)]
enum ReceiverBehaviourKind {
    /// Splits each ACK. `last_ack`: the number of the previous ACK.
    Divided { pieces: u32, last_ack: u32 },
    /// Sends each ACK several times.
    Repeated { copies: u32 },
    /// Does not echo ECN marks.
    Unmarked,
    /// Acknowledges data that has not arrived.
    Optimistic(OptimisticAcker),
    /// Limits the offered window by a congestion controller.
    Rledbat(Box<Rledbat>),
}

impl ReceiverBehaviour {
    /// ACK division: splits the data that an ACK confirms into `pieces`. The pieces are byte
    /// ranges, but an ACK contains the number of the first segment that is not completely
    /// acknowledged. Pieces that end within a segment therefore repeat the previous ACK.
    pub const fn ack_division(pieces: u32) -> Self {
        Self { kind: ReceiverBehaviourKind::Divided { pieces, last_ack: 0 } }
    }

    /// Duplicate ACK spoofing: sends `copies` of each ACK after it.
    pub const fn dupack_spoofing(copies: u32) -> Self {
        Self { kind: ReceiverBehaviourKind::Repeated { copies } }
    }

    /// Hides ECN marks: never echoes a mark.
    pub const fn hides_ecn_marks() -> Self {
        Self { kind: ReceiverBehaviourKind::Unmarked }
    }

    /// Optimistic ACKs: with each arriving segment, acknowledges all data before it, and in advance
    /// the fraction `lead` of the data that arrives per round trip. The offered window is
    /// `window_bytes`, in segments of `mss_bytes`.
    pub fn optimistic_acking(lead: f64, rtt: Span, window_bytes: u64, mss_bytes: u16) -> Self {
        let window = (window_bytes / u64::from(mss_bytes)) as u32;
        Self { kind: ReceiverBehaviourKind::Optimistic(OptimisticAcker::new(lead, rtt, window)) }
    }

    /// rLEDBAT (RFC 9840): limits the window to cwnd of `controller`, which processes the arriving
    /// segments. The window is at most `most_bytes`. A full-sized segment carries `mss_bytes`.
    pub fn rledbat(
        controller: Box<dyn CongestionController>,
        mss_bytes: u16,
        most_bytes: u64,
    ) -> Self {
        Self {
            kind: ReceiverBehaviourKind::Rledbat(Box::new(Rledbat::new(
                controller, mss_bytes, most_bytes,
            ))),
        }
    }

    /// Limits the first window that the receiver offers after a SYN, in segments.
    pub fn on_syn(&mut self, now: Time, window: &mut u32) {
        if let ReceiverBehaviourKind::Rledbat(rledbat) = &mut self.kind {
            rledbat.on_syn(now, window);
        }
    }

    /// Returns the ECN field that the receiver sees of an arriving packet.
    pub const fn visible_ecn(&self, ecn: Ecn) -> Ecn {
        match (&self.kind, ecn) {
            (ReceiverBehaviourKind::Unmarked, Ecn::Marked) => Ecn::Capable,
            _ => ecn,
        }
    }

    /// Processes a data segment in place of the receiver, if this behaviour does so. `part`: the
    /// NIC merged the segment with the following one.
    pub fn receive_data(
        &mut self,
        now: Time,
        data: &Data,
        part: bool,
    ) -> Option<OptimisticArrival> {
        match &mut self.kind {
            ReceiverBehaviourKind::Optimistic(optimist) => Some(optimist.take(now, data, part)),
            ReceiverBehaviourKind::Rledbat(rledbat) => {
                rledbat.see(now, data);
                None
            }
            ReceiverBehaviourKind::Divided { .. }
            | ReceiverBehaviourKind::Repeated { .. }
            | ReceiverBehaviourKind::Unmarked => None,
        }
    }

    /// Returns the ACKs to send in place of `ack`.
    pub fn acks_for(&mut self, mut ack: Ack) -> ForgedAcks {
        let number = ack.number;
        let (first, count) = match &mut self.kind {
            ReceiverBehaviourKind::Divided { pieces, last_ack } => {
                let first = std::mem::replace(last_ack, number.max(*last_ack));
                (first, if number > first { *pieces } else { 1 })
            }
            ReceiverBehaviourKind::Repeated { copies } => (number, *copies + 1),
            ReceiverBehaviourKind::Rledbat(rledbat) => {
                rledbat.limit(&mut ack);
                (number, 1)
            }
            ReceiverBehaviourKind::Unmarked | ReceiverBehaviourKind::Optimistic(_) => (number, 1),
        };
        ForgedAcks { ack, first: first.min(number), count, sent: 0 }
    }
}

/// ACKs that replace an ACK.
#[derive(Debug)]
pub struct ForgedAcks {
    ack: Ack,
    /// Number of the previous ACK.
    first: u32,
    count: u32,
    sent: u32,
}

impl Iterator for ForgedAcks {
    type Item = Ack;

    fn next(&mut self) -> Option<Ack> {
        if self.sent == self.count {
            return None;
        }
        self.sent += 1;
        let acked = u64::from(self.ack.number - self.first) * u64::from(self.sent);
        let number = self.first + (acked / u64::from(self.count)) as u32;
        Some(Ack { number, ..self.ack })
    }
}

#[cfg(test)]
mod tests;
