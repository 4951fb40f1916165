//! Receivers that do not do as Linux's: what another conduct makes of what arrives, and of the ACKs
//! that are due. One bounds its window for the sake of others (rLEDBAT); the rest lie (S. Savage et al.:
//! TCP Congestion Control with a Misbehaving Receiver, CCR 29(5), 1999).

mod optimist;
mod rledbat;

use jostle_control::Controller;
use jostle_units::{Ecn, Span, Time};

use crate::segment::{Ack, Data, SynAck};
use optimist::{Optimist, Taken};
use rledbat::Rledbat;

/// Conduct of a receiver.
#[derive(Debug)]
pub struct Conduct {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Each ACK is sent in pieces. `told`: what was acknowledged before.
    Divided { pieces: u32, told: u32 },
    /// Each ACK is sent several times.
    Repeated { copies: u32 },
    /// Nothing is said of marks.
    Unmarked,
    /// What has not come is acknowledged.
    Optimistic(Optimist),
    /// The window that is offered is a controller's.
    Rledbat(Box<Rledbat>),
}

impl Conduct {
    /// ACK division: whatever an ACK acknowledges is acknowledged in `pieces`. The pieces are of
    /// bytes, and an ACK has the number of the first segment that it does not acknowledge as a
    /// whole: those that end within a segment say nothing new.
    pub const fn divided(pieces: u32) -> Self {
        Self { kind: Kind::Divided { pieces, told: 0 } }
    }

    /// Duplicate ACK spoofing: each ACK is followed by `copies` of it.
    pub const fn repeated(copies: u32) -> Self {
        Self { kind: Kind::Repeated { copies } }
    }

    /// Never echoes that a packet was marked.
    pub const fn unmarked() -> Self {
        Self { kind: Kind::Unmarked }
    }

    /// Optimistic ACKs: with each segment that arrives, acknowledges all before it, and `lead` of
    /// what arrives in a round trip after it. `window_bytes` are offered, in segments of `mss_bytes`.
    pub fn optimistic(lead: f64, rtt: Span, window_bytes: u64, mss_bytes: u16) -> Self {
        let window = (window_bytes / u64::from(mss_bytes)) as u32;
        Self { kind: Kind::Optimistic(Optimist::new(lead, rtt, window)) }
    }

    /// rLEDBAT (RFC 9840): offers no more than `controller` allows, which is told of what arrives. The
    /// window is at most `most_bytes`, and a full segment has `mss_bytes`.
    pub fn rledbat(controller: Box<dyn Controller>, mss_bytes: u16, most_bytes: u64) -> Self {
        Self { kind: Kind::Rledbat(Box::new(Rledbat::new(controller, mss_bytes, most_bytes))) }
    }

    /// The receiver answers a SYN.
    pub fn greet(&mut self, now: Time, syn_ack: &mut SynAck) {
        if let Kind::Rledbat(rledbat) = &mut self.kind {
            rledbat.greet(now, syn_ack);
        }
    }

    /// ECN field of an arriving packet as the receiver is to see it.
    pub const fn seen(&self, ecn: Ecn) -> Ecn {
        match (&self.kind, ecn) {
            (Kind::Unmarked, Ecn::Marked) => Ecn::Capable,
            _ => ecn,
        }
    }

    /// Takes a segment of data in the receiver's place, if it does that. `part`: the card has put it
    /// together with the one that follows.
    pub fn take(&mut self, now: Time, data: &Data, part: bool) -> Option<Taken> {
        match &mut self.kind {
            Kind::Optimistic(optimist) => Some(optimist.take(now, data, part)),
            Kind::Rledbat(rledbat) => {
                rledbat.see(now, data);
                None
            }
            Kind::Divided { .. } | Kind::Repeated { .. } | Kind::Unmarked => None,
        }
    }

    /// What is sent in place of an ACK that is due.
    pub fn answers(&mut self, mut ack: Ack) -> Answers {
        let number = ack.number;
        let (first, count) = match &mut self.kind {
            Kind::Divided { pieces, told } => {
                let first = std::mem::replace(told, number.max(*told));
                (first, if number > first { *pieces } else { 1 })
            }
            Kind::Repeated { copies } => (number, *copies + 1),
            Kind::Rledbat(rledbat) => {
                rledbat.limit(&mut ack);
                (number, 1)
            }
            Kind::Unmarked | Kind::Optimistic(_) => (number, 1),
        };
        Answers { ack, first: first.min(number), count, sent: 0 }
    }
}

/// ACKs in place of one.
#[derive(Debug)]
pub struct Answers {
    ack: Ack,
    /// What was acknowledged before them.
    first: u32,
    count: u32,
    sent: u32,
}

impl Iterator for Answers {
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
