//! Windowed maximum filter of model-based controllers.

/// Maximum over a sliding window in constant space: the best, second and third best value, each
/// from a later part of the window (Kathleen Nichols' algorithm, `lib/win_minmax.c` in Linux).
/// "Time" is any counter that never falls: rounds, or nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMax {
    best: [(u64, u64); 3],
}

impl WindowedMax {
    /// The maximum.
    #[inline]
    pub fn get(&self) -> u64 {
        self.best[0].1
    }

    /// Discards all values except `value`, measured at `time`.
    #[inline]
    pub fn reset(&mut self, time: u64, value: u64) -> u64 {
        self.best = [(time, value); 3];
        value
    }

    /// Converts the stored values to another unit. The conversion must preserve their order.
    pub(crate) fn convert(&mut self, unit: impl Fn(u64) -> u64) {
        for (_, value) in &mut self.best {
            *value = unit(*value);
        }
    }

    /// Adds `value`, measured at `time`. Returns the maximum over the last `window`.
    #[inline]
    pub fn update(&mut self, window: u64, time: u64, value: u64) -> u64 {
        if value >= self.best[0].1 || time - self.best[2].0 > window {
            return self.reset(time, value);
        }
        if value >= self.best[1].1 {
            self.best[2] = (time, value);
            self.best[1] = (time, value);
        } else if value >= self.best[2].1 {
            self.best[2] = (time, value);
        }
        let maximum = self.expire(window, time, value);
        debug_assert!(self.best.is_sorted_by(|a, b| a.0 <= b.0 && a.1 >= b.1), "{:?}", self.best);
        maximum
    }

    /// Moves later candidates up as the best one expires.
    fn expire(&mut self, window: u64, time: u64, value: u64) -> u64 {
        let age = time - self.best[0].0;
        if age > window {
            self.best = [self.best[1], self.best[2], (time, value)];
            if time - self.best[0].0 > window {
                self.best = [self.best[1], self.best[2], (time, value)];
            }
        } else if self.best[1].0 == self.best[0].0 && age > window / 4 {
            // A quarter of the window has passed without a second candidate: take one from this
            // quarter.
            self.best[1] = (time, value);
            self.best[2] = (time, value);
        } else if self.best[2].0 == self.best[1].0 && age > window / 2 {
            self.best[2] = (time, value);
        }
        self.best[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_leaves_with_its_window() {
        let mut filter = WindowedMax::default();
        filter.reset(0, 100);
        for time in 1..=10 {
            assert_eq!(filter.update(10, time, 50), 100, "at {time}");
        }
        assert_eq!(filter.update(10, 11, 50), 50);
    }

    #[test]
    fn a_new_maximum_counts_at_once() {
        let mut filter = WindowedMax::default();
        filter.reset(0, 1);
        assert_eq!(filter.update(10, 3, 7), 7);
    }
}
