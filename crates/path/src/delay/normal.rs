//! The standard normal distribution function by table: a third of the time of `erfc`.

/// Points per unit.
const DENSITY: f64 = 16.0;

/// Where the table ends: beyond it the probability is less than 10⁻⁹.
const END: f64 = 6.0;

/// Values and slopes at equidistant points, cubic (Hermite) in between. The error is at most
/// h⁴/384 · max |φ‴| = 6·10⁻⁸.
#[derive(Clone, Debug)]
pub struct NormalTable(Vec<Node>);

#[derive(Clone, Copy, Debug)]
struct Node {
    value: f64,
    /// Derivative by the position in units of the distance between points.
    slope: f64,
}

impl NormalTable {
    pub fn new() -> Self {
        let density = 1.0 / libm::sqrt(2.0 * std::f64::consts::PI);
        let node = |index: usize| {
            let z = index as f64 / DENSITY - END;
            Node { value: exact(z), slope: density * libm::exp(-0.5 * z * z) / DENSITY }
        };
        Self((0..=(2.0 * END * DENSITY) as usize).map(node).collect())
    }

    /// The probability of a value up to `z`.
    #[inline]
    pub fn probability(&self, z: f64) -> f64 {
        let position = (z + END) * DENSITY;
        // A cast of what lies before the table gives 0, and of NaN too.
        let index = position as usize;
        let (Some(a), Some(b)) = (self.0.get(index), self.0.get(index + 1)) else { return 1.0 };
        let t = (position - index as f64).max(0.0);
        let rise = b.value - a.value;
        let cubic = (a.slope - rise) * (1.0 - t) + (rise - b.slope) * t;
        a.value + t * (rise + (1.0 - t) * cubic)
    }
}

fn exact(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_function_and_never_falls() {
        let table = NormalTable::new();
        let mut before = 0.0;
        for step in -80_000..80_000 {
            let z = f64::from(step) * 1e-4 + 3e-5;
            let probability = table.probability(z);
            assert!((probability - exact(z)).abs() < 6e-8, "{probability} at {z}");
            assert!(probability >= before && probability <= 1.0);
            before = probability;
        }
        assert!((table.probability(-1.0) - 0.158_655_253_931_457_05).abs() < 1e-15);
        assert_eq!(table.probability(0.0), 0.5);
    }
}
