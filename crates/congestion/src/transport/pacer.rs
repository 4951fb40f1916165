//! Pacing: the departure time of the next packet.

use jostle_units::{Rate, Span, Time};

/// The pacing state of a flow (`sk_pacing_rate`, `tcp_wstamp_ns`).
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    /// Pacing rate. If packets are not paced, it only determines the burst size.
    pub rate: Rate,
    /// Whether packets are paced.
    pub on: bool,
    /// `tcp_wstamp_ns`: earliest departure time of the next packet.
    pub departure: Time,
}

impl Pacer {
    /// Packets sent before pacing begins, as under `fq`: "does not pace first 10".
    pub const UNPACED_PACKETS: u64 = 10;

    /// Creates a pacer that does not delay the first packet.
    #[inline]
    pub const fn new(on: bool) -> Self {
        Self { rate: Rate::MAX, on, departure: Time::ZERO }
    }

    /// Returns the pacing rate, if packets are paced.
    #[inline]
    pub fn visible_rate(&self) -> Option<Rate> {
        (self.on && self.rate < Rate::MAX).then_some(self.rate)
    }

    /// Returns the departure time of the next packet, if pacing delays it
    /// (`tcp_output.c::tcp_pacing_check`).
    #[inline]
    pub fn waits_until(&self, now: Time) -> Option<Time> {
        (self.on && self.departure > now).then_some(self.departure)
    }

    /// Returns the departure time of a packet sent now, which is not before the departure of its
    /// predecessor.
    #[inline]
    pub fn depart(&self, now: Time) -> Time {
        // If pacing is switched off, delayed packets may be sent at once.
        if self.on { self.departure.max(now) } else { now }
    }

    /// Schedules the next packet `gap` after `departure`, for a packet of a chirp. The gaps are the
    /// measurement, so that a late packet does not shorten the next gap.
    #[inline]
    pub fn advance_by(&mut self, departure: Time, gap: Span) {
        self.departure = departure + gap;
    }

    /// Schedules the next packet after `payload_bytes` left at `departure`
    /// (`tcp_output.c::tcp_update_skb_after_send`). If a late timer delayed the packet, the next
    /// gap shrinks by the delay, but by at most half. `begun`: whether pacing has begun.
    #[inline]
    pub fn advance(&mut self, departure: Time, payload_bytes: u64, begun: bool) {
        let credit = departure.since(self.departure);
        self.departure = departure;
        if self.on && self.rate.as_bps() > 0 && begun && self.rate < Rate::MAX {
            let time = self.rate.time_for(payload_bytes);
            self.departure += time - time.mul_div(1, 2).min(credit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn us(us: u64) -> Time {
        Time::from_ns(us * 1_000)
    }

    /// 1 byte per µs.
    fn pacer() -> Pacer {
        Pacer { rate: Rate::from_bps(8_000_000), ..Pacer::new(true) }
    }

    #[test]
    fn packets_leave_at_the_rate() {
        let mut pacer = pacer();
        pacer.departure = us(100);
        pacer.advance(us(100), 50, true);
        assert_eq!(pacer.waits_until(us(149)), Some(us(150)));
        assert_eq!(pacer.waits_until(us(150)), None);
        assert_eq!(pacer.depart(us(120)), us(150));
        assert_eq!(pacer.visible_rate(), Some(Rate::from_bps(8_000_000)));
    }

    #[test]
    fn what_left_late_makes_up_for_half_of_its_time() {
        for (late_us, next_us) in [(10, 140), (25, 125), (80, 125)] {
            let mut pacer = pacer();
            pacer.departure = us(100 - late_us);
            pacer.advance(us(100), 50, true);
            assert_eq!(pacer.departure, us(next_us), "{late_us} µs late");
        }
    }

    #[test]
    fn nothing_waits_before_pacing_has_begun_or_where_there_is_none() {
        let mut early = pacer();
        early.advance(us(7), 1_448, false);
        assert_eq!(early.waits_until(us(7)), None);
        let mut free = Pacer::new(false);
        free.advance(us(7), 1_448, true);
        assert_eq!((free.waits_until(us(7)), free.depart(us(7))), (None, us(7)));
        assert_eq!(free.visible_rate(), None);
        let mut unlimited = Pacer::new(true);
        unlimited.advance(us(7), 1_448, true);
        assert_eq!((unlimited.waits_until(us(7)), unlimited.visible_rate()), (None, None));
    }

    #[test]
    fn gaps_of_a_chirp_are_kept_as_they_are() {
        let mut pacer = pacer();
        pacer.advance_by(us(100), Span::from_us(3));
        assert_eq!(pacer.departure, us(103));
    }

    proptest! {
        /// Over any sequence of sendings no more leaves than the rate, and half of one packet more.
        #[test]
        fn no_more_leaves_than_the_rate(steps in prop::collection::vec((0u64..400, 1u64..200), 1..100)) {
            let mut pacer = pacer();
            let (mut now, mut bytes) = (Time::ZERO, 0);
            for (wait_us, size) in steps {
                now = (now + Span::from_us(wait_us)).max(pacer.depart(now));
                prop_assert!(bytes <= now.as_ns() / 1_000 + 100, "{bytes} bytes at {now}");
                let departure = pacer.depart(now);
                pacer.advance(departure, size, true);
                prop_assert!(pacer.departure >= departure);
                // Late packets make up for at most half of their time, each anew.
                bytes += size / 2;
            }
        }
    }
}
