//! Alternative Backoff with ECN (RFC 8511): a mark reduces the window less than a loss. A queue
//! that sets marks is short, so that halving the window would leave the link idle.

use jostle_registry::{Parameter, ParameterValues};

use crate::cwnd::CongestionWindow;
use jostle_congestion::{CongestionEvent, CongestionSignal};

/// Parameter of controllers whose response to a loss is too strong for a mark: Alternative Backoff
/// with ECN (RFC 8511). RFC 8511 §3.1 recommends 0.8 if a loss halves the window, and found a
/// benefit of 0.85 for CUBIC. Linux does not implement it.
pub(crate) const BETA_ECN: Parameter = Parameter::number("beta_ecn", 0.0, 0.0..=0.99).summary(
    "share of cwnd that a mark keeps in congestion avoidance (RFC 8511: 0.8, CUBIC 0.85); 0: same \
     response as to a loss",
);

/// β_ecn of a connection; 0 if the response to a mark equals that to a loss.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Abe {
    beta_ecn: f64,
}

impl Abe {
    /// Reads the parameter [`BETA_ECN`].
    pub fn new(values: &ParameterValues) -> Self {
        Self { beta_ecn: values.number(BETA_ECN.name) }
    }

    /// Returns the share of the window that a mark leaves (RFC 8511 §3); 0 for other signals. The
    /// RFC describes "the TCP sender-side ECN reaction in congestion avoidance". In slow start the
    /// window may be twice the path's capacity, and the response to a mark equals the response to a
    /// loss.
    pub fn share(self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        if congestion.signal != CongestionSignal::Ecn || window.in_slow_start() {
            return 0.0;
        }
        self.beta_ecn
    }

    /// Returns the window after a mark in packets.
    pub fn cwnd_after_mark(self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        (f64::from(window.cwnd) * self.share(window, congestion)) as u32
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use jostle_registry::ParameterValue;
    use jostle_units::{RandomStream, Time};

    use super::*;
    use crate::registry;
    use jostle_congestion::CongestionController;

    fn with_abe(
        name: &str,
        beta_ecn: f64,
        cwnd: u32,
        ssthresh: u32,
    ) -> Box<dyn CongestionController> {
        let given = BTreeMap::from([("beta_ecn".to_owned(), ParameterValue::Number(beta_ecn))]);
        let start = registry::slow_start("standard").unwrap().create(&BTreeMap::new()).unwrap();
        let row = registry::controller(name).unwrap();
        let mut controller = row.create(&given, start, RandomStream::new(1, "test")).unwrap();
        controller.set_cwnd(cwnd);
        controller.set_ssthresh(ssthresh);
        controller
    }

    fn signal(controller: &mut dyn CongestionController, signal: CongestionSignal) {
        let now = Time::ZERO;
        controller.on_congestion_event(&CongestionEvent {
            now,
            signal,
            in_flight: 0,
            next_to_send: 0,
        });
    }

    /// RFC 8511 §3: ssthresh = β·FlightSize and 2 packets at least, with β_ecn for a mark. A loss
    /// halves as ever; in slow start, and where it is off, so does a mark.
    #[test]
    fn a_mark_may_leave_more_than_a_loss() {
        for (beta_ecn, cwnd, ssthresh, what, left) in [
            (0.8, 100, 50, CongestionSignal::Ecn, 80),
            (0.8, 101, 50, CongestionSignal::Ecn, 80),
            (0.85, 100, 50, CongestionSignal::Ecn, 85),
            (0.8, 2, 2, CongestionSignal::Ecn, 2),
            (0.8, 100, 50, CongestionSignal::Loss, 50),
            (0.8, 100, 50, CongestionSignal::Timeout, 50),
            (0.8, 100, 200, CongestionSignal::Ecn, 50),
            (0.0, 100, 50, CongestionSignal::Ecn, 50),
            // The RFC's β_ecn is never below β.
            (0.3, 100, 50, CongestionSignal::Ecn, 50),
        ] {
            let mut controller = with_abe("reno", beta_ecn, cwnd, ssthresh);
            signal(controller.as_mut(), what);
            assert_eq!(controller.ssthresh(), Some(left), "{what:?} with {beta_ecn} at {cwnd}");
        }
    }

    /// Whatever a row does on a loss, the parameter says what a mark leaves, if it is more.
    #[test]
    fn every_row_with_the_parameter_heeds_it() {
        let rows = registry::CONTROLLERS.iter().map(|row| &row.entry);
        let rows = rows.filter(|entry| entry.parameters.iter().any(|p| p.name == BETA_ECN.name));
        let mut found = 0;
        for entry in rows {
            let mut controller = with_abe(entry.name, 0.96, 1_000, 500);
            signal(controller.as_mut(), CongestionSignal::Ecn);
            assert_eq!(controller.ssthresh(), Some(960), "{}", entry.name);
            let mut controller = with_abe(entry.name, 0.96, 1_000, 500);
            signal(controller.as_mut(), CongestionSignal::Loss);
            assert!(controller.ssthresh().unwrap() < 900, "{}", entry.name);
            found += 1;
        }
        assert_eq!(found, 9);
    }
}
