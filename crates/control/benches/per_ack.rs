//! What an ACK costs each controller of the registry: `on_measurement` and `on_ack` in steady
//! state, on a path of 100 ms whose window is lost once in 10,000 ACKs.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use jostle_control::registry::{self, CONTROLLERS, Start};
use jostle_control::{
    AckSample, Congestion, Controller, EcnFeedback, Established, Marks, Measurement, RateSample,
    RecoveryOwner, RecoveryState, Sent, Signal,
};
use jostle_units::{Span, Stream, Time};

const RTT: Span = Span::from_ms(100);
/// One packet per ACK, 10,000 packets/s.
const ACK_GAP: Span = Span::from_us(100);
const IN_FLIGHT: u32 = 1_000;
const ACKS_PER_LOSS: u64 = 10_000;

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
            first_unacked,
            next_to_send,
            state: RecoveryState::Open,
            pacing_rate: None,
        });
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
            self.lose(next_to_send);
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

    fn lose(&mut self, next_to_send: u64) {
        self.controller.on_congestion(&Congestion {
            now: self.now,
            signal: Signal::Loss,
            in_flight: IN_FLIGHT,
            next_to_send,
        });
        self.controller.on_state(self.now, RecoveryState::Recovery);
        if self.controller.recovery_owner() == RecoveryOwner::Transport {
            self.controller.set_cwnd(self.controller.ssthresh().unwrap_or(IN_FLIGHT));
        }
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
        let mut steady = Steady::new(controller);
        group.bench_function(row.entry.name, |bencher| {
            bencher.iter(|| {
                steady.acknowledge();
                black_box(steady.controller.cwnd())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, per_ack);
criterion_main!(benches);
