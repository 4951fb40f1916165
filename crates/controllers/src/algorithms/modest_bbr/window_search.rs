//! The proportion of BBR's window in Modest BBR: a binary search after a loss, then a linear
//! increase.

use jostle_registry::{LinuxRelease, Parameter, ParameterValues};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::number("w_max", 1.0, 0.1..=1.0)
        .summary("upper end of the search after a loss, relative to cwnd before the loss"),
    Parameter::number("w_min", 0.75, 0.1..=1.0)
        .summary("lower end of the search after a loss, relative to cwnd before the loss"),
    Parameter::integer("s_min", 1, 1..=1_000_000).summary(
        "distance of the ends, in packets, at which the search is over; also the increase after it",
    ),
    Parameter::choice("increase", "per ack", &["per ack", "per round trip"])
        .summary("interval at which cwnd grows by s_min after the search"),
    Parameter::choice("control", "cwnd and pacing", &["cwnd and pacing", "cwnd"])
        .summary("quantities that the proportion scales"),
    Parameter::bool("ratchet", false)
        .summary("a loss during the increase starts from the current window, not from BBR's"),
    Parameter::choice("linux", "6.1", LinuxRelease::CHOICES).summary("kernel whose BBR is used"),
];

/// Parameters of the search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    w_max: f64,
    w_min: f64,
    s_min: u32,
    increases_per_round: bool,
    ratchet: bool,
}

impl Parameters {
    pub(super) fn new(values: &ParameterValues) -> Self {
        Self {
            w_max: values.number("w_max"),
            w_min: values.number("w_min"),
            s_min: values.u32("s_min"),
            increases_per_round: values.choice("increase") == "per round trip",
            ratchet: values.bool("ratchet"),
        }
    }
}

/// Phase of the reaction to the latest loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// No reaction: the window is BBR's.
    #[default]
    Whole,
    /// Binary search between two bounds, one step per round trip (`bin_p`).
    Search { low: u32, high: u32 },
    /// Linear increase to the window before the loss (`add_p`).
    Increase,
}

/// Window of the search, and the window before the loss.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowSearch {
    phase: Phase,
    window: u32,
    /// `last_cwnd`: the window before the loss.
    whole: u32,
    /// Whether a packet was lost in this round.
    lossy: bool,
}

impl WindowSearch {
    /// Returns the window while it differs from BBR's.
    pub(super) fn window(&self) -> Option<u32> {
        (self.phase != Phase::Whole).then_some(self.window)
    }

    /// Returns the window divided by the window before the loss, at most 1.
    pub(super) fn proportion(&self) -> f64 {
        self.window().map_or(1.0, |window| f64::from(window) / f64::from(self.whole.max(1)))
    }

    pub(super) fn name(&self) -> Option<&'static str> {
        match self.phase {
            Phase::Whole => None,
            Phase::Search { .. } => Some("binary_search"),
            Phase::Increase => Some("linear_increase"),
        }
    }

    /// Processes an ACK. `lossy`: it reports losses. `round`: it starts a round trip. `target`:
    /// BBR's window.
    pub(super) fn on_ack(&mut self, p: &Parameters, lossy: bool, round: bool, target: u32) {
        match self.phase {
            Phase::Search { low, high } => {
                self.lossy |= lossy;
                if round {
                    self.halve(p, low, high);
                }
            }
            _ if lossy => self.start(p, target),
            Phase::Increase if round || !p.increases_per_round => self.grow(p),
            _ => {}
        }
    }

    /// Line 1 of the algorithm: a retransmission while no search is in progress.
    fn start(&mut self, p: &Parameters, target: u32) {
        self.whole = self.window().filter(|_| p.ratchet).unwrap_or(target);
        let part = |share: f64| ((f64::from(self.whole) * share) as u32).max(1);
        let (low, top) = (part(p.w_min), part(p.w_max));
        self.lossy = false;
        self.bound(p, low, low.midpoint(top.max(low)));
        self.window = low.midpoint(top.max(low));
    }

    /// Line 7, where the paper prints `bin_p = 0` but can only mean 1: a round trip with the
    /// current window has ended.
    fn halve(&mut self, p: &Parameters, low: u32, high: u32) {
        let middle = low.midpoint(high);
        self.window = middle;
        let lossy = core::mem::take(&mut self.lossy);
        let (low, high) = if lossy { (low, middle) } else { (middle, high) };
        self.bound(p, low, high);
    }

    fn bound(&mut self, p: &Parameters, low: u32, high: u32) {
        let done = high - low <= p.s_min;
        self.phase = if done { Phase::Increase } else { Phase::Search { low, high } };
    }

    /// Lines 20 to 24. The `≤` of line 20 would overshoot the window before the loss.
    fn grow(&mut self, p: &Parameters) {
        self.window = self.window.saturating_add(p.s_min);
        if self.window >= self.whole {
            self.phase = Phase::Whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::MODEST_BBR;
    use alloc::collections::BTreeMap;
    use jostle_registry::ParameterValue;

    fn parameters(given: &[(&str, ParameterValue)]) -> Parameters {
        let given: BTreeMap<_, _> =
            given.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        Parameters::new(&MODEST_BBR.entry.resolve(&given).unwrap())
    }

    /// 800 packets: the search begins between 600 and 700.
    fn after_a_loss(p: &Parameters) -> WindowSearch {
        let mut search = WindowSearch::default();
        search.on_ack(p, false, true, 800);
        assert_eq!((search.window(), search.proportion()), (None, 1.0));
        search.on_ack(p, true, false, 800);
        assert_eq!((search.window(), search.proportion()), (Some(700), 0.875));
        search
    }

    #[test]
    fn rounds_without_loss_come_back_to_the_upper_end() {
        let p = parameters(&[]);
        let mut search = after_a_loss(&p);
        let mut windows = Vec::new();
        while search.name() == Some("binary_search") {
            search.on_ack(&p, false, true, 800);
            windows.push(search.window);
        }
        assert_eq!(windows, [650, 675, 687, 693, 696, 698, 699]);
    }

    #[test]
    fn rounds_with_loss_go_down_to_the_lower_end() {
        let p = parameters(&[]);
        let mut search = after_a_loss(&p);
        let mut windows = Vec::new();
        while search.name() == Some("binary_search") {
            search.on_ack(&p, true, false, 800);
            search.on_ack(&p, false, true, 800);
            windows.push(search.window);
        }
        assert_eq!(windows, [650, 625, 612, 606, 603, 601]);
    }

    #[test]
    fn s_min_ends_the_search_sooner() {
        let p = parameters(&[("s_min", ParameterValue::Integer(20))]);
        let mut search = after_a_loss(&p);
        for window in [650, 675, 687] {
            assert_eq!(search.name(), Some("binary_search"));
            search.on_ack(&p, false, true, 800);
            assert_eq!(search.window, window);
        }
        assert_eq!(search.name(), Some("linear_increase"));
    }

    fn increasing(p: &Parameters) -> WindowSearch {
        let mut search = after_a_loss(p);
        while search.name() == Some("binary_search") {
            search.on_ack(p, false, true, 800);
        }
        search
    }

    #[test]
    fn the_increase_ends_at_the_window_before_the_loss() {
        let p = parameters(&[]);
        let mut search = increasing(&p);
        for grown in 1..=100 {
            search.on_ack(&p, false, false, 800);
            assert_eq!(search.window(), Some(699 + grown));
        }
        search.on_ack(&p, false, false, 800);
        assert_eq!(search.window(), None);
    }

    /// Line 22 of the algorithm: `cwnd = cwnd + S_min`.
    #[test]
    fn the_increase_is_s_min_packets() {
        let p = parameters(&[("s_min", ParameterValue::Integer(20))]);
        let mut search = increasing(&p);
        let mut windows = Vec::new();
        while let Some(window) = search.window() {
            windows.push(window);
            search.on_ack(&p, false, false, 800);
        }
        assert_eq!(windows, [687, 707, 727, 747, 767, 787]);
    }

    #[test]
    fn the_other_reading_grows_once_per_round_trip() {
        let p = parameters(&[("increase", ParameterValue::Text("per round trip".to_owned()))]);
        let mut search = increasing(&p);
        for ack in 0..100 {
            search.on_ack(&p, false, ack % 10 == 0, 800);
        }
        assert_eq!(search.window(), Some(699 + 10));
    }

    #[test]
    fn a_relapse_starts_from_bbrs_window_unless_it_is_told_to_ratchet() {
        for (ratchet, expected) in [(false, 700), (true, (699 * 3 / 4 + 699) / 2)] {
            let p = parameters(&[("ratchet", ParameterValue::Bool(ratchet))]);
            let mut search = increasing(&p);
            search.on_ack(&p, true, false, 800);
            assert_eq!(search.window(), Some(expected));
        }
    }
}
