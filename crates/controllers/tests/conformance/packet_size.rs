//! The size of packets may change while a connection lives.
//!
//! Two connections on the same path, in packets: one has packets of 1448 bytes all along, the other
//! changes to them from half of that. What the controllers make of bytes has to be the same in the
//! end: the rates that they measured, and what their pacing rate is beside their window.

use std::collections::BTreeMap;

use jostle_congestion::{
    AckSample, CongestionController, EcnFeedback, EstablishedEvent, RateSample, RawAckSample,
    RecoveryState, SendEvent, StateObserver,
};
use jostle_controllers::registry::ControllerEntry;
use jostle_units::{Span, Time};

use super::{Given, create};

const MSS_BYTES: u32 = 1448;
const RTT: Span = Span::from_ms(50);
/// 100 packets in flight, an ACK for each.
const IN_FLIGHT: u32 = 100;
const ACK_GAP: Span = Span::from_us(500);
/// 20 s before the change, and after it.
const ACKS: u64 = 40_000;

/// Rows that choose a rate and do not measure it: theirs stays what it is.
const CHOOSE_RATES: &[&str] = &["timely", "allegro", "vivace", "proteus"];

/// Numbers of a connection that have to do with bytes.
#[derive(Debug)]
pub struct Numbers(BTreeMap<&'static str, f64>);

impl StateObserver for Numbers {
    fn record_value(&mut self, name: &'static str, value: f64) {
        if name.ends_with("_bps") {
            self.0.insert(name, value);
        }
    }
}

/// Numbers at the end of a connection of packets of `first` bytes, and of `then` if it is told.
fn numbers(row: &ControllerEntry, start: &str, first: u32, then: Option<u32>) -> Numbers {
    let mut controller = create(row, &Given::new(), start);
    let feedback = controller.required_ecn_feedback();
    if feedback != EcnFeedback::None {
        controller.on_ecn_negotiated(feedback);
    }
    controller.on_established(&EstablishedEvent {
        now: Time::ZERO + RTT,
        mss_bytes: first,
        initial_window: 10,
        rtt: Some(RTT),
        prospect: Default::default(),
    });
    for number in 1..=2 * ACKS {
        if number == ACKS
            && let Some(mss_bytes) = then
        {
            controller.on_mss_change(mss_bytes);
        }
        acknowledge(controller.as_mut(), number);
    }
    let mut numbers = Numbers(BTreeMap::new());
    controller.observe(&mut numbers);
    if CHOOSE_RATES.contains(&row.entry.name) {
        numbers.0.clear();
    }
    if let Some(rate) = controller.pacing_rate() {
        let window_bits = f64::from(controller.cwnd()) * f64::from(8 * MSS_BYTES);
        numbers.0.insert("windows per RTT", rate.as_bps() as f64 * RTT.as_secs_f64() / window_bits);
    }
    numbers
}

/// The ACK of a packet, and the next one is sent.
fn acknowledge(controller: &mut dyn CongestionController, number: u64) {
    let now = Time::ZERO + RTT + RTT + ACK_GAP.mul_div(number, 1);
    let in_flight = u64::from(IN_FLIGHT);
    controller.on_ack_before_loss_detection(&RawAckSample {
        now,
        rtt: Some(RTT),
        packets: 1,
        delivered: IN_FLIGHT,
        sacked: 0,
        timestamps: None,
        first_unacked: number,
        next_to_send: number + in_flight,
        state: RecoveryState::Open,
        pacing_rate: controller.pacing_rate(),
    });
    controller.on_ack(&AckSample {
        now,
        acked: 1,
        lost: 0,
        rtt: Some(RTT),
        srtt: RTT,
        min_rtt: RTT,
        rate: Some(RateSample { delivered: IN_FLIGHT, interval: RTT }),
        prior_delivered: number.saturating_sub(in_flight),
        sent_at: now - RTT,
        in_flight_at_send: IN_FLIGHT,
        lost_since_send: 0,
        app_limited: false,
        ack_delayed: false,
        delivered: number,
        total_lost: 0,
        total_sent: number + in_flight,
        prior_in_flight: IN_FLIGHT,
        in_flight: IN_FLIGHT - 1,
        first_unacked: number,
        next_to_send: number + in_flight,
        next_departure: now,
        state: RecoveryState::Open,
        cwnd_limited: true,
        pacing_limited: false,
        can_increase_cwnd: true,
        recovery_ended: false,
        ce_marked: 0,
    });
    if controller.next_wakeup().is_some_and(|at| at <= now) {
        controller.on_wakeup(now);
    }
    controller.on_send(&SendEvent {
        now,
        packets: 1,
        total_sent: number + in_flight + 1,
        next_to_send: number + in_flight + 1,
        prior_in_flight: IN_FLIGHT - 1,
        after_idle: false,
    });
}

/// What differs after the change from what it is where packets had their size all along.
///
/// # Errors
/// The numbers of both.
pub fn follows_the_size(row: &ControllerEntry, start: &str, told: bool) -> Result<(), String> {
    let always = numbers(row, start, MSS_BYTES, None);
    let changed = numbers(row, start, MSS_BYTES / 2, told.then_some(MSS_BYTES));
    let same = always.0.len() == changed.0.len()
        && always
            .0
            .iter()
            .all(|(name, value)| (changed.0[name] - value).abs() <= 0.02 * value.abs());
    if same {
        return Ok(());
    }
    Err(format!("{} with {start}: {changed:?}, not {always:?}", row.entry.name))
}
