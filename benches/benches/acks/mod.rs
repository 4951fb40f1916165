//! The ACKs whose cost is measured, and what they are measured on.
//!
//! A transport is played that does for each ACK what the simulator's endpoint does: it tells of the
//! ACK at every stage, copies the answers before and after loss detection, asks about the next
//! burst, and sends a packet.

use std::collections::BTreeMap;
use std::hint::black_box;

use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EcnFeedback, EcnMarks, EstablishedEvent, LostPacket, RateSample, RawAckSample, RecoveryState,
    SendEvent, Timestamps,
};
use jostle_controllers::registry::{self, CONTROLLERS, MEMORIES, SLOW_STARTS, SlowStartChoice};
use jostle_registry::{ParameterType, ParameterValue};
use jostle_units::{RandomStream, Rate, Span, Time};

/// RTT of the path without a queue.
const BASE_RTT: Span = Span::from_ms(100);
const HALF_RTT: Span = Span::from_ms(50);
/// One packet per ACK, 10,000 packets/s.
const ACK_GAP: Span = Span::from_us(100);
/// Packets that the path holds without a queue.
const PIPE: u32 = 1_000;
/// ACKs in steady state from one loss to the next: ten round trips.
pub const ACKS_PER_LOSS: u64 = 10_000;
/// Until a loss the queue grows by so much per ACK, to a fifth of the base RTT, …
const QUEUE_GROWTH_NS: u64 = 2_000;
/// … and on top of that each RTT has noise.
const RTT_NOISE_NS: u64 = 500_000;
const MSS_BYTES: u32 = 1448;
const INITIAL_WINDOW: u32 = 10;

/// Parameters as a scenario gives them.
type Given = BTreeMap<String, ParameterValue>;

/// The parameter that chooses among several laws of one name.
const FLAVOUR: &str = "flavour";

/// A controller whose cost is measured.
pub struct Case {
    /// Name of the row, and behind it that of the flavour if it is not the default.
    pub name: String,
    /// Builds it.
    pub create: Box<dyn Fn() -> Box<dyn CongestionController>>,
}

/// A case for each controller of the registry, with its own slow start, and for each other flavour
/// that it has.
pub fn controllers() -> Vec<Case> {
    CONTROLLERS.iter().flat_map(flavours).collect()
}

fn flavours(row: &'static registry::ControllerEntry) -> Vec<Case> {
    let (name, slow_start) = (row.entry.name, own_slow_start(row));
    let mut cases =
        vec![Case { name: name.to_owned(), create: Box::new(move || composed(name, slow_start)) }];
    let others = row.entry.parameters.iter().filter(|parameter| parameter.name == FLAVOUR);
    for parameter in others {
        let ParameterType::Choice { default, choices } = parameter.kind else {
            panic!("`{name}.{FLAVOUR}` is no choice")
        };
        for &flavour in choices.iter().filter(|&&choice| choice != default) {
            cases.push(Case {
                name: format!("{name} {flavour}"),
                create: Box::new(move || {
                    let given = Given::from([(
                        FLAVOUR.to_owned(),
                        ParameterValue::Text(flavour.to_owned()),
                    )]);
                    built(name, &given, slow_start)
                }),
            });
        }
    }
    cases
}

fn own_slow_start(row: &registry::ControllerEntry) -> &'static str {
    match row.start {
        SlowStartChoice::Composed(name) => name,
        SlowStartChoice::BuiltIn => "standard",
    }
}

/// Reno with each slow start of the registry.
pub fn slow_starts() -> Vec<Case> {
    let case = |row: &'static registry::SlowStartEntry| Case {
        name: row.entry.name.to_owned(),
        create: Box::new(|| composed("reno", row.entry.name)),
    };
    SLOW_STARTS.iter().map(case).collect()
}

/// Reno by itself, and under each layer of memory of the registry.
pub fn memories() -> Vec<Case> {
    let case = |row: &'static registry::PeerCacheEntry| Case {
        name: row.entry.name.to_owned(),
        create: Box::new(|| {
            let layered = row.create(&BTreeMap::new(), composed("reno", "standard"));
            layered.unwrap_or_else(|error| panic!("{}: {error}", row.entry.name))
        }),
    };
    let reno = Case { name: "reno".to_owned(), create: Box::new(|| composed("reno", "standard")) };
    [reno].into_iter().chain(MEMORIES.iter().map(case)).collect()
}

fn composed(controller: &str, slow_start: &str) -> Box<dyn CongestionController> {
    built(controller, &BTreeMap::new(), slow_start)
}

fn built(controller: &str, given: &Given, slow_start: &str) -> Box<dyn CongestionController> {
    let start = registry::slow_start(slow_start).and_then(|row| row.create(&Given::new()).ok());
    let row = registry::controller(controller);
    let random = RandomStream::new(1, controller);
    let built = start.zip(row).map(|(start, row)| row.create(given, start, random));
    let Some(Ok(built)) = built else {
        panic!("`{controller}` with `{slow_start}` and {given:?} cannot be built")
    };
    built
}

/// The path that the ACKs come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A long transfer: 1,000 packets in flight whatever the window is, so that all controllers see
    /// the same, and a queue that grows until every [`ACKS_PER_LOSS`]-th ACK brings a loss.
    Steady,
    /// A connection that opens on an empty path and loses nothing: flights of a whole window.
    StartUp,
}

/// A connection.
pub struct Connection {
    controller: Box<dyn CongestionController>,
    phase: Phase,
    now: Time,
    noise: RandomStream,
    delivered: u64,
    lost: u64,
    in_flight: u32,
    flight_end: u64,
    flight_start: Time,
    /// The connection has ECN.
    ecn: bool,
    /// The controller wants to hear of headers.
    hears_headers: bool,
}

impl Connection {
    /// A connection after its handshake.
    pub fn open(controller: Box<dyn CongestionController>, phase: Phase) -> Self {
        let now = Time::ZERO + BASE_RTT;
        let ecn = controller.required_ecn_feedback() != EcnFeedback::None;
        let hears_headers = controller.tcp_extension().is_some_and(|tcp| tcp.wants_ack_events());
        let mut connection = Self {
            controller,
            phase,
            now,
            noise: RandomStream::new(1, "noise of the RTT"),
            delivered: 0,
            lost: 0,
            in_flight: if phase == Phase::Steady { PIPE } else { INITIAL_WINDOW },
            flight_end: 0,
            flight_start: now,
            ecn,
            hears_headers,
        };
        connection.controller.on_established(&EstablishedEvent {
            now,
            mss_bytes: MSS_BYTES,
            initial_window: INITIAL_WINDOW,
            rtt: Some(BASE_RTT),
            prospect: Default::default(),
        });
        connection
    }

    /// The next ACK.
    pub fn acknowledge(&mut self) {
        self.now += ACK_GAP;
        if self.phase == Phase::StartUp && self.delivered >= self.flight_end {
            self.now = self.now.max(self.flight_start + BASE_RTT);
            self.flight_start = self.now;
            self.in_flight = self.controller.cwnd().min(PIPE);
            self.flight_end = self.delivered + u64::from(self.in_flight);
        }
        self.delivered += 1;
        let loses = self.phase == Phase::Steady && self.delivered.is_multiple_of(ACKS_PER_LOSS);
        self.lost += u64::from(loses);
        let rtt = self.rtt();
        self.before_loss_detection(rtt, loses);
        if loses {
            self.lose();
        }
        self.after_loss_detection(rtt, loses);
        if self.controller.next_wakeup().is_some_and(|at| at <= self.now) {
            self.controller.on_wakeup(self.now);
        }
        self.controller.on_send(&SendEvent {
            now: self.now,
            packets: 1,
            total_sent: self.next_to_send() + 1,
            next_to_send: self.next_to_send() + 1,
            prior_in_flight: self.in_flight - 1,
            after_idle: false,
        });
        black_box((self.controller.min_burst_packets(), self.controller.max_burst_packets()));
    }

    fn next_to_send(&self) -> u64 {
        self.delivered + u64::from(self.in_flight)
    }

    fn rtt(&mut self) -> Span {
        if self.phase == Phase::StartUp {
            return BASE_RTT;
        }
        let queue_ns = QUEUE_GROWTH_NS * (self.delivered % ACKS_PER_LOSS);
        BASE_RTT + Span::from_ns(queue_ns + self.noise.below(RTT_NOISE_NS))
    }

    fn before_loss_detection(&mut self, rtt: Span, loses: bool) {
        // The clock of the timestamps option.
        let ms = |time: Time| (time.as_ns() / 1_000_000) as u32;
        self.controller.on_ack_before_loss_detection(&RawAckSample {
            now: self.now,
            rtt: Some(rtt),
            packets: 1,
            delivered: self.in_flight,
            sacked: 0,
            timestamps: Some(Timestamps {
                value_ms: ms(self.now - HALF_RTT),
                echo_ms: ms(self.now - rtt),
                now_ms: ms(self.now),
            }),
            first_unacked: self.delivered,
            next_to_send: self.next_to_send(),
            state: RecoveryState::Open,
            pacing_rate: Some(Rate::from_bps(100_000_000)),
        });
        if self.hears_headers
            && let Some(tcp) = self.controller.tcp_extension_mut()
        {
            tcp.on_ack_event(self.now, loses);
        }
        if self.ecn {
            self.controller.on_ecn_feedback(&EcnMarks {
                now: self.now,
                delivered: self.delivered,
                marked: 0,
                first_unacked: self.delivered,
                next_to_send: self.next_to_send(),
            });
        }
        self.take_answers();
    }

    fn after_loss_detection(&mut self, rtt: Span, loses: bool) {
        self.controller.on_ack(&AckSample {
            now: self.now,
            acked: 1,
            lost: u32::from(loses),
            rtt: Some(rtt),
            srtt: rtt,
            min_rtt: BASE_RTT,
            rate: Some(RateSample { delivered: self.in_flight, interval: rtt }),
            prior_delivered: self.delivered.saturating_sub(u64::from(self.in_flight)),
            sent_at: self.now - rtt,
            in_flight_at_send: self.in_flight,
            lost_since_send: u32::from(loses),
            app_limited: false,
            ack_delayed: false,
            delivered: self.delivered,
            total_lost: self.lost,
            total_sent: self.next_to_send(),
            prior_in_flight: self.in_flight,
            in_flight: self.in_flight - 1,
            first_unacked: self.delivered,
            next_to_send: self.next_to_send(),
            next_departure: self.now,
            state: RecoveryState::Open,
            cwnd_limited: true,
            pacing_limited: false,
            can_increase_cwnd: true,
            recovery_ended: false,
            ce_marked: 0,
        });
        self.take_answers();
        if self.controller.take_cwr_request() {
            self.reduce(CongestionSignal::Request, RecoveryState::Cwr);
        }
        black_box(self.controller.limits_flight_on_purpose());
    }

    /// What the endpoint copies from the controller whenever it may have changed.
    fn take_answers(&self) {
        black_box(self.controller.cwnd());
        black_box(self.controller.ssthresh());
        black_box(self.controller.pacing_rate());
        black_box(self.controller.next_wakeup());
    }

    fn lose(&mut self) {
        self.controller.on_packet_lost(&LostPacket {
            now: self.now,
            number: self.delivered,
            in_flight_at_send: self.in_flight,
            lost_since_send: 1,
            app_limited: false,
            delivered: self.delivered,
        });
        self.reduce(CongestionSignal::Loss, RecoveryState::Recovery);
    }

    fn reduce(&mut self, signal: CongestionSignal, state: RecoveryState) {
        self.controller.on_congestion_event(&CongestionEvent {
            now: self.now,
            signal,
            in_flight: self.in_flight,
            next_to_send: self.next_to_send(),
        });
        self.controller.on_recovery_state(self.now, state);
        if self.controller.recovery_owner() == CwndReductionBy::Transport {
            self.controller.set_cwnd(self.controller.ssthresh().unwrap_or(PIPE));
            self.controller.on_cwr_complete(self.now);
        }
        self.controller.on_recovery_state(self.now, RecoveryState::Open);
    }
}
