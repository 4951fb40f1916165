//! COBALT, the AQM of CAKE for one queue: CoDel with a drop rate that decreases gradually, combined
//! with BLUE against flows that do not react to CoDel (Linux `net/sched/sch_cake.c`). Difference
//! from Linux: the control law uses an exact square root, while Linux approximates it on 32 bits.

use jostle_units::{FULL_PACKET_BYTES, RandomStream, Rate, Span, Time};

/// BLUE: an overflow increases the drop probability by 1/256; an empty queue reduces it by 1/4096.
const BLUE_UP: f64 = 1.0 / 256.0;
const BLUE_DOWN: f64 = 1.0 / 4096.0;

/// Parameters of COBALT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CobaltParameters {
    pub target: Span,
    pub interval: Span,
    /// Transmission time of a full-sized packet at the shaper's rate; zero without a shaper.
    pub packet: Span,
}

impl CobaltParameters {
    /// Computes the parameters from the interval and the rate. The target is a twentieth of the
    /// interval (`tc`, `q_cake.c`), but at least one and a half full-sized packets; the interval
    /// grows by as much as the target (`sch_cake.c::cake_set_rate`).
    pub fn new(interval: Span, rate: Option<Rate>) -> Self {
        let target = Span::from_ns((interval.as_ns() / 20).max(1));
        let packet = rate.map_or(Span::ZERO, |r| r.time_for(u64::from(FULL_PACKET_BYTES)));
        let longer = packet.mul_div(3, 2).max(target);
        let interval = (interval + longer - target).max(longer.mul_div(2, 1));
        Self { target: longer, interval, packet }
    }
}

/// State of COBALT for one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CobaltState {
    count: u32,
    /// 1 / √count at the last change of `count`. It is 0 before the first change, so that the first
    /// drop of a new queue does not wait for an interval, as in Linux.
    scale: f64,
    dropping: bool,
    next_drop: Time,
    /// Drop probability of BLUE.
    chance: f64,
    blue_changed: Time,
}

/// Decision on a packet that leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CobaltAction {
    Pass,
    Mark,
    Drop,
}

impl CobaltState {
    #[inline]
    fn step(&self, from: Time, parameters: &CobaltParameters) -> Time {
        from + Span::from_ns((parameters.interval.as_ns() as f64 * self.scale) as u64)
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.scale = 1.0 / libm::sqrt(f64::from(count.max(1)));
    }

    /// `sch_cake.c::cobalt_should_drop`: decides on a packet that waited for `waited`. `capable`
    /// means that its transport supports ECN.
    #[inline]
    pub fn judge(
        &mut self,
        parameters: &CobaltParameters,
        now: Time,
        waited: Span,
        capable: bool,
        random: &mut RandomStream,
    ) -> CobaltAction {
        let over = waited > parameters.target && waited > parameters.packet.mul_div(4, 1);
        let mut past_due = now > self.next_drop;
        let mut due = self.count > 0 && now >= self.next_drop;
        let mut verdict = CobaltAction::Pass;
        if over && !self.dropping {
            self.dropping = true;
            self.next_drop = self.step(now, parameters);
        }
        self.dropping = over;
        if over && self.count == 0 {
            // Linux does not update the scale here.
            self.count = 1;
        }
        if due && self.dropping {
            verdict = if capable { CobaltAction::Mark } else { CobaltAction::Drop };
            self.set_count(self.count.saturating_add(1));
            self.next_drop = self.step(self.next_drop, parameters);
            past_due = now > self.next_drop;
        } else {
            while due {
                self.set_count(self.count - 1);
                self.next_drop = self.step(self.next_drop, parameters);
                past_due = now > self.next_drop;
                due = self.count > 0 && now >= self.next_drop;
            }
        }
        // BLUE drops ECN-capable packets as well; this is intended in Linux.
        if self.chance > 0.0 && random.chance(self.chance) {
            verdict = CobaltAction::Drop;
        }
        // `drop_next` also serves as an activity timeout.
        if self.count == 0 {
            self.next_drop = now + parameters.interval;
        } else if past_due && verdict != CobaltAction::Drop {
            self.next_drop = now;
        }
        verdict
    }

    /// `sch_cake.c::cobalt_queue_full`: handles a drop because of overflow.
    pub fn overflowed(&mut self, parameters: &CobaltParameters, now: Time) {
        if now.since(self.blue_changed) > parameters.target {
            self.chance = (self.chance + BLUE_UP).min(1.0);
            self.blue_changed = now;
        }
        self.dropping = true;
        self.next_drop = now;
        self.count = self.count.max(1);
    }

    /// `sch_cake.c::cobalt_queue_empty`: handles a turn with an empty queue. Returns whether the
    /// state has decayed.
    pub fn was_empty(&mut self, parameters: &CobaltParameters, now: Time) -> bool {
        if self.chance > 0.0 && now.since(self.blue_changed) > parameters.target {
            self.chance = (self.chance - BLUE_DOWN).max(0.0);
            self.blue_changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.next_drop {
            self.set_count(self.count - 1);
            self.next_drop = self.step(self.next_drop, parameters);
        }
        self.chance == 0.0 && self.count == 0 && now >= self.next_drop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: CobaltParameters = CobaltParameters {
        target: Span::from_ms(5),
        interval: Span::from_ms(100),
        packet: Span::ZERO,
    };

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn slow_links_have_longer_targets() {
        let parameters = |bps| CobaltParameters::new(LAW.interval, Some(Rate::from_bps(bps)));
        // A packet takes 1.2 ms at 10 Mbit/s, 12.1 ms at 1 Mbit/s.
        assert_eq!(
            (parameters(10_000_000).target, parameters(10_000_000).interval),
            (LAW.target, LAW.interval)
        );
        assert_eq!(parameters(1_000_000).target, Span::from_us(18_168));
        assert_eq!(parameters(1_000_000).interval, Span::from_us(113_168));
        assert_eq!(CobaltParameters::new(LAW.interval, None), LAW);
    }

    /// Packets every millisecond that have waited for 20 ms.
    fn drops(state: &mut CobaltState, from: u64, to: u64, capable: bool) -> Vec<u64> {
        let mut random = RandomStream::new(1, "cobalt");
        let hit = |at: &u64| {
            state.judge(&LAW, ms(*at), Span::from_ms(20), capable, &mut random)
                != CobaltAction::Pass
        };
        (from..to).filter(hit).collect()
    }

    #[test]
    fn drops_come_faster_and_after_a_rest_go_on_where_they_were() {
        let mut state = CobaltState::default();
        let first = drops(&mut state, 1_000, 1_600, false);
        // At once as nothing ever happened to the queue, then after 100 ms divided by √2, √3, √4, …
        assert_eq!(first[..5], [1_001, 1_071, 1_129, 1_179, 1_224]);
        // Ten milliseconds of short delays: it begins again where it was, in less than an interval.
        let mut random = RandomStream::new(1, "cobalt");
        for at in 1_600..1_610 {
            let verdict = state.judge(&LAW, ms(at), Span::from_ms(1), false, &mut random);
            assert_eq!(verdict, CobaltAction::Pass);
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
        let mut state = CobaltState::default();
        let mut random = RandomStream::new(1, "cobalt");
        state.judge(&LAW, ms(1), Span::from_ms(20), true, &mut random);
        let verdict = state.judge(&LAW, ms(2), Span::from_ms(20), true, &mut random);
        assert_eq!(verdict, CobaltAction::Mark);
    }

    #[test]
    fn blue_rises_with_overflows_and_falls_while_the_queue_is_empty() {
        let mut state = CobaltState::default();
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
