//! The transfer: sender, bottleneck and receiver.

mod recovery;

use std::collections::VecDeque;

use jostle_congestion::{
    AckSample, CongestionController, CwndReductionBy, DeliveryRateSampler, EcnFeedback, EcnMarks,
    EstablishedEvent, FirstFlightLimits, PacketDeliveryState, RawAckSample, RecoveryState,
    RttEstimator, SendEvent, Timestamps,
};
use jostle_units::{FULL_PACKET_BYTES, FULL_PAYLOAD_BYTES, RandomStream, Span, Time};

use super::Path;

struct Packet {
    stamp: PacketDeliveryState,
    delivered: bool,
    marked: bool,
}

/// A transfer over a [`Path`].
pub struct Transfer {
    pub path: Path,
    pub controller: Box<dyn CongestionController>,
    pub now: Time,
    pub rtt: RttEstimator,
    pub state: RecoveryState,
    /// Packets that the application has offered so far; no limit at first.
    offered: u64,
    pub total_sent: u64,
    pub total_lost: u64,
    pub in_flight: u32,
    /// Packets reported as marked so far.
    pub total_marked: u64,
    /// Timeouts so far.
    pub timeouts: u64,
    /// Episodes of fast recovery so far.
    pub recoveries: u64,
    /// Round trips so far: a round ends when the packet sent first in it is acknowledged.
    pub rounds: u64,
    ecn: EcnFeedback,
    sampler: DeliveryRateSampler,
    random: RandomStream,
    /// Packets from `first_unacked` to `total_sent`.
    window: VecDeque<Packet>,
    first_unacked: u64,
    /// One past the highest number delivered.
    delivered_end: u64,
    round_end: u64,
    recovery_end: u64,
    prr_delivered: u64,
    prr_out: u64,
    prior_cwnd: u32,
    /// Times at which packets leave the bottleneck.
    departures: VecDeque<Time>,
    /// Arrivals at the receiver's side of the return path: time, number.
    arrivals: VecDeque<(Time, u64)>,
    unacknowledged: Vec<u64>,
    ack_deadline: Time,
    timeout_at: Time,
    /// Timeouts since an ACK last advanced.
    backoff: u32,
    next_departure: Time,
    held_by_pacing: bool,
    cwnd_limited: bool,
    max_in_flight: u32,
    usage_end: u64,
}

/// What an ACK brings.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    /// Packets delivered, and those of them that were marked.
    acked: u32,
    marked: u32,
    /// Packets acknowledged cumulatively.
    packets: u32,
    rtt: Option<Span>,
    /// When the first of the delivered packets was sent.
    oldest: Time,
    /// Packets that had been delivered when the last one was sent.
    newest_prior: Option<u64>,
}

impl Transfer {
    /// Starts a transfer; the handshake takes one round trip from time 0.
    pub fn new(path: Path, controller: Box<dyn CongestionController>) -> Self {
        Self::of(u64::MAX, path, controller)
    }

    /// Starts a transfer of `packets`.
    pub fn of(packets: u64, path: Path, controller: Box<dyn CongestionController>) -> Self {
        let now = Time::ZERO + path.rtt;
        let mut transfer = Self {
            path,
            controller,
            now,
            rtt: RttEstimator::default(),
            state: RecoveryState::Open,
            offered: packets,
            total_sent: 0,
            total_lost: 0,
            in_flight: 0,
            total_marked: 0,
            timeouts: 0,
            recoveries: 0,
            rounds: 0,
            ecn: EcnFeedback::None,
            sampler: DeliveryRateSampler::default(),
            random: RandomStream::new(1, "harness/loss"),
            window: VecDeque::new(),
            first_unacked: 0,
            delivered_end: 0,
            round_end: 0,
            recovery_end: 0,
            prr_delivered: 0,
            prr_out: 0,
            prior_cwnd: 0,
            departures: VecDeque::new(),
            arrivals: VecDeque::new(),
            unacknowledged: Vec::new(),
            ack_deadline: Time::NEVER,
            timeout_at: Time::NEVER,
            backoff: 0,
            next_departure: now,
            held_by_pacing: false,
            cwnd_limited: false,
            max_in_flight: 0,
            usage_end: 0,
        };
        transfer.rtt.on_sample(path.rtt, 0, 0);
        transfer.rtt.on_min_sample(now, path.rtt);
        transfer.ecn = transfer.controller.required_ecn_feedback();
        transfer.controller.on_ecn_negotiated(transfer.ecn);
        transfer.controller.on_established(&EstablishedEvent {
            now,
            mss_bytes: FULL_PAYLOAD_BYTES,
            initial_window: 10,
            rtt: Some(path.rtt),
            prospect: FirstFlightLimits {
                send_backlog_packets: (packets < u64::MAX).then_some(packets),
                ..FirstFlightLimits::default()
            },
        });
        transfer.send();
        transfer
    }

    /// Runs until `seconds` after time 0.
    pub fn run_until(&mut self, seconds: f64) {
        let end = Time::ZERO + Span::from_secs_f64(seconds);
        while self.next_time() <= end {
            self.step();
        }
        self.now = end;
    }

    /// Share of the bottleneck used between two times, in seconds.
    pub fn utilisation(&mut self, from_s: f64, to_s: f64) -> f64 {
        self.run_until(from_s);
        let before = self.delivered();
        self.run_until(to_s);
        let bits = (self.delivered() - before) as f64 * 1514.0 * 8.0;
        bits / ((to_s - from_s) * self.path.rate.as_bps() as f64)
    }

    /// Runs until `n` more rounds are over.
    pub fn run_rounds(&mut self, n: u64) {
        let end = self.rounds + n;
        while self.rounds < end {
            self.step();
        }
    }

    /// The application offers packets up to `total`, counted from the start of the transfer.
    pub fn offer(&mut self, total: u64) {
        self.offered = total.max(self.total_sent);
        self.send();
    }

    /// Packets in the bottleneck, the one in transmission included.
    pub fn queue(&mut self) -> usize {
        while self.departures.front().is_some_and(|&at| at <= self.now) {
            self.departures.pop_front();
        }
        self.departures.len()
    }

    /// Packets delivered so far.
    pub fn delivered(&self) -> u64 {
        self.sampler.delivered()
    }

    /// Time of the next event; [`Time::NEVER`] if nothing is under way.
    pub fn next_time(&self) -> Time {
        let arrival = self.arrivals.front().map_or(Time::NEVER, |a| a.0);
        let pacing = if self.held_by_pacing { self.next_departure } else { Time::NEVER };
        let wakeup = self.controller.next_wakeup().unwrap_or(Time::NEVER);
        arrival.min(pacing).min(wakeup.max(self.now)).min(self.ack_deadline).min(self.timeout_at)
    }

    /// Lets the next event happen.
    pub fn step(&mut self) {
        self.now = self.next_time();
        assert!(self.now < Time::NEVER, "the transfer is stuck");
        if self.arrivals.front().is_some_and(|a| a.0 <= self.now) {
            self.arrive();
        } else if self.ack_deadline <= self.now {
            self.acknowledge();
        } else if self.timeout_at <= self.now {
            self.time_out();
        }
        if self.controller.next_wakeup().is_some_and(|at| at <= self.now) {
            self.controller.on_wakeup(self.now);
        }
        self.send();
    }

    fn arrive(&mut self) {
        let Some((_, number)) = self.arrivals.pop_front() else { return };
        let expected = self.unacknowledged.last().map_or(self.delivered_end, |last| last + 1);
        self.unacknowledged.push(number);
        let missing = number != expected || self.first_unacked < self.delivered_end;
        if missing || self.unacknowledged.len() >= self.path.ack_every {
            self.acknowledge();
        } else {
            self.ack_deadline = self.ack_deadline.min(self.now + Span::from_ms(40));
        }
    }

    /// One ACK, with the phases in Linux's order (`tcp_input.c::tcp_ack`).
    fn acknowledge(&mut self) {
        self.ack_deadline = Time::NEVER;
        let prior_in_flight = self.in_flight;
        let news = self.take_news();
        self.tell_before_detection(&news);
        let lost = self.detect_loss();
        let was_in_recovery = self.in_recovery();
        self.recover(lost, news.marked);
        let reducing = matches!(self.state, RecoveryState::Cwr | RecoveryState::Recovery)
            && self.owner() == CwndReductionBy::Transport;
        let delivery = self.sampler.finish_ack(self.now, self.rtt.min_rtt());
        if reducing {
            self.reduce(news.acked, news.packets > 0 && lost == 0);
        }
        let slow_start = self.owner() == CwndReductionBy::Transport
            && self.controller.ssthresh().is_none_or(|s| self.controller.cwnd() < s);
        self.controller.on_ack(&AckSample {
            now: self.now,
            acked: news.acked,
            lost,
            rtt: news.rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rate: delivery.rate,
            prior_delivered: delivery.prior_delivered,
            sent_at: delivery.sent_at,
            in_flight_at_send: delivery.in_flight_at_send,
            lost_since_send: delivery.lost_since_send,
            app_limited: delivery.app_limited,
            ack_delayed: false,
            delivered: self.sampler.delivered(),
            total_lost: self.total_lost,
            total_sent: self.total_sent,
            prior_in_flight,
            in_flight: self.in_flight,
            first_unacked: self.first_unacked,
            next_to_send: self.total_sent,
            next_departure: self.next_departure,
            state: self.state,
            cwnd_limited: self.cwnd_limited
                || (slow_start && self.controller.cwnd() < 2 * self.max_in_flight),
            pacing_limited: false,
            can_increase_cwnd: news.packets > 0 && !reducing,
            recovery_ended: was_in_recovery && !self.in_recovery(),
            ce_marked: news.marked,
        });
        self.finish_ack();
    }

    /// Takes what the receiver has to acknowledge out of the flight.
    fn take_news(&mut self) -> News {
        let prior_unacked = self.first_unacked;
        let mut news = News { oldest: Time::NEVER, ..News::default() };
        let mut newest = Time::ZERO;
        for number in self.unacknowledged.drain(..) {
            self.delivered_end = self.delivered_end.max(number + 1);
            // A packet that was taken for lost has left the window.
            let Some(index) = number.checked_sub(self.first_unacked) else { continue };
            let packet = &mut self.window[index as usize];
            packet.delivered = true;
            news.acked += 1;
            news.oldest = news.oldest.min(packet.stamp.sent_at);
            news.marked += u32::from(packet.marked);
            newest = packet.stamp.sent_at;
            self.sampler.on_delivered(&packet.stamp, number + 1);
            self.in_flight -= 1;
        }
        news.newest_prior = self.sampler.newest_prior_delivered();
        news.rtt = (newest > Time::ZERO).then(|| self.now.since(newest));
        self.advance();
        if let Some(rtt) = news.rtt {
            self.rtt.on_sample(rtt, self.first_unacked, self.total_sent);
            self.rtt.on_min_sample(self.now, rtt);
        }
        news.packets = (self.first_unacked - prior_unacked) as u32;
        if news.packets > 0 {
            self.backoff = 0;
        }
        news
    }

    fn tell_before_detection(&mut self, news: &News) {
        self.controller.on_ack_before_loss_detection(&RawAckSample {
            now: self.now,
            rtt: news.rtt,
            packets: news.packets,
            delivered: news.newest_prior.map_or(0, |prior| (self.delivered() - prior) as u32),
            sacked: self.sacked(),
            timestamps: Some(self.timestamps(news.oldest)),
            first_unacked: self.first_unacked,
            next_to_send: self.total_sent,
            state: self.state,
            pacing_rate: self.controller.pacing_rate(),
        });
        // SACK blocks keep an ACK off the predicted path.
        let has_blocks = self.first_unacked < self.delivered_end;
        if let Some(tcp) = self.controller.tcp_extension_mut().filter(|tcp| tcp.wants_ack_events())
        {
            tcp.on_ack_event(self.now, has_blocks);
        }
        self.total_marked += u64::from(news.marked);
        if self.ecn != EcnFeedback::None {
            self.controller.on_ecn_feedback(&EcnMarks {
                now: self.now,
                delivered: self.sampler.delivered(),
                marked: self.total_marked,
                first_unacked: self.first_unacked,
                next_to_send: self.total_sent,
            });
        }
    }

    /// What follows when the controller has heard of the ACK.
    fn finish_ack(&mut self) {
        if self.controller.take_cwr_request() {
            self.enter_cwr();
        }
        if self.controller.limits_flight_on_purpose() {
            self.sampler.set_app_limited(self.in_flight);
        }
        if self.first_unacked > self.round_end {
            self.round_end = self.total_sent;
            self.rounds += 1;
        }
        self.arm_timeout();
    }

    /// Packets delivered beyond `first_unacked`. Outside of recovery there are few of them to go
    /// through: three more and the hole before them is declared lost.
    fn sacked(&self) -> u32 {
        let ahead = self.delivered_end.saturating_sub(self.first_unacked) as usize;
        self.window.iter().take(ahead).filter(|packet| packet.delivered).count() as u32
    }

    /// Timestamps of an ACK that echoes the packet sent at `echoed`; its way back takes half of
    /// the round trip, and both clocks start with the transfer.
    fn timestamps(&self, echoed: Time) -> Timestamps {
        let ms = |at: Time| (at.as_ns() / 1_000_000) as u32 + 1;
        Timestamps {
            value_ms: ms(self.now - self.path.rtt.mul_div(1, 2)),
            echo_ms: ms(echoed.min(self.now)),
            now_ms: ms(self.now),
        }
    }

    /// Moves `first_unacked` over delivered packets.
    fn advance(&mut self) {
        while self.window.front().is_some_and(|packet| packet.delivered) {
            self.window.pop_front();
            self.first_unacked += 1;
        }
    }

    /// Sends what the window, the pacing rate and the application allow, as one burst.
    fn send(&mut self) {
        let room = self.controller.cwnd().saturating_sub(self.in_flight);
        let left = u32::try_from(self.offered - self.total_sent).unwrap_or(u32::MAX);
        let mut packets = room.min(left);
        self.held_by_pacing = false;
        let mut is_paced = false;
        if packets > 0
            && let Some(rate) = self.controller.pacing_rate()
        {
            if self.next_departure > self.now {
                self.held_by_pacing = true;
                return;
            }
            let burst = self.controller.min_burst_packets().unwrap_or(1).max(1);
            packets = packets.min(burst);
            is_paced = true;
            // Linux paces payload: `tcp_output.c::tcp_update_skb_after_send` charges skb->len
            // before the headers.
            let size_bytes = u64::from(packets) * u64::from(FULL_PAYLOAD_BYTES);
            self.next_departure = self.now + rate.time_for(size_bytes);
        }
        if packets > 0 {
            self.transmit(packets);
            // A start-up that chooses every gap lets the next packet out as this one leaves.
            if let Some(gap) = self.controller.next_packet_gap() {
                self.next_departure = self.now + gap;
                is_paced = true;
            }
            // The controller may have opened the window for the packet.
            self.held_by_pacing = is_paced
                && self.offered > self.total_sent
                && self.controller.cwnd() > self.in_flight;
        }
        let limited = self.in_flight >= self.controller.cwnd();
        if packets > 0 {
            self.validate(limited);
        }
        if self.total_sent == self.offered && !limited {
            self.sampler.set_app_limited(self.in_flight);
        }
    }

    /// Remembers for a window of data whether cwnd was its limit
    /// (`tcp_output.c::tcp_cwnd_validate`).
    fn validate(&mut self, limited: bool) {
        let rises = !self.cwnd_limited && self.in_flight > self.max_in_flight;
        if limited || rises || self.first_unacked >= self.usage_end {
            self.cwnd_limited = limited;
            self.max_in_flight = self.in_flight;
            self.usage_end = self.total_sent;
        }
    }

    fn transmit(&mut self, packets: u32) {
        let prior_in_flight = self.in_flight;
        let before = self.total_sent;
        for number in before..before + u64::from(packets) {
            let stamp = self.sampler.on_send(self.now, self.in_flight == 0, self.in_flight + 1);
            let queue = self.queue();
            let marked = self.ecn != EcnFeedback::None && queue > self.path.mark_above;
            self.window.push_back(Packet { stamp, delivered: false, marked });
            self.total_sent += 1;
            self.in_flight += 1;
            let due = self.path.lose_every > 0 && (number + 1) % self.path.lose_every == 0;
            let lost = self.random.chance(self.path.loss) || due;
            if !lost && queue < self.path.buffer {
                let start = self.departures.back().map_or(self.now, |&at| at.max(self.now));
                let each = self.path.rate.time_for(u64::from(FULL_PACKET_BYTES));
                let end = start + each;
                self.departures.push_back(end);
                // What a bucket holds has been sent in advance.
                let late =
                    end.since(self.now).as_ns().saturating_sub(self.path.bucket * each.as_ns());
                let passed = self.now + Span::from_ns(late);
                let last = self.arrivals.back().map_or(Time::ZERO, |a| a.0);
                self.arrivals.push_back(((passed + self.path.rtt).max(last), number));
            }
        }
        self.prr_out += u64::from(packets);
        if prior_in_flight == 0 {
            self.arm_timeout();
        }
        self.controller.on_send(&SendEvent {
            now: self.now,
            packets,
            total_sent: self.total_sent,
            next_to_send: self.total_sent,
            prior_in_flight,
            after_idle: prior_in_flight == 0 && self.sampler.is_app_limited(),
        });
    }
}
