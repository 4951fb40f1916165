//! Reno.

use jostle_catalogue::Entry;

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
        source: "RFC 5681, RFC 6582; Linux 6.1 tcp_cong.c, tcp_reno",
        parameters: &[BETA_ECN],
    },
    start: Start::Composed("standard"),
    build: |parts| Box::new(Windowed::new(Reno, parts.slow_start).with_abe(&parts.values)),
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
