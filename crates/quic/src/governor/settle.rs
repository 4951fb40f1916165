//! What an ACK or a timer brought, told to the controller in its own order.

use jostle_control::{
    AckSample, Delivery, EcnFeedback, Marks, Measurement, RecoveryOwner, RecoveryState, Signal,
};
use jostle_units::{Span, Time};

use super::Governor;
use super::report::{Acknowledged, Report};
use crate::crypto::Level;

impl Governor {
    /// An ACK delivered a packet.
    pub fn on_acked(&mut self, packet: u64) {
        // Packet numbers of the handshake's spaces are others.
        if self.opened != Level::Data {
            return;
        }
        let Some(flight) = self.flights.take(packet) else { return };
        self.sampler.on_delivered(&flight.stamp, flight.number + 1);
        let news = &mut self.news;
        news.acked += 1;
        news.stream_bytes += u64::from(flight.stream_bytes);
        if news.newest.is_none_or(|(number, _)| flight.number > number) {
            news.newest = Some((flight.number, flight.stamp.sent_at));
        }
    }

    /// A packet was found to be lost. `bytes` tells it apart from one of the handshake with the same
    /// number.
    pub fn on_lost(&mut self, now: Time, bytes: u16, packet: u64) {
        if self.flights.size_of(packet) != Some(bytes) {
            return;
        }
        let Some(flight) = self.flights.take(packet) else { return };
        if let Some(log) = &self.log {
            log.lost(packet);
        }
        let lost = self.sampler.on_lost(now, &flight.stamp, flight.number);
        self.news.lost.push(lost);
        self.news.lost_bytes += u64::from(bytes);
        self.totals.lost += 1;
        self.totals.lost_bytes += u64::from(bytes);
    }

    /// Losses mean congestion.
    pub fn on_losses(&mut self, persistent: bool) {
        self.news.congestion = self.news.lost.last().map(|lost| lost.number);
        self.news.persistent |= persistent;
    }

    /// Everything that had been found lost was acknowledged.
    pub fn on_spurious(&mut self) {
        self.news.spurious = true;
    }

    /// The stack is done with a datagram or a timer: the controller is told.
    pub fn settle(&mut self, now: Time) -> Report {
        self.now = now;
        let mut report = Report::default();
        let news = &self.news;
        if news.acked == 0 && news.lost.is_empty() && !news.spurious {
            self.news.ack = None;
            return report;
        }
        let prior_in_flight = self.flights.count() + self.news.acked + self.news.lost.len() as u32;
        let prior_state = self.state;
        let rtt = self.measure(now);
        self.tell_measurement(now, rtt, prior_state);
        let marked = self.take_marks(now);
        if std::mem::take(&mut self.news.spurious) {
            self.undo(now, &mut report);
        }
        let newest = self.news.newest.map(|(number, _)| number);
        let left = newest.is_some_and(|number| self.try_to_leave(now, number, &mut report));
        self.respond(now, marked, newest, &mut report);
        report.lost = self.news.lost.len() as u32;
        if self.news.acked > 0 {
            let before = Before { prior_in_flight, left, marked, rtt };
            self.control(now, &before, &mut report);
        }
        self.finish(&mut report, rtt);
        report
    }

    /// The RTT sample of an ACK (RFC 9002 §5.1, §5.3).
    fn measure(&mut self, now: Time) -> Option<Span> {
        let (number, sent_at) = self.news.newest?;
        // "An endpoint MUST NOT generate an RTT sample ... unless the largest acknowledged packet
        // number is newly acknowledged".
        if self.largest_acked.is_some_and(|largest| number <= largest) {
            return None;
        }
        self.largest_acked = Some(number);
        let latest = now.since(sent_at);
        self.rtt.on_min_sample(now, latest);
        let held_us = self.news.ack.map_or(0, |ack| ack.delay << ACK_DELAY_EXPONENT);
        let held = Span::from_us(held_us).min(self.max_ack_delay);
        // "MUST NOT subtract the acknowledgment delay from the RTT sample if the resulting value is
        // smaller than the min_rtt".
        let adjusted = if latest >= self.rtt.min_rtt() + held { latest - held } else { latest };
        let (first, next) = (self.flights.first_number(), self.flights.next_number());
        self.rtt.on_sample(adjusted, first, next);
        Some(adjusted)
    }

    fn tell_measurement(&mut self, now: Time, rtt: Option<Span>, state: RecoveryState) {
        let prior = self.sampler.newest_prior_delivered();
        let delivered = prior.map_or(0, |prior| (self.sampler.delivered() - prior) as u32);
        if let Some(controller) = &mut self.controller {
            controller.on_measurement(&Measurement {
                now,
                rtt,
                packets: self.news.acked,
                delivered,
                sacked: 0,
                timestamps: None,
                first_unacked: self.flights.first_number(),
                next_to_send: self.flights.next_number(),
                state,
                pacing_rate: self.pacer.visible_rate(),
            });
        }
    }

    /// What the ACK says of marks: how many packets are newly marked.
    fn take_marks(&mut self, now: Time) -> u32 {
        let told = self.news.ack.take().and_then(|ack| ack.marked);
        if self.feedback == EcnFeedback::None {
            return 0;
        }
        // Counts of an ACK that was overtaken are smaller (RFC 9000 §13.4.2.1).
        let total = told.unwrap_or(0).max(self.marked);
        let marked = (total - self.marked) as u32;
        self.marked = total;
        self.totals.marked = total;
        if let Some(controller) = &mut self.controller {
            controller.on_marks(&Marks {
                now,
                delivered: self.sampler.delivered(),
                marked: total,
                first_unacked: self.flights.first_number(),
                next_to_send: self.flights.next_number(),
            });
        }
        marked
    }

    /// Losses and marks.
    fn respond(&mut self, now: Time, marked: u32, newest: Option<u64>, report: &mut Report) {
        if let Some(controller) = &mut self.controller {
            for lost in &self.news.lost {
                controller.on_lost(lost);
            }
        }
        self.take_answers();
        if let Some(number) = self.news.congestion.take() {
            self.on_congestion(now, Signal::Loss, number, report);
            if std::mem::take(&mut self.news.persistent) {
                self.on_persistent_congestion(now, report);
            }
        }
        // RFC 9002, B.7: a larger count of marks is a congestion event, with the time at which the
        // largest acknowledged packet was sent.
        if marked > 0
            && let Some(number) = newest
        {
            self.on_congestion(now, Signal::Ecn, number, report);
        }
    }

    /// PRR or the controller moves the window.
    fn control(&mut self, now: Time, before: &Before, report: &mut Report) {
        let delivery = self.sampler.finish_ack(now, self.rtt.min_rtt());
        let lost = self.news.lost.len() as u32;
        let reducing = self.in_reduction();
        let sample = self.sample(now, before, &delivery, lost);
        if reducing {
            self.reduce_window(self.news.acked, lost);
        }
        if let Some(controller) = &mut self.controller {
            controller.on_ack(&sample);
            let wants = controller.take_reduction_request();
            let holds_back = controller.holds_back();
            self.take_answers();
            if wants {
                self.on_congestion(now, Signal::Request, self.flights.next_number(), report);
            }
            if holds_back {
                self.sampler.set_app_limited(self.flights.count());
            }
        }
        self.update_pacing_rate();
    }

    fn sample(&self, now: Time, before: &Before, delivery: &Delivery, lost: u32) -> AckSample {
        AckSample {
            now,
            acked: self.news.acked,
            lost,
            rtt: before.rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rate: delivery.rate,
            prior_delivered: delivery.prior_delivered,
            sent_at: delivery.sent_at,
            in_flight_at_send: delivery.in_flight_at_send,
            lost_since_send: delivery.lost_since_send,
            app_limited: delivery.app_limited,
            // The receiver says for how long it held the ACK back, and the RTT is without it.
            ack_delayed: false,
            delivered: self.sampler.delivered(),
            total_lost: self.totals.lost,
            total_sent: self.totals.sent,
            prior_in_flight: before.prior_in_flight,
            in_flight: self.flights.count(),
            first_unacked: self.flights.first_number(),
            next_to_send: self.flights.next_number(),
            next_departure: self.pacer.departure.max(now),
            state: self.state,
            cwnd_limited: self.is_window_limited(),
            may_grow: !self.in_reduction(),
            left_recovery: before.left,
            ce_marked: before.marked,
        }
    }

    fn is_window_limited(&self) -> bool {
        let slow_start = self.owner == RecoveryOwner::Transport && self.cwnd < self.ssthresh;
        self.usage.is_limit(self.cwnd, slow_start)
    }

    fn finish(&mut self, report: &mut Report, rtt: Option<Span>) {
        self.totals.acked_bytes += std::mem::take(&mut self.news.stream_bytes);
        let acked = std::mem::take(&mut self.news.acked);
        if acked > 0 {
            report.acknowledged = Some(Acknowledged {
                rtt,
                cwnd_bytes: u64::from(self.cwnd) * u64::from(self.datagram_bytes),
                in_flight_bytes: self.flights.bytes(),
                acked_bytes: self.totals.acked_bytes,
                lost_packets: report.lost,
            });
        }
        self.news.newest = None;
        self.news.lost.clear();
        self.news.lost_bytes = 0;
        self.news.persistent = false;
    }
}

/// `ack_delay_exponent` (RFC 9000 §18.2: "a default value of 3 is assumed"), which the stack never
/// changes.
const ACK_DELAY_EXPONENT: u32 = 3;

/// What stood before an ACK was taken, and what it brought.
#[derive(Clone, Copy, Debug)]
struct Before {
    prior_in_flight: u32,
    left: bool,
    marked: u32,
    rtt: Option<Span>,
}
