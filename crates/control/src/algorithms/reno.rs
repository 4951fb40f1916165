//! Reno as Linux has it, and NewReno as RFC 9002 has it (`flavour`).

mod rfc9002;

use jostle_catalogue::{Entry, Kind, Parameter};

use self::rfc9002::Rfc9002;
use crate::controller::{AckSample, Congestion};
use crate::row::{ControllerRow, Start};
use crate::window::Window;
use crate::windowed::{BETA_ECN, WindowLaw, Windowed};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "reno",
        summary: "adds one packet per round trip, halves on loss",
        class: "loss",
        based_on: &[],
        source: "RFC 5681, RFC 6582; Linux 6.1 tcp_cong.c, tcp_reno; RFC 9002, section 7",
        parameters: &[
            Parameter {
                name: "flavour",
                summary: "whose Reno: that of linux, in whole packets, or the controller of rfc9002 \
                          for QUIC, in bytes; kernels have the former alone",
                kind: Kind::Choice { default: "linux", choices: &["linux", "rfc9002"] },
            },
            BETA_ECN,
        ],
    },
    start: Start::Composed("standard"),
    build: |parts| {
        let (values, slow_start) = (&parts.values, parts.slow_start);
        if values.choice("flavour") == "rfc9002" {
            return Box::new(Windowed::new(Rfc9002::default(), slow_start).with_abe(values));
        }
        Box::new(Windowed::new(Reno, slow_start).with_abe(values))
    },
};

/// Additive increase by one packet per window, multiplicative decrease by half.
#[derive(Clone, Copy, Debug)]
pub struct Reno;

impl WindowLaw for Reno {
    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd, acked);
    }

    /// RFC 5681 (4) asks for max(FlightSize / 2, 2 · SMSS); Linux halves cwnd instead, and with it
    /// a window that was not fully used.
    fn ssthresh(&mut self, window: &Window, _congestion: &Congestion) -> u32 {
        (window.cwnd / 2).max(2)
    }
}
