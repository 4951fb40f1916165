//! An AIMD controller with a delay term, as a start for your own.
//!
//! The window grows by `gain` packets per round trip while no packet waits in a queue, and more
//! slowly the longer packets wait. While they wait longer than `target`, it shrinks, by an eighth per
//! round trip at most. A loss multiplies it by `beta`. jostle makes the rest: slow start, loss
//! recovery, pacing and the transport.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use jostle_congestion::{AckSample, CongestionEvent, CongestionSignal, StateObserver};
use jostle_controllers::registry::{ControllerEntry, SlowStartChoice};
use jostle_controllers::{CongestionAvoidance, CongestionWindow, WindowBasedController};
use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Span;

/// The controller, as jostle finds it: `controller = "crate:mine"`.
pub const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "mine",
        summary: "AIMD that also reduces cwnd by the queueing delay",
        class: "delay",
        based_on: &["reno"],
        source: "write here what it is from: a paper, a draft, an idea",
        parameters: &[
            Parameter::span("target", Span::from_ms(20), Span::from_ms(1)..=Span::from_secs(10))
                .summary("queueing delay above which cwnd shrinks"),
            Parameter::number("gain", 1.0, 0.01..=10.0)
                .summary("packets per round trip by which cwnd grows on an empty path"),
            Parameter::number("beta", 0.7, 0.1..=0.95)
                .summary("factor of cwnd after a loss or an ECN mark"),
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |inputs| {
        let avoidance = DelayAimd::new(&inputs.values);
        Box::new(WindowBasedController::new(avoidance, inputs.slow_start))
    },
};

/// Largest share of cwnd by which it shrinks per round trip.
const MOST_DECREASE: f64 = 0.125;

struct DelayAimd {
    target: Span,
    gain: f64,
    beta: f64,
    /// Part of a packet that cwnd has not grown or shrunk by yet.
    credit: f64,
    queueing_delay: Span,
}

impl DelayAimd {
    fn new(values: &ParameterValues) -> Self {
        Self {
            target: values.span("target"),
            gain: values.number("gain"),
            beta: values.number("beta"),
            credit: 0.0,
            queueing_delay: Span::ZERO,
        }
    }

    /// Returns 1 for an empty queue, 0 at the target, and less than 0 above it.
    fn growth(&self) -> f64 {
        1.0 - self.queueing_delay.as_secs_f64() / self.target.as_secs_f64()
    }

    /// Changes cwnd by a part of a packet, as soon as the parts add up to a packet.
    fn change(&mut self, window: &mut CongestionWindow, packets: f64) {
        self.credit += packets;
        let whole = self.credit as i32;
        self.credit -= f64::from(whole);
        window.cwnd = window.cwnd.saturating_add_signed(whole).clamp(2, window.clamp);
    }
}

/// All other methods are Reno's.
impl CongestionAvoidance for DelayAimd {
    /// Called for every ACK.
    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        self.queueing_delay = ack.srtt - ack.min_rtt;
        // In slow start, and while the transport reduces cwnd, the delay changes nothing.
        if self.growth() < 0.0 && ack.can_increase_cwnd && !window.in_slow_start() {
            let share = self.growth().max(-1.0) * MOST_DECREASE;
            self.change(window, share * f64::from(ack.acked));
            // Below ssthresh, slow start would grow it again.
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }

    /// Called after `on_ack`, after slow start, for every ACK that may increase cwnd.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        if self.growth() >= 0.0 {
            let part = self.gain * self.growth() / f64::from(window.cwnd);
            self.change(window, part * f64::from(acked));
        }
    }

    /// Returns the window to which the transport reduces cwnd.
    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.credit = 0.0;
        let factor = match congestion.signal {
            CongestionSignal::Timeout => 0.5,
            _ => self.beta,
        };
        ((f64::from(window.cwnd) * factor) as u32).max(2)
    }

    /// Values that `jostle plot` draws below the window; the unit ends the name.
    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("queueing_delay_s", self.queueing_delay.as_secs_f64());
    }
}
