//! What an ACK costs each controller of the registry: `on_measurement` and `on_ack` in steady
//! state, on a path of 100 ms whose window is lost once in 10,000 ACKs.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use jostle_control::registry::{self, CONTROLLERS, MEMORIES, SLOW_STARTS, Start};
use jostle_control::{
    AckSample, Congestion, Controller, EcnFeedback, Established, LostPacket, Marks, Measurement,
    RateSample, RecoveryOwner, RecoveryState, Sent, Signal, Timestamps,
};
use jostle_units::{Span, Stream, Time};

const RTT: Span = Span::from_ms(100);
/// One packet per ACK, 10,000 packets/s.
const ACK_GAP: Span = Span::from_us(100);
const IN_FLIGHT: u32 = 1_000;
const ACKS_PER_LOSS: u64 = 10_000;

/// The clock of the timestamps option.
fn ms(now: Time) -> u32 {
    (now.as_ns() / 1_000_000) as u32
}

/// A connection in the middle of a long transfer.
struct Steady {
    controller: Box<dyn Controller>,
    now: Time,
    delivered: u64,
    lost: u64,
    /// The connection has ECN.
    ecn: bool,
}

impl Steady {
    fn new(controller: Box<dyn Controller>) -> Self {
        let ecn = controller.needs_ecn() != EcnFeedback::None;
        let mut steady = Self { controller, now: Time::ZERO + RTT, delivered: 0, lost: 0, ecn };
        steady.controller.on_established(&Established {
            now: steady.now,
            mss_bytes: 1448,
            initial_window: 10,
            rtt: Some(RTT),
            prospect: Default::default(),
        });
        // Through start-up: ten losses.
        for _ in 0..10 * ACKS_PER_LOSS {
            steady.acknowledge();
        }
        steady
    }

    fn acknowledge(&mut self) {
        self.now += ACK_GAP;
        self.delivered += 1;
        let (first_unacked, next_to_send) = (self.delivered, self.delivered + u64::from(IN_FLIGHT));
        let loses = self.delivered.is_multiple_of(ACKS_PER_LOSS);
        self.lost += u64::from(loses);
        self.controller.on_measurement(&Measurement {
            now: self.now,
            rtt: Some(RTT),
            packets: 1,
            delivered: IN_FLIGHT,
            sacked: 0,
            timestamps: Some(Timestamps {
                value_ms: ms(self.now - RTT.mul_div(1, 2)),
                echo_ms: ms(self.now - RTT),
                now_ms: ms(self.now),
            }),
            first_unacked,
            next_to_send,
            state: RecoveryState::Open,
            pacing_rate: None,
        });
        self.controller.on_ack_event(self.now, loses);
        if self.ecn {
            self.controller.on_marks(&Marks {
                now: self.now,
                delivered: self.delivered,
                marked: 0,
                first_unacked,
                next_to_send,
            });
        }
        if loses {
            self.controller.on_lost(&LostPacket {
                now: self.now,
                number: first_unacked,
                in_flight_at_send: IN_FLIGHT,
                lost_since_send: 1,
                app_limited: false,
                delivered: self.delivered,
            });
            self.reduce(next_to_send, Signal::Loss, RecoveryState::Recovery);
        }
        self.controller.on_ack(&AckSample {
            now: self.now,
            acked: 1,
            lost: u32::from(loses),
            rtt: Some(RTT),
            srtt: RTT,
            min_rtt: RTT,
            rate: Some(RateSample { delivered: IN_FLIGHT, interval: RTT }),
            prior_delivered: self.delivered.saturating_sub(u64::from(IN_FLIGHT)),
            sent_at: self.now - RTT,
            in_flight_at_send: IN_FLIGHT,
            lost_since_send: u32::from(loses),
            app_limited: false,
            ack_delayed: false,
            delivered: self.delivered,
            total_lost: self.lost,
            total_sent: next_to_send,
            prior_in_flight: IN_FLIGHT,
            in_flight: IN_FLIGHT - 1,
            first_unacked,
            next_to_send,
            next_departure: self.now,
            state: RecoveryState::Open,
            cwnd_limited: true,
            may_grow: true,
            left_recovery: false,
            ce_marked: 0,
        });
        if self.controller.take_reduction_request() {
            self.reduce(next_to_send, Signal::Request, RecoveryState::Cwr);
        }
        if self.controller.next_wakeup().is_some_and(|at| at <= self.now) {
            self.controller.on_wakeup(self.now);
        }
        self.controller.on_send(&Sent {
            now: self.now,
            packets: 1,
            total_sent: next_to_send + 1,
            prior_in_flight: IN_FLIGHT - 1,
            after_idle: false,
        });
    }

    fn reduce(&mut self, next_to_send: u64, signal: Signal, state: RecoveryState) {
        self.controller.on_congestion(&Congestion {
            now: self.now,
            signal,
            in_flight: IN_FLIGHT,
            next_to_send,
        });
        self.controller.on_state(self.now, state);
        if self.controller.recovery_owner() == RecoveryOwner::Transport {
            self.controller.set_cwnd(self.controller.ssthresh().unwrap_or(IN_FLIGHT));
            self.controller.on_reduction_end(self.now);
        }
        self.controller.on_reduction_end(self.now);
        self.controller.on_state(self.now, RecoveryState::Open);
    }
}

fn per_ack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("per_ack");
    for row in CONTROLLERS {
        let name = match row.start {
            Start::Composed(name) => name,
            Start::Own => "standard",
        };
        let given = BTreeMap::new();
        let Some(Ok(slow_start)) = registry::slow_start(name).map(|start| start.create(&given))
        else {
            panic!("no slow start `{name}`");
        };
        let Ok(controller) = row.create(&given, slow_start, Stream::new(1, row.entry.name)) else {
            panic!("`{}` refuses its defaults", row.entry.name);
        };
        measure(&mut group, row.entry.name, controller);
    }
    for memory in MEMORIES {
        let name = format!("reno under {}", memory.entry.name);
        let Ok(controller) = memory.create(&BTreeMap::new(), reno_with("standard")) else {
            panic!("`{}` refuses its defaults", memory.entry.name);
        };
        measure(&mut group, &name, controller);
    }
    for start in SLOW_STARTS {
        let name = format!("reno with {}", start.entry.name);
        measure(&mut group, &name, reno_with(start.entry.name));
    }
    group.finish();
}

type Group<'a> = criterion::BenchmarkGroup<'a, criterion::measurement::WallTime>;

fn measure(group: &mut Group<'_>, name: &str, controller: Box<dyn Controller>) {
    let mut steady = Steady::new(controller);
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            steady.acknowledge();
            black_box(steady.controller.cwnd())
        });
    });
}

fn reno_with(slow_start: &str) -> Box<dyn Controller> {
    let given = BTreeMap::new();
    let start = registry::slow_start(slow_start).and_then(|row| row.create(&given).ok());
    let row = registry::controller("reno");
    let built =
        start.zip(row).map(|(start, row)| row.create(&given, start, Stream::new(1, "reno")));
    let Some(Ok(reno)) = built else { panic!("reno refuses `{slow_start}`") };
    reno
}

criterion_group!(benches, per_ack);
criterion_main!(benches);
