//! COBALT, CAKE's control of one queue: CoDel, written anew so that its rate of drops falls as it rose,
//! and BLUE beside it, against flows that take no notice of CoDel (Linux `net/sched/sch_cake.c`). The
//! square root of the control law is computed here, approximated on 32 bits there.

use jostle_units::{FULL_PACKET_BYTES, Rate, Span, Stream, Time};

/// BLUE: the chance of a drop grows by 1/256 with an overflow, and falls by 1/4096 with an empty queue.
const BLUE_UP: f64 = 1.0 / 256.0;
const BLUE_DOWN: f64 = 1.0 / 4096.0;

/// What COBALT aims at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Law {
    pub target: Span,
    pub interval: Span,
    /// Time of a full packet at the shaper's rate; zero without one.
    pub packet: Span,
}

impl Law {
    /// The target is a twentieth of the interval (`tc`, `q_cake.c`).
    /// `cake_set_rate`: it is never less than one and a half full packets, and the interval grows
    /// by as much as the target does.
    pub fn new(interval: Span, rate: Option<Rate>) -> Self {
        let target = Span::from_ns((interval.as_ns() / 20).max(1));
        let packet = rate.map_or(Span::ZERO, |r| r.time_for(u64::from(FULL_PACKET_BYTES)));
        let longer = packet.mul_div(3, 2).max(target);
        let interval = (interval + longer - target).max(longer.mul_div(2, 1));
        Self { target: longer, interval, packet }
    }
}

/// What COBALT remembers of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    count: u32,
    /// 1 / √count as of the last change of `count`. It is 0 until there was one, so that the first drop
    /// of a queue's life comes without waiting for an interval, as in Linux.
    scale: f64,
    dropping: bool,
    next_drop: Time,
    /// BLUE's chance of a drop.
    chance: f64,
    blue_changed: Time,
}

/// What becomes of a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl State {
    #[inline]
    fn step(&self, from: Time, law: &Law) -> Time {
        from + Span::from_ns((law.interval.as_ns() as f64 * self.scale) as u64)
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.scale = 1.0 / libm::sqrt(f64::from(count.max(1)));
    }

    /// `cobalt_should_drop`: what becomes of a packet that waited so long, whose transport understands
    /// marks or not.
    #[inline]
    pub fn judge(
        &mut self,
        law: &Law,
        now: Time,
        waited: Span,
        capable: bool,
        random: &mut Stream,
    ) -> Verdict {
        let over = waited > law.target && waited > law.packet.mul_div(4, 1);
        let mut past_due = now > self.next_drop;
        let mut due = self.count > 0 && now >= self.next_drop;
        let mut verdict = Verdict::Pass;
        if over && !self.dropping {
            self.dropping = true;
            self.next_drop = self.step(now, law);
        }
        self.dropping = over;
        if over && self.count == 0 {
            // Without touching the scale.
            self.count = 1;
        }
        if due && self.dropping {
            verdict = if capable { Verdict::Mark } else { Verdict::Drop };
            self.set_count(self.count.saturating_add(1));
            self.next_drop = self.step(self.next_drop, law);
            past_due = now > self.next_drop;
        } else {
            while due {
                self.set_count(self.count - 1);
                self.next_drop = self.step(self.next_drop, law);
                past_due = now > self.next_drop;
                due = self.count > 0 && now >= self.next_drop;
            }
        }
        // That BLUE knows no marks is on purpose there.
        if self.chance > 0.0 && random.chance(self.chance) {
            verdict = Verdict::Drop;
        }
        // `drop_next` is a timeout of activity as well.
        if self.count == 0 {
            self.next_drop = now + law.interval;
        } else if past_due && verdict != Verdict::Drop {
            self.next_drop = now;
        }
        verdict
    }

    /// `cobalt_queue_full`: a packet of the queue was dropped for want of room.
    pub fn overflowed(&mut self, law: &Law, now: Time) {
        if now.since(self.blue_changed) > law.target {
            self.chance = (self.chance + BLUE_UP).min(1.0);
            self.blue_changed = now;
        }
        self.dropping = true;
        self.next_drop = now;
        self.count = self.count.max(1);
    }

    /// `cobalt_queue_empty`: it was the queue's turn, and it had nothing. Says whether its state is at
    /// rest.
    pub fn was_empty(&mut self, law: &Law, now: Time) -> bool {
        if self.chance > 0.0 && now.since(self.blue_changed) > law.target {
            self.chance = (self.chance - BLUE_DOWN).max(0.0);
            self.blue_changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.next_drop {
            self.set_count(self.count - 1);
            self.next_drop = self.step(self.next_drop, law);
        }
        self.chance == 0.0 && self.count == 0 && now >= self.next_drop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Law =
        Law { target: Span::from_ms(5), interval: Span::from_ms(100), packet: Span::ZERO };

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn slow_links_have_longer_targets() {
        let law = |bps| Law::new(LAW.interval, Some(Rate::from_bps(bps)));
        // A packet takes 1.2 ms at 10 Mbit/s, 12.1 ms at 1 Mbit/s.
        assert_eq!((law(10_000_000).target, law(10_000_000).interval), (LAW.target, LAW.interval));
        assert_eq!(law(1_000_000).target, Span::from_us(18_168));
        assert_eq!(law(1_000_000).interval, Span::from_us(113_168));
        assert_eq!(Law::new(LAW.interval, None), LAW);
    }

    /// Packets every millisecond that have waited for 20 ms.
    fn drops(state: &mut State, from: u64, to: u64, capable: bool) -> Vec<u64> {
        let mut random = Stream::new(1, "cobalt");
        let hit = |at: &u64| {
            state.judge(&LAW, ms(*at), Span::from_ms(20), capable, &mut random) != Verdict::Pass
        };
        (from..to).filter(hit).collect()
    }

    #[test]
    fn drops_come_faster_and_after_a_rest_go_on_where_they_were() {
        let mut state = State::default();
        let first = drops(&mut state, 1_000, 1_600, false);
        // At once as nothing ever happened to the queue, then after 100 ms divided by √2, √3, √4, …
        assert_eq!(first[..5], [1_001, 1_071, 1_129, 1_179, 1_224]);
        // Ten milliseconds of short delays: it begins again where it was, in less than an interval.
        let mut random = Stream::new(1, "cobalt");
        for at in 1_600..1_610 {
            let verdict = state.judge(&LAW, ms(at), Span::from_ms(1), false, &mut random);
            assert_eq!(verdict, Verdict::Pass);
        }
        let again = drops(&mut state, 1_610, 1_700, false);
        assert!(again[0] < 1_660, "{again:?}");
        // After long rest it has forgotten, and waits for an interval.
        for at in 1_700..9_000 {
            state.judge(&LAW, ms(at), Span::from_ms(1), false, &mut random);
        }
        assert_eq!(state.count, 0);
        assert_eq!(drops(&mut state, 9_000, 9_200, false)[0], 9_100);
    }

    #[test]
    fn capable_packets_are_marked() {
        let mut state = State::default();
        let mut random = Stream::new(1, "cobalt");
        state.judge(&LAW, ms(1), Span::from_ms(20), true, &mut random);
        let verdict = state.judge(&LAW, ms(2), Span::from_ms(20), true, &mut random);
        assert_eq!(verdict, Verdict::Mark);
    }

    #[test]
    fn blue_rises_with_overflows_and_falls_while_the_queue_is_empty() {
        let mut state = State::default();
        for at in 1..100u64 {
            state.overflowed(&LAW, ms(10 * at));
        }
        assert!((state.chance - 99.0 / 256.0).abs() < 1e-12);
        state.overflowed(&LAW, ms(992));
        assert!((state.chance - 99.0 / 256.0).abs() < 1e-12, "once in a target's time");
        let mut at = 1_000;
        while !state.was_empty(&LAW, ms(at)) {
            at += 10;
        }
        // 99 × 16 steps, each 10 ms.
        assert!((16_000..18_500).contains(&at), "{at}");
    }
}
