//! A sender alone, as packetdrill tests one: a script of ACKs and of time, and what leaves when.

mod controller_calls;
mod ecn;
mod forged_acks;
mod invariants;
mod limits;
mod piggybacked_acks;
mod recovery;
mod reductions;
mod rtt_samples;
mod stream;
mod timeout_recovery;
mod timers;
mod undo;
mod window;
mod zero_window;

use std::collections::BTreeMap;

use jostle_congestion::transport::{HostTimers, RecoverFlightSize};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EcnFeedback,
    EstablishedEvent, QuickStartRate, RTO_MAX, RecoveryState,
};
use jostle_controllers::WindowBasedController;
use jostle_controllers::algorithms::Reno;
use jostle_controllers::slow_start::Standard;
use jostle_units::{Ecn, SendLimit, Span, Time};

use super::timers::PendingTimer;
use super::{SegmentSink, Sender, SenderConfig, SenderTimers, timestamp_ms};
use crate::receiver::Receiver;
use crate::receiver::test_support::take;
use crate::segment::test_support::{ack, syn};
use crate::segment::{
    AccEcnFeedback, Ack, AckTag, Data, SackBlock, Segment, SynAck, TimestampClock,
};

const RTT: Span = Span::from_ms(40);
const OPTIONS: SenderConfig = SenderConfig {
    timers: HostTimers::EXACT,
    pacing: false,
    ecn: false,
    initial_window: 10,
    timestamp_offset: 0,
    initial_pacing: false,
    short_path_bursts: true,
    recover_flight_size: RecoverFlightSize::PriorCwnd,
    peer: 0,
    mss_bytes: 1448,
    unsent_bytes: 2 << 20,
    is_server: false,
};

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// A segment that left, and how.
#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Time,
    segment: Segment,
    ecn: Ecn,
}

impl Departure {
    fn data(&self) -> Option<&Data> {
        match &self.segment {
            Segment::Data(data) => Some(data),
            _ => None,
        }
    }

    /// Number of a data segment; 0 of a SYN.
    fn number(&self) -> u32 {
        self.data().map_or(0, |data| data.number)
    }

    fn payload_bytes(&self) -> u16 {
        self.data().map_or(0, |data| data.payload_bytes)
    }

    /// CWR, or the offer of ECN in a SYN.
    fn flag(&self) -> bool {
        match &self.segment {
            Segment::Data(data) => data.cwr,
            Segment::Syn(syn) => syn.ecn,
            _ => false,
        }
    }
}

/// Remembers what leaves.
#[derive(Default)]
struct Wire {
    departures: Vec<Departure>,
    /// Packets per burst.
    bursts: Vec<u32>,
    retransmitted: u32,
    retransmitted_wire_bytes: u64,
    /// Each change of what limits the sender.
    limits: Vec<(Time, SendLimit)>,
    /// What waits in a network card; `None`: there is none.
    card_bytes: Option<u64>,
}

impl SegmentSink for Wire {
    fn transmit(&mut self, at: Time, segment: Segment, ecn: Ecn) {
        self.departures.push(Departure { at, segment, ecn });
        if let Some(bytes) = &mut self.card_bytes {
            *bytes += u64::from(segment.wire_bytes());
        }
    }

    fn host_queue_bytes(&self) -> u64 {
        self.card_bytes.unwrap_or(0)
    }

    fn note_sent(&mut self, _now: Time, packets: u32, wire_bytes: u64, retransmission: bool) {
        if retransmission {
            self.retransmitted += packets;
            self.retransmitted_wire_bytes += wire_bytes;
        } else {
            self.bursts.push(packets);
        }
    }

    fn note_limit(&mut self, at: Time, limit: SendLimit) {
        self.limits.push((at, limit));
    }
}

/// A controller whose window never moves by itself.
struct Still {
    cwnd: u32,
    ssthresh: Option<u32>,
}

impl CongestionController for Still {
    fn on_established(&mut self, _established: &EstablishedEvent) {}
    fn on_ack(&mut self, _ack: &AckSample) {}
    fn on_congestion_event(&mut self, _congestion: &CongestionEvent) {}
    fn on_undo(&mut self, _now: Time) {}
    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd;
    }
    fn cwnd(&self) -> u32 {
        self.cwnd
    }
    fn ssthresh(&self) -> Option<u32> {
        self.ssthresh
    }
    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Transport
    }
    fn mode(&self) -> &'static str {
        "still"
    }
}

fn reno() -> Box<dyn CongestionController> {
    Box::new(WindowBasedController::new(Reno, Box::new(Standard)))
}

/// A sender under test.
struct Script {
    now: Time,
    sender: Sender,
    wire: Wire,
    /// How many departures the script has already looked at.
    seen: usize,
}

impl Script {
    fn new(options: SenderConfig, controller: Box<dyn CongestionController>) -> Self {
        Self {
            now: Time::ZERO,
            sender: Sender::new(options, controller),
            wire: Wire::default(),
            seen: 0,
        }
    }

    /// Reno with an endless supply of data, connected at 40 ms over an RTT of 40 ms.
    fn bulk(initial_window: u32) -> Self {
        let mut script = Self::new(SenderConfig { initial_window, ..OPTIONS }, reno());
        script.supply(None);
        script.connect(RTT);
        script
    }

    fn supply(&mut self, bytes: Option<u64>) {
        self.sender.supply(self.now, bytes, &mut self.wire);
    }

    fn open(&mut self) {
        self.sender.open(self.now, &mut self.wire);
    }

    /// The answer to the SYN with that timestamp arrives now.
    fn syn_ack(&mut self, echo_ms: u32, window: u32) {
        let ecn = self.sender.wants_ecn();
        self.answer(&syn_ack(ecn, echo_ms, window));
    }

    fn answer(&mut self, syn_ack: &SynAck) {
        self.sender.on_syn_ack(self.now, syn_ack, &mut self.wire);
    }

    /// Opens now; the SYN-ACK comes after `rtt` and offers `window` segments.
    fn connect_with(&mut self, rtt: Span, window: u32) {
        self.open();
        self.until(self.now + rtt);
        self.syn_ack(timestamp_ms(self.now - rtt), window);
        self.seen = 1;
    }

    fn connect(&mut self, rtt: Span) {
        self.connect_with(rtt, 1 << 20);
    }

    /// Lets time pass and timers expire.
    fn until(&mut self, end: Time) {
        while self.deadline() <= end {
            let at = self.deadline().max(self.now);
            self.now = at;
            // All are called: a timer whose deadline has not come does nothing.
            self.sender.on_timer(at, &mut self.wire);
            self.sender.on_pacing_timer(at, &mut self.wire);
            self.sender.on_wakeup(at, &mut self.wire);
        }
        self.now = end;
    }

    /// When the sender is to be called.
    fn deadline(&self) -> Time {
        let &SenderTimers { retransmission, pacing, wakeup } = self.sender.deadlines();
        retransmission.min(pacing).min(wakeup)
    }

    /// An ACK arrives now.
    fn receive(&mut self, ack: Ack) {
        self.sender.on_ack(self.now, &ack, &mut self.wire);
    }

    /// An ACK up to `number`, with the timestamp that RFC 7323 §4.3 asks for: of the segment that
    /// advances the left edge, or that did so last.
    fn ack(&self, number: u32) -> Ack {
        let first = self.sender.board.first();
        let edge = if number > first { first } else { first.saturating_sub(1) };
        ack(number, self.stamp_of(edge), 1 << 20, false)
    }

    /// An ACK with blocks, most recent first.
    fn sack(&self, number: u32, blocks: &[(u32, u32)]) -> Ack {
        let mut ack = self.ack(number);
        ack.block_count = blocks.len() as u8;
        for (slot, &(start, end)) in ack.blocks.iter_mut().zip(blocks) {
            *slot = SackBlock { start, end };
        }
        ack
    }

    /// The same, whose first block is a duplicate.
    fn dsack(&self, number: u32, blocks: &[(u32, u32)]) -> Ack {
        Ack { duplicate: true, ..self.sack(number, blocks) }
    }

    /// Timestamp of the latest transmission of `number`.
    fn stamp_of(&self, number: u32) -> u32 {
        let data = self.wire.departures.iter().rev();
        data.filter_map(Departure::data).find(|it| it.number == number).map_or(0, |it| it.tsval_ms)
    }

    /// What has left since this was asked last.
    fn left(&mut self) -> Vec<Departure> {
        let left = self.wire.departures[self.seen..].to_vec();
        self.seen = self.wire.departures.len();
        left
    }

    /// The numbers of what has left.
    fn numbers(&mut self) -> Vec<u32> {
        self.left().iter().map(|it| it.number()).collect()
    }

    #[track_caller]
    fn sends_nothing(&mut self) {
        assert_eq!(self.numbers(), Vec::<u32>::new());
    }

    /// When and what has left.
    fn timed_numbers(&mut self) -> Vec<(Time, u32)> {
        self.left().iter().map(|it| (it.at, it.number())).collect()
    }

    fn state(&self) -> RecoveryState {
        self.sender.recovery.state()
    }
}

/// The answer to a SYN with the timestamp `tsecr_ms`, on the SYN's own path of no length.
fn syn_ack(ecn: bool, tsecr_ms: u32, window: u32) -> SynAck {
    let (rate, clock) = (QuickStartRate::NONE, TimestampClock::default());
    SynAck { tag: AckTag::Ack, ecn, rate, requests_rate: false, clock, tsecr_ms, window }
}

fn range(start: u32, end: u32) -> Vec<u32> {
    (start..end).collect()
}

/// A sender and a receiver at the ends of a path of infinite capacity that loses what it is told.
struct Loopback {
    script: Script,
    receiver: Receiver,
    rtt: Span,
    /// On the way, by time of arrival: data there, ACKs back.
    travelling: BTreeMap<(Time, usize), Segment>,
    /// Segments whose next transmission never arrives.
    lost: Vec<u32>,
    /// The next ACK that a read brings about never arrives.
    drop_update: bool,
    delivered_bytes: u64,
    /// Latest arrival of data and of an ACK: packets keep a microsecond's distance, so that no two
    /// ACKs come at the same instant.
    latest: [Time; 2],
}

impl Loopback {
    fn new(options: SenderConfig, controller: Box<dyn CongestionController>, rtt: Span) -> Self {
        Self {
            script: Script::new(options, controller),
            receiver: Receiver::new(1448, 60_000_000, rtt, EcnFeedback::Classic),
            rtt,
            travelling: BTreeMap::new(),
            lost: Vec::new(),
            drop_update: false,
            delivered_bytes: 0,
            latest: [Time::ZERO; 2],
        }
    }

    /// Connects and sends the first data.
    fn start(&mut self, bytes: Option<u64>) {
        self.script.supply(bytes);
        let answer = self.receiver.on_syn(Time::ZERO, &syn(false, 1));
        self.script.connect_with(self.rtt, answer.window);
        self.collect();
    }

    fn supply(&mut self, bytes: Option<u64>) {
        self.script.supply(bytes);
        self.collect();
    }

    /// Puts what has left on its way.
    fn collect(&mut self) {
        for it in self.script.left() {
            match self.lost.iter().position(|&number| number == it.number()) {
                Some(i) => drop(self.lost.swap_remove(i)),
                None => self.travel(it.at, it.segment),
            }
        }
    }

    fn travel(&mut self, at: Time, segment: Segment) {
        let back = usize::from(matches!(segment, Segment::Ack(_)));
        let latest = &mut self.latest[back];
        *latest = (at + self.rtt.mul_div(1, 2)).max(*latest + Span::from_us(1));
        self.travelling.insert((*latest, back), segment);
    }

    fn until(&mut self, end: Time) {
        while self.script.now < end {
            let arrival = self.travelling.keys().next().map_or(Time::NEVER, |key| key.0);
            let timers = self.script.deadline().min(self.receiver.deadline());
            let now = arrival.min(timers).min(end);
            self.script.until(now);
            if let Some(ack) = self.receiver.on_timer(now) {
                self.travel(now, Segment::Ack(ack));
            }
            while let Some(entry) = self.travelling.first_entry().filter(|it| it.key().0 <= now) {
                let segment = entry.remove();
                self.arrive(now, segment);
            }
            self.collect();
        }
    }

    fn arrive(&mut self, now: Time, segment: Segment) {
        let data = match segment {
            Segment::Ack(ack) => return self.script.receive(ack),
            Segment::Data(data) => data,
            other => panic!("{other:?} after the handshake"),
        };
        let arrival = take(&mut self.receiver, now, &data, Ecn::NotCapable);
        self.delivered_bytes += arrival.bytes;
        if let Some(ack) = arrival.ack {
            self.travel(now, Segment::Ack(ack));
        }
        if arrival.reopens {
            let update = self.receiver.build_window_update(now);
            if !std::mem::take(&mut self.drop_update) {
                self.travel(now, Segment::Ack(update));
            }
        }
    }
}
