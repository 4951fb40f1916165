//! Timers of a host, which may be coarse or late.

use jostle_units::{Span, Time};

/// The first level of the timer wheel expires its timers on every tick, the next level on every
/// eighth tick, and so on (`timer.c`: `LVL_CLK_SHIFT`).
const LEVEL_SHIFT: u32 = 3;
/// Ticks up to which a timer is on the first level (`LVL_SIZE` − 1).
const FIRST_LEVEL_TICKS: u64 = 63;
/// Levels of the wheel (`LVL_DEPTH`).
const LEVELS: u32 = 9;
/// `TCP_TIMEOUT_MIN`, in ticks.
const TIMEOUT_MIN_TICKS: u64 = 2;
/// The same of a kernel with 1,000 ticks per second.
const TIMEOUT_MIN: Span = Span::from_ms(2);

/// Timers of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTimers {
    /// Time between two ticks, on which the timers of TCP expire (`1 / CONFIG_HZ`); `None`: they
    /// expire at the exact time.
    pub tick: Option<Span>,
    /// Time by which timers of pacing, and all timers of QUIC, expire too late.
    pub slack: Span,
    /// Time of which these timers expire at multiples; zero: at any time.
    pub resolution: Span,
}

impl HostTimers {
    /// All timers expire at the exact time.
    pub const EXACT: Self = Self { tick: None, slack: Span::ZERO, resolution: Span::ZERO };

    /// Returns when a timer of TCP expires that is set at `now` for `at`
    /// (`timer.c::calc_wheel_index`). It never expires early: its time is rounded up to ticks
    /// (`usecs_to_jiffies`), and to the next step of its level of the wheel.
    #[inline]
    pub fn on_wheel(&self, now: Time, at: Time) -> Time {
        match self.tick {
            Some(tick) if at < Time::NEVER => wheel_expiry(tick.as_ns(), now, at),
            _ => at,
        }
    }

    /// Returns when a timer of high resolution expires that is set for `at`.
    #[inline]
    pub fn with_slack(&self, at: Time) -> Time {
        let at = at + self.slack;
        match self.resolution.as_ns() {
            0 | 1 => at,
            step_ns => Time::from_ns(at.as_ns().div_ceil(step_ns).saturating_mul(step_ns)),
        }
    }

    /// Returns the time that TCP adds to loss probes and reordering timers (`TCP_TIMEOUT_MIN`).
    #[inline]
    pub fn timeout_min(&self) -> Span {
        self.tick.map_or(TIMEOUT_MIN, |tick| tick.mul_div(TIMEOUT_MIN_TICKS, 1))
    }
}

#[cold]
fn wheel_expiry(tick_ns: u64, now: Time, at: Time) -> Time {
    let ticks = at.since(now).as_ns().div_ceil(tick_ns);
    let expires = now.as_ns() / tick_ns + ticks;
    let level = (0..LEVELS - 1)
        .find(|level| ticks < FIRST_LEVEL_TICKS << (LEVEL_SHIFT * level))
        .unwrap_or(LEVELS - 1);
    let shift = LEVEL_SHIFT * level;
    Time::from_ns((((expires >> shift) + 1) << shift) * tick_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::from_ns(us * 1_000)
    }

    fn hz(hz: u64) -> HostTimers {
        HostTimers { tick: Some(Span::from_ns(1_000_000_000 / hz)), ..HostTimers::EXACT }
    }

    /// `timer.c`: "HZ 1000": levels of 1, 8, 64 and 512 ms; "HZ 250": 4, 32, 256 and 2048 ms.
    #[test]
    fn long_timers_are_coarser() {
        for (ticks_per_s, now_us, span_ms, expiry_us) in [
            (1_000, 500, 40, 41_000),
            (1_000, 999, 62, 63_000),
            (1_000, 0, 63, 64_000),
            (1_000, 0, 64, 72_000),
            (1_000, 5_000, 498, 504_000),
            (1_000, 0, 504, 512_000),
            (1_000, 0, 3_000, 3_008_000),
            (1_000, 10_000, 3_000, 3_072_000),
            (1_000, 0, 4_032, 4_096_000),
            (250, 0, 40, 44_000),
            (250, 0, 200, 204_000),
            (250, 3_999, 200, 204_000),
            (250, 0, 252, 256_000),
            (250, 0, 1_000, 1_024_000),
        ] {
            let at = us(now_us + 1_000 * span_ms);
            let expiry = hz(ticks_per_s).on_wheel(us(now_us), at);
            assert_eq!(expiry, us(expiry_us), "{span_ms} ms at {ticks_per_s} Hz");
        }
    }

    #[test]
    fn no_timer_expires_early_or_more_than_an_eighth_late() {
        for hz in [100, 250, 300, 1_000].map(hz) {
            let tick = hz.tick.unwrap_or_default();
            for i in 0..20_000 {
                let (now, span) = (us(i * 7_919), Span::from_us(1 + i * i % 120_000_011));
                let expiry = hz.on_wheel(now, now + span);
                assert!(expiry > now + span - tick && expiry >= now + Span::from_ns(1), "{span}");
                let latest = now + span + span.mul_div(1, 7) + tick + tick;
                assert!(expiry <= latest, "{span} at {now}: {expiry}");
            }
        }
    }

    #[test]
    fn exact_timers_expire_in_time() {
        let exact = HostTimers::EXACT;
        assert_eq!(exact.on_wheel(us(3), us(7)), us(7));
        assert_eq!(exact.with_slack(us(7)), us(7));
        assert_eq!(hz(250).on_wheel(us(3), Time::NEVER), Time::NEVER);
        assert_eq!((exact.timeout_min(), hz(250).timeout_min()), (TIMEOUT_MIN, Span::from_ms(8)));
    }

    #[test]
    fn coarse_timers_expire_at_multiples_of_their_resolution() {
        let slack = Span::from_us(50);
        let coarse = HostTimers { slack, resolution: Span::from_ms(1), ..HostTimers::EXACT };
        for (at_us, expiry_us) in [(0, 1_000), (950, 1_000), (951, 2_000)] {
            assert_eq!(coarse.with_slack(us(at_us)), us(expiry_us));
        }
    }
}
