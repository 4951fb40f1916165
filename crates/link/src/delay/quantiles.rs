//! Distributions of durations, as points of their quantile function.

use jostle_units::Span;

use crate::error::{self, Error};

/// Distribution given by points of its quantile function (inverse distribution function). It is
/// linear between the points, and constant before the first and after the last.
///
/// Two points with the same probability make a gap in the values. Two points with the same value
/// make an atom.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles(Vec<Point>);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    probability: f64,
    value_ns: f64,
    /// Nanoseconds per unit of probability up to the next point.
    slope_ns: f64,
}

impl Quantiles {
    /// Creates a distribution from pairs of a probability (0 … 1) and its quantile.
    ///
    /// # Errors
    /// If there is no pair, a probability is out of range, or probabilities or values decrease.
    pub fn new(points: Vec<(f64, Span)>) -> Result<Self, Error> {
        if points.is_empty() {
            return Err(Error::Empty("quantiles"));
        }
        for (probability, _) in &points {
            error::probability("the probability of a quantile", *probability)?;
        }
        let falls = |pair: &[(f64, Span)]| pair[0].0 > pair[1].0 || pair[0].1 > pair[1].1;
        if let Some(index) = points.windows(2).position(falls) {
            return Err(Error::Order("quantiles", index + 1));
        }
        let value_ns = |index: usize| points[index].1.as_ns() as f64;
        let slope_ns = |index: usize| match points.get(index + 1) {
            Some(next) if next.0 > points[index].0 => {
                (value_ns(index + 1) - value_ns(index)) / (next.0 - points[index].0)
            }
            _ => 0.0,
        };
        let point = |(index, (probability, _)): (usize, &(f64, Span))| Point {
            probability: *probability,
            value_ns: value_ns(index),
            slope_ns: slope_ns(index),
        };
        Ok(Self(points.iter().enumerate().map(point).collect()))
    }

    /// Returns the mean in seconds.
    pub fn mean_s(&self) -> f64 {
        let (first, last) = (self.0[0], self.0[self.0.len() - 1]);
        let area = |pair: &[Point]| {
            (pair[1].probability - pair[0].probability) * (pair[0].value_ns + pair[1].value_ns)
                / 2.0
        };
        let beyond_ns =
            first.probability * first.value_ns + (1.0 - last.probability) * last.value_ns;
        (beyond_ns + self.0.windows(2).map(area).sum::<f64>()) / 1e9
    }

    /// Returns the quantile of `probability`.
    #[inline]
    pub fn value(&self, probability: f64) -> Span {
        self.value_near(probability, &mut 0)
    }

    /// Like `value`, but faster for probabilities that change little from call to call. `hint`
    /// stores the index of the last lookup; its first value is arbitrary.
    #[inline]
    pub(crate) fn value_near(&self, probability: f64, hint: &mut usize) -> Span {
        let points = self.0.as_slice();
        let mut index = (*hint).min(points.len() - 1);
        while index > 0 && points[index].probability > probability {
            index -= 1;
        }
        while index + 1 < points.len() && points[index + 1].probability <= probability {
            index += 1;
        }
        *hint = index;
        let point = points[index];
        let beyond = (probability - point.probability).max(0.0);
        Span::from_ns((point.value_ns + point.slope_ns * beyond + 0.5) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(list: &[(f64, u64)]) -> Vec<(f64, Span)> {
        list.iter().map(|(p, v)| (*p, Span::from_ms(*v))).collect()
    }

    #[test]
    fn values_are_linear_between_points_and_constant_beyond_them() {
        let table = Quantiles::new(ms(&[(0.1, 10), (0.5, 20), (0.9, 100)])).unwrap();
        for (probability, us) in [
            (0.0, 10_000),
            (0.1, 10_000),
            (0.3, 15_000),
            (0.5, 20_000),
            (0.7, 60_000),
            (0.9, 100_000),
            (1.0, 100_000),
        ] {
            assert_eq!(table.value(probability), Span::from_us(us), "at {probability}");
            for hint in 0..4 {
                assert_eq!(table.value_near(probability, &mut { hint }), table.value(probability));
            }
        }
    }

    #[test]
    fn the_mean_is_the_area_under_the_quantiles() {
        let mean_ms = |list: &[(f64, u64)]| Quantiles::new(ms(list)).unwrap().mean_s() * 1e3;
        assert!((mean_ms(&[(0.0, 2), (1.0, 4)]) - 3.0).abs() < 1e-12);
        assert!((mean_ms(&[(0.3, 4)]) - 4.0).abs() < 1e-12);
        // 0.1 · 10 + 0.4 · 15 + 0.4 · 60 + 0.1 · 100.
        assert!((mean_ms(&[(0.1, 10), (0.5, 20), (0.9, 100)]) - 41.0).abs() < 1e-12);
    }

    #[test]
    fn jumps_and_atoms_are_distributions_too() {
        let table = Quantiles::new(ms(&[(0.0, 1), (0.5, 1), (0.5, 7), (1.0, 7)])).unwrap();
        assert_eq!(table.value(0.499), Span::from_ms(1));
        assert_eq!(table.value(0.5), Span::from_ms(7));
        assert_eq!(Quantiles::new(ms(&[(0.3, 4)])).unwrap().value(0.9), Span::from_ms(4));
    }

    #[test]
    fn what_is_no_quantile_function_is_refused() {
        let refused = |list: &[(f64, u64)]| Quantiles::new(ms(list)).unwrap_err();
        assert_eq!(refused(&[]), Error::Empty("quantiles"));
        assert_eq!(refused(&[(0.5, 1), (0.4, 2)]), Error::Order("quantiles", 1));
        assert_eq!(refused(&[(0.0, 1), (0.5, 3), (1.0, 2)]), Error::Order("quantiles", 2));
        assert!(matches!(refused(&[(1.1, 1)]), Error::Range { .. }));
        assert!(matches!(refused(&[(f64::NAN, 1)]), Error::Range { .. }));
    }
}
