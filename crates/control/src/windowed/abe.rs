//! Alternative Backoff with ECN (RFC 8511): a mark costs less than a loss, for what marks keeps short
//! queues, and a window that is halved would leave the link idle.

use jostle_catalogue::{Kind, Parameter, Values};

use crate::controller::{Congestion, Signal};
use crate::window::Window;

/// The parameter of rows whose answer to a loss is too much for a mark: Alternative Backoff with ECN
/// (RFC 8511). Its §3.1 asks for 0.8 where a loss halves the window, and found that CUBIC gains by
/// 0.85. Linux does not have it.
pub(crate) const BETA_ECN: Parameter = Parameter {
    name: "beta_ecn",
    summary: "share of the window that a mark leaves in congestion avoidance (RFC 8511: 0.8, CUBIC \
              0.85); 0 to answer it as a loss",
    kind: Kind::Number { default: 0.0, min: 0.0, max: 0.99 },
};

/// β_ecn of a connection; 0 if a mark is answered as a loss.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Abe {
    beta_ecn: f64,
}

impl Abe {
    /// As the parameter [`BETA_ECN`] says.
    pub fn new(values: &Values) -> Self {
        Self { beta_ecn: values.number(BETA_ECN.name) }
    }

    /// The share of the window that a mark leaves at least (RFC 8511, §3); 0 for another signal. The
    /// RFC is about "the TCP sender-side ECN reaction in congestion avoidance": in slow start the
    /// window may be twice what the path holds, and a mark is answered as a loss.
    pub fn share(self, window: &Window, congestion: &Congestion) -> f64 {
        if congestion.signal != Signal::Ecn || window.in_slow_start() {
            return 0.0;
        }
        self.beta_ecn
    }

    /// The same in packets.
    pub fn left_by(self, window: &Window, congestion: &Congestion) -> u32 {
        (f64::from(window.cwnd) * self.share(window, congestion)) as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jostle_catalogue::Value;
    use jostle_units::{Stream, Time};

    use super::*;
    use crate::controller::Controller;
    use crate::registry;

    fn with_abe(name: &str, beta_ecn: f64, cwnd: u32, ssthresh: u32) -> Box<dyn Controller> {
        let given = BTreeMap::from([("beta_ecn".to_owned(), Value::Number(beta_ecn))]);
        let start = registry::slow_start("standard").unwrap().create(&BTreeMap::new()).unwrap();
        let row = registry::controller(name).unwrap();
        let mut controller = row.create(&given, start, Stream::new(1, "test")).unwrap();
        controller.set_cwnd(cwnd);
        controller.set_ssthresh(ssthresh);
        controller
    }

    fn signal(controller: &mut dyn Controller, signal: Signal) {
        let now = Time::ZERO;
        controller.on_congestion(&Congestion { now, signal, in_flight: 0, next_to_send: 0 });
    }

    /// RFC 8511, §3: ssthresh = β·FlightSize and 2 packets at least, with β_ecn for a mark. A loss
    /// halves as ever; in slow start, and where it is off, so does a mark.
    #[test]
    fn a_mark_may_leave_more_than_a_loss() {
        for (beta_ecn, cwnd, ssthresh, what, left) in [
            (0.8, 100, 50, Signal::Ecn, 80),
            (0.8, 101, 50, Signal::Ecn, 80),
            (0.85, 100, 50, Signal::Ecn, 85),
            (0.8, 2, 2, Signal::Ecn, 2),
            (0.8, 100, 50, Signal::Loss, 50),
            (0.8, 100, 50, Signal::Timeout, 50),
            (0.8, 100, 200, Signal::Ecn, 50),
            (0.0, 100, 50, Signal::Ecn, 50),
            // The RFC's β_ecn is never below β.
            (0.3, 100, 50, Signal::Ecn, 50),
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
            signal(controller.as_mut(), Signal::Ecn);
            assert_eq!(controller.ssthresh(), Some(960), "{}", entry.name);
            let mut controller = with_abe(entry.name, 0.96, 1_000, 500);
            signal(controller.as_mut(), Signal::Loss);
            assert!(controller.ssthresh().unwrap() < 900, "{}", entry.name);
            found += 1;
        }
        assert_eq!(found, 9);
    }
}
