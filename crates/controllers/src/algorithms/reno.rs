//! Reno as implemented in Linux, and NewReno as specified in RFC 9002 (`flavour`).

mod rfc9002;

use alloc::boxed::Box;

use jostle_registry::{Parameter, RegistryEntry};

use self::rfc9002::Rfc9002;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::{BETA_ECN, CongestionAvoidance, WindowBasedController};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "reno",
        summary: "adds one packet per RTT; halves cwnd on loss",
        class: "loss",
        based_on: &[],
        source: "RFC 5681, RFC 6582; Linux 6.1 tcp_cong.c, tcp_reno; RFC 9002 §7",
        parameters: &[
            Parameter::choice("flavour", "linux", &["linux", "rfc9002"]).summary(
                "version of Reno: Linux's, in whole packets, or RFC 9002's for QUIC, in bytes; in \
                 real time, the Linux backend has the former only",
            ),
            BETA_ECN,
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        let (values, slow_start) = (&parts.values, parts.slow_start);
        if values.choice("flavour") == "rfc9002" {
            return Box::new(
                WindowBasedController::new(Rfc9002::default(), slow_start).with_abe(values),
            );
        }
        Box::new(WindowBasedController::new(Reno, slow_start).with_abe(values))
    },
};

/// Additive increase by one packet per window, multiplicative decrease by half.
#[derive(Clone, Copy, Debug)]
pub struct Reno;

impl CongestionAvoidance for Reno {}
