//! A transport that does anything a transport may do, in any order, and checks after every step
//! what a controller must never get wrong.

use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EcnFeedback, EcnMarks, EstablishedEvent, FirstFlightLimits, LostPacket, RateSample,
    RawAckSample, RecoveryState, RttEstimator, SendEvent, StateObserver, Timestamps,
};
use jostle_units::{Rate, Span, Time};
use proptest::prelude::*;

/// Something that happens to a connection.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Sends up to so many packets, as far as cwnd allows, but one in any case (a probe).
    Send(u32),
    /// An ACK for a share of what is in flight.
    Ack(Ack),
    /// Loss is found, a mark echoed, or the timer expires.
    Signal(CongestionSignal),
    /// Recovery, if any, is over.
    Recover,
    /// The last signal was spurious.
    Undo,
    /// The transport takes cwnd to so many packets more than are in flight.
    Reduce(u32),
    /// Everything is acknowledged, and nothing happens for a while.
    Idle(Span),
    /// Nothing happens for a while.
    Wait(Span),
    /// The path takes packets of another size.
    Resize(u32),
}

/// What an [`Operation::Ack`] says.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Packets newly delivered: 256ths of those in flight.
    pub share: u8,
    /// Packets newly lost: 256ths of those that remain.
    pub lost: u8,
    /// Packets newly marked.
    pub marked: u8,
    pub rtt: Option<Span>,
    pub interval: Span,
    pub app_limited: bool,
    pub cwnd_limited: bool,
    pub pacing: Option<Rate>,
}

/// Spans from nothing to a quarter of an hour, small ones as likely as large ones.
fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        1 => Just(Span::ZERO),
        3 => (0u64..1_000_000).prop_map(Span::from_ns),
        6 => (1u64..1_000).prop_map(Span::from_ms),
        1 => (1u64..1_000).prop_map(Span::from_secs),
    ]
}

fn ack() -> impl Strategy<Value = Ack> {
    let pacing = proptest::option::of((0u64..400_000_000_000).prop_map(Rate::from_bps));
    let limits = (any::<bool>(), proptest::bool::weighted(0.8));
    let lost = prop_oneof![3 => Just(0u8), 1 => any::<u8>()];
    let marked = prop_oneof![3 => Just(0u8), 1 => any::<u8>()];
    (any::<u8>(), lost, marked, proptest::option::weighted(0.9, span()), span(), limits, pacing)
        .prop_map(|(share, lost, marked, rtt, interval, (app_limited, cwnd_limited), pacing)| Ack {
            share,
            lost,
            marked,
            rtt,
            interval,
            app_limited,
            cwnd_limited,
            pacing,
        })
}

pub fn operation() -> impl Strategy<Value = Operation> {
    let signal = prop_oneof![
        Just(CongestionSignal::Loss),
        Just(CongestionSignal::Ecn),
        Just(CongestionSignal::Timeout)
    ];
    prop_oneof![
        8 => (1u32..100_000).prop_map(Operation::Send),
        12 => ack().prop_map(Operation::Ack),
        2 => signal.prop_map(Operation::Signal),
        2 => Just(Operation::Recover),
        1 => Just(Operation::Undo),
        1 => (0u32..10).prop_map(Operation::Reduce),
        1 => span().prop_map(Operation::Idle),
        3 => span().prop_map(Operation::Wait),
        1 => (256u32..65_536).prop_map(Operation::Resize),
    ]
}

/// What a controller shows after a step; bits of observed values, to compare them exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    cwnd: u32,
    ssthresh: Option<u32>,
    pacing_rate: Option<Rate>,
    wakeup: Option<Time>,
    mode: &'static str,
    values: Vec<(&'static str, u64)>,
}

#[derive(Default)]
struct Values(Vec<(&'static str, f64)>);

impl StateObserver for Values {
    fn record_value(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}

/// What a controller may do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest cwnd it may answer.
    pub largest_cwnd: u32,
    /// After a timeout ssthresh is an estimate, and may exceed cwnd.
    pub estimates_after_timeout: bool,
}

struct Driver<'a> {
    controller: &'a mut dyn CongestionController,
    limits: Limits,
    names: Vec<&'static str>,
    now: Time,
    rtt: RttEstimator,
    state: RecoveryState,
    first_unacked: u64,
    next_to_send: u64,
    in_flight: u32,
    delivered: u64,
    marked: u64,
    total_lost: u64,
    app_limited: bool,
}

/// Puts `controller` through `operations` and returns what it showed after each.
///
/// # Errors
/// The first thing it got wrong.
pub fn drive(
    controller: &mut dyn CongestionController,
    limits: Limits,
    operations: &[Operation],
) -> Result<Vec<Shown>, String> {
    let now = Time::ZERO + Span::from_ms(50);
    let rtt = Some(Span::from_ms(50));
    controller.on_established(&EstablishedEvent {
        now,
        mss_bytes: 1448,
        initial_window: 10,
        rtt,
        prospect: FirstFlightLimits {
            send_backlog_packets: None,
            receive_window: 40_000,
            quick_start_rate: Some(Rate::from_mbps(100)),
        },
    });
    let mut values = Values::default();
    controller.observe(&mut values);
    let names = values.0.into_iter().map(|(name, _)| name).collect();
    let mut driver = Driver {
        controller,
        limits,
        names,
        now,
        rtt: RttEstimator::default(),
        state: RecoveryState::Open,
        first_unacked: 0,
        next_to_send: 0,
        in_flight: 0,
        delivered: 0,
        marked: 0,
        total_lost: 0,
        app_limited: false,
    };
    driver.rtt.on_sample(Span::from_ms(50), 0, 0);
    driver.rtt.on_min_sample(now, Span::from_ms(50));
    let mut shown = vec![driver.check()?];
    for (i, &operation) in operations.iter().enumerate() {
        let step = driver.apply(operation).and_then(|()| driver.check());
        shown.push(step.map_err(|why| format!("after operation {i}, {operation:?}: {why}"))?);
    }
    Ok(shown)
}

fn part(of: u32, share: u8) -> u32 {
    (u64::from(of) * (u64::from(share) + 1) / 256) as u32
}

impl Driver<'_> {
    fn owner(&self) -> CwndReductionBy {
        self.controller.recovery_owner()
    }

    fn apply(&mut self, operation: Operation) -> Result<(), String> {
        match operation {
            Operation::Send(packets) => self.send(packets),
            Operation::Ack(ack) => return self.acknowledge(ack),
            Operation::Signal(signal) => return self.signal(signal),
            Operation::Recover => self.recover(),
            Operation::Undo => return self.undo(),
            Operation::Reduce(room) => {
                if self.owner() == CwndReductionBy::Transport {
                    self.controller.set_cwnd(self.in_flight.saturating_add(room));
                }
            }
            Operation::Idle(span) => {
                (self.in_flight, self.first_unacked) = (0, self.next_to_send);
                self.app_limited = true;
                self.now += span;
                if self.owner() == CwndReductionBy::Transport && span > self.rtt.rto() {
                    self.controller.on_idle_restart(self.now);
                }
            }
            Operation::Wait(span) => self.now += span,
            Operation::Resize(mss_bytes) => self.controller.on_mss_change(mss_bytes),
        }
        Ok(())
    }

    fn send(&mut self, packets: u32) {
        let packets = packets.min(self.controller.cwnd().saturating_sub(self.in_flight)).max(1);
        let prior_in_flight = self.in_flight;
        self.in_flight = self.in_flight.saturating_add(packets);
        self.next_to_send += u64::from(packets);
        self.controller.on_send(&SendEvent {
            now: self.now,
            packets,
            total_sent: self.next_to_send,
            next_to_send: self.next_to_send,
            prior_in_flight,
            after_idle: prior_in_flight == 0 && self.app_limited,
        });
        self.app_limited = false;
    }

    fn acknowledge(&mut self, ack: Ack) -> Result<(), String> {
        let prior_in_flight = self.in_flight;
        let acked = part(prior_in_flight, ack.share);
        let lost = if ack.lost == 0 { 0 } else { part(prior_in_flight - acked, ack.lost) };
        self.in_flight -= acked + lost;
        self.first_unacked = self.next_to_send - u64::from(self.in_flight);
        let prior_delivered = self.delivered.saturating_sub(u64::from(prior_in_flight));
        self.delivered += u64::from(acked);
        self.total_lost += u64::from(lost);
        let rtt = ack.rtt.map(|rtt| rtt.min(self.now.since(Time::ZERO)));
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt, self.first_unacked, self.next_to_send);
            self.rtt.on_min_sample(self.now, rtt);
        }
        let delivered = (self.delivered - prior_delivered) as u32;
        self.tell_measurement(&ack, acked, lost, delivered, rtt);
        self.tell_losses_and_marks(&ack, acked, lost, prior_in_flight);
        let interval = ack.interval.max(self.rtt.min_rtt()).max(Span::from_ns(1));
        let reducing = matches!(self.state, RecoveryState::Cwr | RecoveryState::Recovery);
        self.controller.on_ack(&AckSample {
            now: self.now,
            acked,
            lost,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rate: (acked > 0).then_some(RateSample { delivered, interval }),
            prior_delivered,
            sent_at: self.now - rtt.unwrap_or(Span::ZERO),
            in_flight_at_send: if acked > 0 { prior_in_flight } else { 0 },
            lost_since_send: if acked > 0 { lost } else { 0 },
            app_limited: ack.app_limited,
            ack_delayed: acked == 1,
            delivered: self.delivered,
            total_lost: self.total_lost,
            total_sent: self.next_to_send,
            prior_in_flight,
            in_flight: self.in_flight,
            first_unacked: self.first_unacked,
            next_to_send: self.next_to_send,
            next_departure: self.now,
            state: self.state,
            cwnd_limited: ack.cwnd_limited,
            pacing_limited: false,
            can_increase_cwnd: acked > 0 && !reducing,
            recovery_ended: false,
            ce_marked: u32::from(ack.marked).min(acked),
        });
        let orderly = matches!(self.state, RecoveryState::Open | RecoveryState::Disorder);
        if self.controller.take_cwr_request() && orderly {
            return self.signal(CongestionSignal::Request);
        }
        Ok(())
    }

    /// What an ACK says before loss detection sees it.
    fn tell_measurement(
        &mut self,
        ack: &Ack,
        acked: u32,
        lost: u32,
        delivered: u32,
        rtt: Option<Span>,
    ) {
        self.controller.on_ack_before_loss_detection(&RawAckSample {
            now: self.now,
            rtt,
            packets: acked,
            delivered,
            sacked: lost.min(self.in_flight),
            timestamps: Some(self.timestamps(rtt)),
            first_unacked: self.first_unacked,
            next_to_send: self.next_to_send,
            state: self.state,
            pacing_rate: self.controller.pacing_rate().or(ack.pacing),
        });
        let slow_path = self.state != RecoveryState::Open || ack.share < 64;
        if let Some(tcp) = self.controller.tcp_extension_mut().filter(|tcp| tcp.wants_ack_events())
        {
            tcp.on_ack_event(self.now, slow_path);
        }
    }

    fn tell_losses_and_marks(&mut self, ack: &Ack, acked: u32, lost: u32, prior_in_flight: u32) {
        // A controller learns no more from the thousandth than from the third.
        for i in 0..lost.min(3) {
            self.controller.on_packet_lost(&LostPacket {
                now: self.now,
                number: self.first_unacked + 2 * u64::from(i),
                in_flight_at_send: prior_in_flight,
                lost_since_send: i + 1,
                app_limited: ack.app_limited,
                delivered: self.delivered,
            });
        }
        self.marked += u64::from(ack.marked).min(u64::from(acked));
        if self.controller.required_ecn_feedback() != EcnFeedback::None {
            self.controller.on_ecn_feedback(&EcnMarks {
                now: self.now,
                delivered: self.delivered,
                marked: self.marked,
                first_unacked: self.first_unacked,
                next_to_send: self.next_to_send,
            });
        }
    }

    /// Timestamps as a path would give them whose way back takes half of the RTT.
    fn timestamps(&self, rtt: Option<Span>) -> Timestamps {
        let ms = |at: Time| (at.as_ns() / 1_000_000) as u32 + 1;
        let rtt = rtt.unwrap_or(Span::ZERO);
        Timestamps {
            value_ms: ms(self.now - rtt.mul_div(1, 2)),
            echo_ms: ms(self.now - rtt),
            now_ms: ms(self.now),
        }
    }

    fn signal(&mut self, signal: CongestionSignal) -> Result<(), String> {
        let prior = self.controller.cwnd();
        if signal == CongestionSignal::Timeout {
            self.total_lost += u64::from(self.in_flight);
            (self.in_flight, self.first_unacked) = (0, self.next_to_send);
        }
        self.controller.on_congestion_event(&CongestionEvent {
            now: self.now,
            signal,
            in_flight: self.in_flight,
            next_to_send: self.next_to_send,
        });
        self.state = match signal {
            CongestionSignal::Loss => RecoveryState::Recovery,
            CongestionSignal::Ecn | CongestionSignal::Request => RecoveryState::Cwr,
            CongestionSignal::Timeout => RecoveryState::Loss,
        };
        if self.owner() == CwndReductionBy::Transport {
            let ssthresh = self.controller.ssthresh().ok_or("no ssthresh after a signal")?;
            let most = match signal {
                CongestionSignal::Timeout if self.limits.estimates_after_timeout => u32::MAX,
                _ => prior.max(2),
            };
            if ssthresh < 2 || ssthresh > most {
                return Err(format!("ssthresh {ssthresh} after a signal at {prior}"));
            }
            if signal == CongestionSignal::Timeout {
                self.controller.set_cwnd(1);
            }
        }
        self.controller.on_recovery_state(self.now, self.state);
        Ok(())
    }

    fn recover(&mut self) {
        let ended = matches!(self.state, RecoveryState::Cwr | RecoveryState::Recovery);
        if ended
            && self.owner() == CwndReductionBy::Transport
            && let Some(ssthresh) = self.controller.ssthresh()
        {
            self.controller.set_cwnd(ssthresh);
        }
        if ended && self.owner() == CwndReductionBy::Transport {
            self.controller.on_cwr_complete(self.now);
        }
        if self.state != RecoveryState::Open {
            self.state = RecoveryState::Open;
            self.controller.on_recovery_state(self.now, self.state);
        }
    }

    fn undo(&mut self) -> Result<(), String> {
        let before = (self.controller.cwnd(), self.controller.ssthresh());
        self.controller.on_undo(self.now);
        let after = (self.controller.cwnd(), self.controller.ssthresh());
        if self.owner() == CwndReductionBy::Transport
            && (after.0 < before.0 || after.1.unwrap_or(u32::MAX) < before.1.unwrap_or(u32::MAX))
        {
            return Err(format!("undo went from {before:?} down to {after:?}"));
        }
        Ok(())
    }

    /// What must hold at any time.
    fn check(&mut self) -> Result<Shown, String> {
        if self.controller.next_wakeup().is_some_and(|at| at <= self.now) {
            self.controller.on_wakeup(self.now);
            if self.controller.next_wakeup().is_some_and(|at| at <= self.now) {
                return Err("asks to be woken up for the past".to_owned());
            }
        }
        if self.controller.tcp_extension().is_some()
            != self.controller.tcp_extension_mut().is_some()
        {
            return Err("what it asks of a TCP is there in one way only".to_owned());
        }
        let controller = &*self.controller;
        let cwnd = controller.cwnd();
        if cwnd == 0 || cwnd > self.limits.largest_cwnd {
            return Err(format!("cwnd {cwnd}"));
        }
        let ssthresh = controller.ssthresh();
        if ssthresh == Some(0) {
            return Err("ssthresh 0".to_owned());
        }
        let pacing_rate = controller.pacing_rate();
        if pacing_rate == Some(Rate::ZERO) {
            return Err("a pacing rate that never sends".to_owned());
        }
        if controller.min_burst_packets() == Some(0) {
            return Err("bursts of no packets".to_owned());
        }
        let mode = controller.mode();
        if mode.is_empty() {
            return Err("a mode without a name".to_owned());
        }
        let mut values = Values::default();
        controller.observe(&mut values);
        if let Some((name, value)) = values.0.iter().find(|(_, value)| !value.is_finite()) {
            return Err(format!("{name} is {value}"));
        }
        if !values.0.iter().map(|(name, _)| *name).eq(self.names.iter().copied()) {
            return Err("other names observed than at first".to_owned());
        }
        let values = values.0.into_iter().map(|(name, value)| (name, value.to_bits())).collect();
        let wakeup = controller.next_wakeup();
        Ok(Shown { cwnd, ssthresh, pacing_rate, wakeup, mode, values })
    }
}
