//! Sprout: a stochastic forecast of the link's deliveries.
//!
//! Winstein, Sivaraman & Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay
//! over Cellular Networks", NSDI 2013. In Sprout the receiver counts arrivals and sends forecasts.
//! Here the sender counts the packets that ACKs report, so that it models the round trip and
//! forecasts ACKs.

mod model;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use self::model::Model;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EstablishedEvent, SendEvent,
    StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "sprout",
        summary: "sends as much as the link will deliver within 100 ms with 95 % probability, for \
            cellular links",
        class: "delay",
        based_on: &[],
        source: "Winstein, Sivaraman & Balakrishnan, \"Stochastic Forecasts Achieve High Throughput \
                 and Low Delay over Cellular Networks\", NSDI 2013",
        parameters: PARAMETERS,
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(Sprout::new(Parameters::new(&parts.values))),
};

const PARAMETERS: &[Parameter] = &[
    Parameter::span("tick", Span::from_ms(20), Span::from_ms(1)..=Span::from_secs(1))
        .summary("length of a tick, after which the model is updated"),
    Parameter::number("max_rate_pps", 1_000.0, 10.0..=1_000_000.0)
        .summary("largest rate of the model, in packets per second"),
    Parameter::number("sigma", 200.0, 0.0..=1e6)
        .summary("volatility of the link's rate, in packets per second per root of a second"),
    Parameter::number("outage_escape", 1.0, 0.0..=1_000.0)
        .summary("rate at which outages end, per second"),
    Parameter::number("risk", 0.05, 1e-4..=0.9999)
        .summary("probability that the link delivers less than forecast"),
    Parameter::integer("lookahead_ticks", 5, 1..=100)
        .summary("ticks within which the queue should be empty"),
];

/// Values of the parameters.
#[derive(Clone, Copy, Debug)]
struct Parameters {
    tick: Span,
    tick_s: f64,
    max_rate_pps: f64,
    sigma: f64,
    outage_escape: f64,
    risk: f64,
    lookahead_s: f64,
}

impl Parameters {
    fn new(values: &ParameterValues) -> Self {
        let tick = values.span("tick");
        Self {
            tick,
            tick_s: tick.as_secs_f64(),
            max_rate_pps: values.number("max_rate_pps"),
            sigma: values.number("sigma"),
            outage_escape: values.number("outage_escape"),
            risk: values.number("risk"),
            lookahead_s: f64::from(values.u32("lookahead_ticks")) * tick.as_secs_f64(),
        }
    }
}

/// Number of ticks without observations after which the model is reset.
const MEMORY_TICKS: u64 = 250;
/// Age at which the minimum RTT is measured again, as in BBR. A path that became longer looks like
/// a queue until then.
const MIN_RTT_WINDOW: Span = Span::from_secs(10);

/// Measurement of the minimum RTT with an empty queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MinRttProbe {
    /// The last measurement is recent.
    Off,
    /// The packets in flight are reduced to those that the link delivers in half the minimum RTT.
    Draining,
    /// The RTT of a packet sent at this time or later is one without a queue.
    Measuring(Time),
}

/// The controller.
pub struct Sprout {
    parameters: Parameters,
    model: Model,
    cwnd: u32,
    /// Least RTT of the last ten seconds, and when it was measured.
    min_rtt: Span,
    min_rtt_at: Time,
    probe: MinRttProbe,
    /// Latest RTT.
    rtt: Span,
    tick_end: Time,
    /// Packets reported as delivered in this tick.
    arrivals: u32,
    /// Whether the newest of these packets had waited for a tick: the link had packets to deliver
    /// all the time.
    busy: bool,
    in_flight: u32,
    /// Time of the last ACK or packet sent.
    last_event: Time,
}

impl Sprout {
    fn new(parameters: Parameters) -> Self {
        Self {
            model: Model::new(&parameters),
            parameters,
            cwnd: 1,
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            probe: MinRttProbe::Off,
            rtt: Span::ZERO,
            tick_end: Time::NEVER,
            arrivals: 0,
            busy: false,
            in_flight: 0,
            last_event: Time::ZERO,
        }
    }

    /// Updates the model at the end of a tick.
    fn end_tick(&mut self) {
        self.model.evolve();
        if self.busy && self.in_flight > 0 {
            self.model.observe(self.arrivals);
        } else if self.arrivals > 0 {
            self.model.observe_at_least(self.arrivals);
        } else if self.in_flight > 0
            && self.tick_end.since(self.last_event) > self.rtt.saturating_add(self.parameters.tick)
        {
            // All packets in flight are overdue by a tick.
            self.model.observe(0);
        }
        self.busy &= self.in_flight > 0;
        self.arrivals = 0;
    }

    /// Ends the ticks up to `now`.
    fn advance(&mut self, now: Time) {
        if now < self.tick_end {
            return;
        }
        let tick_ns = self.parameters.tick.as_ns();
        let passed = now.since(self.tick_end).as_ns() / tick_ns + 1;
        for _ in 0..passed.min(MEMORY_TICKS) {
            self.end_tick();
            self.tick_end += self.parameters.tick;
        }
        if passed > MEMORY_TICKS {
            self.tick_end = now + self.parameters.tick;
        }
        self.set_window();
    }

    /// ACKs of packets sent now arrive after a minimum RTT at the earliest. Packets already in
    /// flight and waiting must be acknowledged within the queue's time. While the minimum RTT is
    /// measured, no packet may wait.
    fn set_window(&mut self) {
        let rtt_s = if self.min_rtt == Span::MAX { 0.0 } else { self.min_rtt.as_secs_f64() };
        let horizon_s = if self.probe == MinRttProbe::Off {
            self.parameters.lookahead_s + rtt_s
        } else {
            0.5 * rtt_s
        };
        self.cwnd = self.model.forecast(horizon_s, self.parameters.risk).max(1);
    }

    /// Updates the minimum RTT. Without a lower RTT for ten seconds it is measured again: the path
    /// may be longer than before.
    fn update_min_rtt(&mut self, ack: &AckSample, rtt: Span) {
        let unqueued = matches!(self.probe, MinRttProbe::Measuring(from) if ack.sent_at >= from);
        if rtt <= self.min_rtt || unqueued {
            (self.min_rtt, self.min_rtt_at) = (rtt, ack.now);
            if self.probe != MinRttProbe::Off {
                self.probe = MinRttProbe::Off;
                self.set_window();
            }
        } else if self.probe == MinRttProbe::Off && ack.now.since(self.min_rtt_at) > MIN_RTT_WINDOW
        {
            self.probe = MinRttProbe::Draining;
            self.set_window();
        }
        if self.probe == MinRttProbe::Draining && ack.in_flight <= self.cwnd {
            self.probe = MinRttProbe::Measuring(ack.now);
        }
    }
}

impl CongestionController for Sprout {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.cwnd = established.initial_window.max(1);
        self.min_rtt = established.rtt.unwrap_or(Span::MAX);
        self.min_rtt_at = established.now;
        self.rtt = established.rtt.unwrap_or(Span::ZERO);
        self.tick_end = established.now + self.parameters.tick;
        self.last_event = established.now;
    }

    fn on_send(&mut self, sent: &SendEvent) {
        self.in_flight = sent.prior_in_flight.saturating_add(sent.packets);
        self.last_event = sent.now;
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.advance(ack.now);
        self.arrivals = self.arrivals.saturating_add(ack.acked);
        self.in_flight = ack.in_flight;
        self.last_event = ack.now;
        if let Some(rtt) = ack.transmission_rtt() {
            self.rtt = rtt;
            self.update_min_rtt(ack, rtt);
            self.busy = rtt - self.min_rtt >= self.parameters.tick;
        }
    }

    /// Ignores losses: the forecast already uses the missing arrivals.
    fn on_congestion_event(&mut self, _congestion: &CongestionEvent) {}

    fn on_undo(&mut self, _now: Time) {}

    /// Sets cwnd after a timeout. The value lasts for a tick.
    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn next_wakeup(&self) -> Option<Time> {
        (self.tick_end < Time::NEVER).then_some(self.tick_end)
    }

    fn on_wakeup(&mut self, now: Time) {
        self.advance(now);
    }

    fn mode(&self) -> &'static str {
        if self.busy { "busy" } else { "probing" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("rate_pps", self.model.mean_pps());
    }
}
