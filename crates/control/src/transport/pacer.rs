//! Pacing: when the next packet may leave.

use jostle_units::{Rate, Span, Time};

/// The gaps between a flow's packets (`sk_pacing_rate`, `tcp_wstamp_ns`).
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    /// Also the measure of a burst where packets are not paced.
    pub rate: Rate,
    /// Packets leave one after the other at the rate.
    pub on: bool,
    /// `tcp_wstamp_ns`: when pacing lets the next packet leave.
    pub departure: Time,
}

impl Pacer {
    /// One that holds nothing back yet.
    #[inline]
    pub const fn new(on: bool) -> Self {
        Self { rate: Rate::MAX, on, departure: Time::ZERO }
    }

    /// The rate at which packets leave, if they are paced.
    #[inline]
    pub fn visible_rate(&self) -> Option<Rate> {
        (self.on && self.rate < Rate::MAX).then_some(self.rate)
    }

    /// When the next packet may leave, if that is not now (`tcp_pacing_check`).
    #[inline]
    pub fn waits_until(&self, now: Time) -> Option<Time> {
        (self.on && self.departure > now).then_some(self.departure)
    }

    /// The time that a packet sent now carries: never before that of its predecessor.
    #[inline]
    pub fn depart(&self, now: Time) -> Time {
        // What pacing held back may leave at once when pacing ends.
        if self.on { self.departure.max(now) } else { now }
    }

    /// A packet of a chirp left: the next one follows after `gap`. The gaps are the measurement: a
    /// late packet is not made up for by a shorter gap.
    #[inline]
    pub fn advance_by(&mut self, departure: Time, gap: Span) {
        self.departure = departure + gap;
    }

    /// `payload_bytes` left at `departure`: when the next packet may leave
    /// (`tcp_update_skb_after_send`). One that left late, since a timer did, makes up for up to half
    /// of its own time. `begun`: pacing has begun.
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
