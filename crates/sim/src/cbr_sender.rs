//! Constant bit rate (CBR) traffic: datagrams at a given rate, without replies.

use jostle_link::Ecn;
use jostle_metrics::{EventSink, FlowState};
use jostle_run_spec::{CbrSpec, RateStep};
use jostle_tcp::{SegmentSink, TransitTimes};
use jostle_units::{Span, Time};

use crate::packet::{Body, Datagram};
use crate::transport::{EndpointContext, Endpoints, FlowStatus};

/// Departure times of datagrams: the next one leaves when the rate has accumulated its size.
/// Rounding up to nanoseconds is subtracted from the next wait, so that the rate does not drift.
#[derive(Debug)]
pub(crate) struct SendSchedule {
    steps: Vec<RateStep>,
    /// Bits of a datagram times 10⁹: bit/s times ns.
    size_bit_ns: u64,
    ahead_bit_ns: u64,
}

impl SendSchedule {
    pub fn new(spec: &CbrSpec) -> Self {
        let size_bit_ns = 8_000_000_000 * u64::from(spec.bytes);
        Self { steps: spec.steps.clone(), size_bit_ns, ahead_bit_ns: 0 }
    }

    /// Returns `Ok` if the rate is not 0 at `now`, otherwise the time at which it becomes positive.
    pub fn is_on(&self, now: Time) -> Result<(), Time> {
        let from = self.step(now);
        let on = self.steps[from..].iter().find(|step| step.rate_bps > 0);
        let on = on.map_or(Time::NEVER, |step| Time::from_ns(step.at_ns));
        if on <= now { Ok(()) } else { Err(on) }
    }

    /// Returns the departure time of the datagram after one that leaves at `now`. [`Time::NEVER`]
    /// if there is none.
    pub fn after(&mut self, now: Time) -> Time {
        let mut needed_bit_ns = self.size_bit_ns - self.ahead_bit_ns;
        let mut at_ns = now.as_ns();
        for step in self.step(now)..self.steps.len() {
            let rate_bps = self.steps[step].rate_bps;
            let ends_ns = self.steps.get(step + 1).map_or(Time::NEVER.as_ns(), |next| next.at_ns);
            let lasts_ns = ends_ns - at_ns;
            if rate_bps > 0 {
                let wait_ns = needed_bit_ns.div_ceil(rate_bps);
                if wait_ns <= lasts_ns {
                    self.ahead_bit_ns = wait_ns * rate_bps - needed_bit_ns;
                    return Time::from_ns(at_ns + wait_ns);
                }
                needed_bit_ns -= rate_bps * lasts_ns;
            }
            at_ns = ends_ns;
        }
        Time::NEVER
    }

    /// Returns the index of the rate step that applies at `now`.
    fn step(&self, now: Time) -> usize {
        self.steps.partition_point(|step| step.at_ns <= now.as_ns()).saturating_sub(1)
    }
}

/// Sender of CBR datagrams. The receiver has no state.
#[derive(Debug)]
pub(crate) struct Datagrams {
    payload: u16,
    cadence: SendSchedule,
    next: u32,
}

impl Datagrams {
    pub fn new(spec: &CbrSpec) -> Self {
        Self { payload: spec.bytes as u16, cadence: SendSchedule::new(spec), next: 0 }
    }
}

impl Endpoints for Datagrams {
    type Message = Datagram;

    fn run_application<S: EventSink>(&mut self, stop: Time, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        // The first datagram waits until the rate is positive. `after` determines the times of the
        // others.
        if let (0, Err(on)) = (self.next, self.cadence.is_on(now)) {
            if on < stop {
                host.schedule_application(on);
            }
            return;
        }
        let number = self.next;
        self.next += 1;
        let next = self.cadence.after(now);
        if next < stop {
            host.schedule_application(next);
        }
        let datagram = Datagram { number, payload_bytes: self.payload, trip: TransitTimes::NONE };
        let body = Body::OneWay(datagram);
        let mut port = host.port();
        port.note_sent(now, 1, u64::from(body.wire_bytes()), false);
        port.send(now, body, Ecn::NotCapable);
    }

    fn receive<S: EventSink>(
        &mut self,
        datagram: &Datagram,
        wire_bytes: u32,
        _ecn: Ecn,
        _part: bool,
        host: &mut EndpointContext<'_, S>,
    ) {
        host.received(wire_bytes, &datagram.trip);
        let delay = host.now.since(datagram.trip.departure_time());
        host.sink.datagram_received(host.now, host.flow, datagram.number, delay);
        host.sink.delivered(host.now, host.flow, u64::from(datagram.payload_bytes));
    }

    fn receive_return<S: EventSink>(
        &mut self,
        _: &Datagram,
        _: &mut EndpointContext<'_, S>,
    ) -> FlowStatus {
        debug_assert!(false, "nobody answers");
        FlowStatus::Open
    }

    /// There is no cwnd, and the bytes in flight are unknown.
    fn state(&self) -> FlowState {
        FlowState {
            srtt: Span::ZERO,
            cwnd_bytes: 0,
            ssthresh_bytes: None,
            in_flight_bytes: 0,
            pacing_rate: None,
            mode: "datagrams",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn cadence(bytes: u32, steps: &[(u64, u64)]) -> SendSchedule {
        let step = |&(at_ns, rate_bps): &(u64, u64)| RateStep { at_ns, rate_bps };
        let steps = steps.iter().map(step).collect();
        SendSchedule::new(&CbrSpec { bytes, steps, voice: None })
    }

    fn times_ns(cadence: &mut SendSchedule, from_ns: u64, count: usize) -> Vec<u64> {
        let times = std::iter::successors(Some(Time::from_ns(from_ns)), |now| {
            Some(cadence.after(*now)).filter(|next| *next < Time::NEVER)
        });
        times.take(count).map(Time::as_ns).collect()
    }

    #[test]
    fn speech_leaves_every_20_ms() {
        let mut speech = cadence(160, &[(0, 64_000)]);
        assert_eq!(times_ns(&mut speech, 7, 3), [7, 20_000_007, 40_000_007]);
    }

    #[test]
    fn a_step_takes_effect_at_its_time_even_between_two_datagrams() {
        // 1000 bit: 1 s at 1 kbit/s. Half of the third is gathered before the rate doubles.
        let mut stepped =
            cadence(125, &[(0, 1_000), (5 * S / 2, 2_000), (4 * S, 0), (6 * S, 1_000)]);
        let halves = times_ns(&mut stepped, 0, 8).iter().map(|ns| ns * 4 / S).collect::<Vec<_>>();
        assert_eq!(halves, [0, 4, 8, 11, 13, 15, 26, 30]);
        assert_eq!(stepped.is_on(Time::from_ns(3 * S)), Ok(()));
        assert_eq!(stepped.is_on(Time::from_ns(5 * S)), Err(Time::from_ns(6 * S)));
        let mut ended = cadence(125, &[(0, 1_000), (S / 2, 0)]);
        assert_eq!(
            (ended.is_on(Time::from_ns(S)), ended.after(Time::ZERO)),
            (Err(Time::NEVER), Time::NEVER)
        );
    }

    proptest! {
        /// The n-th leaves at the first nanosecond by which the rate has made up for n of them.
        #[test]
        fn no_rate_drifts(bytes in 1u32..1_473, rate_bps in 1_000u64..1_000_000, n in 1usize..2_000) {
            let last_ns = times_ns(&mut cadence(bytes, &[(0, rate_bps)]), 0, n + 1)[n];
            let exact = (u128::from(bytes) * 8 * u128::from(S) * n as u128).div_ceil(u128::from(rate_bps));
            prop_assert_eq!(u128::from(last_ns), exact);
        }
    }
}
