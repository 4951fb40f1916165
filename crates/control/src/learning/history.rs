//! The latest intervals as a vector.

use super::design::Design;
use super::interval::Observed;

/// An observation: the features of the latest intervals, the oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    values: Vec<f64>,
}

impl History {
    /// Nothing was observed yet.
    pub fn new(design: &Design) -> Self {
        let rest = design.features.iter().map(|feature| feature.rest);
        let values = rest.cycle().take(design.observation_len()).collect();
        Self { values }
    }

    /// The next interval, in place of the oldest.
    pub fn push(&mut self, design: &Design, observed: &Observed) {
        let features = design.features.len();
        self.values.rotate_left(features);
        let latest = self.values.len() - features;
        for (value, feature) in self.values[latest..].iter_mut().zip(&design.features) {
            // As wide as what learners work with, so that a network sees here what it saw there.
            *value = f64::from(feature.of(observed) as f32);
        }
    }

    /// The observation.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}
