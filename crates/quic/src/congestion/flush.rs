//! Reports the outcome of an ACK or a timer to the controller.

use jostle_congestion::{
    AckSample, CongestionSignal, CwndReductionBy, DeliveryUpdate, EcnFeedback, EcnMarks,
    RawAckSample, RecoveryState,
};
use jostle_units::{Span, Time};

use super::CongestionState;
use super::ack_report::{AckOutcome, FlushReport};
use crate::crypto::EncryptionLevel;

impl CongestionState {
    /// Handles a newly acknowledged packet.
    pub fn on_acked(&mut self, packet: u64) {
        // Handshake packets have separate packet numbers and are ignored.
        if self.opened != EncryptionLevel::Data {
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

    /// Handles a lost packet. `bytes` distinguishes it from a handshake packet with the same
    /// number.
    pub fn on_packet_lost(&mut self, now: Time, bytes: u16, packet: u64) {
        if self.flights.size_of(packet) != Some(bytes) {
            return;
        }
        let Some(flight) = self.flights.take(packet) else { return };
        if let Some(log) = &self.log {
            log.lost(packet);
        }
        let lost = self.sampler.on_packet_lost(now, &flight.stamp, flight.number);
        self.news.lost.push(lost);
        self.news.lost_bytes += u64::from(bytes);
        self.totals.lost += 1;
        self.totals.lost_bytes += u64::from(bytes);
    }

    /// Handles losses that are a congestion event.
    pub fn on_losses(&mut self, persistent: bool) {
        self.news.congestion = self.news.lost.last().map(|lost| lost.number);
        self.news.persistent |= persistent;
    }

    /// Handles the acknowledgement of all packets that had been declared lost.
    pub fn on_spurious(&mut self) {
        self.news.spurious = true;
    }

    /// Reports all stored events to the controller, after the stack has processed a datagram or a
    /// timer.
    pub fn flush(&mut self, now: Time) -> FlushReport {
        self.now = now;
        let mut report = FlushReport::default();
        let news = &self.news;
        if news.acked == 0 && news.lost.is_empty() && !news.spurious {
            self.news.ack = None;
            return report;
        }
        let prior_in_flight = self.flights.count() + self.news.acked + self.news.lost.len() as u32;
        let prior_state = self.state;
        let rtt = self.measure(now);
        self.report_raw_ack(now, rtt, prior_state);
        let marked = self.count_new_marks(now);
        if std::mem::take(&mut self.news.spurious) {
            self.undo(now, &mut report);
        }
        let newest = self.news.newest.map(|(number, _)| number);
        let left = newest.is_some_and(|number| self.try_to_leave(now, number, &mut report));
        self.respond(now, marked, newest, &mut report);
        report.lost = self.news.lost.len() as u32;
        if self.news.acked > 0 {
            let before = AckContext { prior_in_flight, left, marked, rtt };
            self.control(now, &before, &mut report);
        }
        self.finish(&mut report, rtt);
        report
    }

    /// Returns the RTT sample of an ACK (RFC 9002 §5.1, §5.3).
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

    fn report_raw_ack(&mut self, now: Time, rtt: Option<Span>, state: RecoveryState) {
        let prior = self.sampler.newest_prior_delivered();
        let delivered = prior.map_or(0, |prior| (self.sampler.delivered() - prior) as u32);
        let first_unacked = self.first_unacked_before_losses();
        if let Some(controller) = &mut self.controller {
            controller.on_ack_before_loss_detection(&RawAckSample {
                now,
                rtt,
                packets: self.news.acked,
                delivered,
                sacked: 0,
                timestamps: None,
                first_unacked,
                next_to_send: self.flights.next_number(),
                state,
                pacing_rate: self.pacer.visible_rate(),
            });
        }
    }

    /// Returns the oldest packet that is not acknowledged, before loss detection processes the ACK
    /// (`snd_una` in TCP). Packets that were just declared lost are outstanding until then, so that
    /// FlightSize (RFC 5681 §2, RFC 9438 §4.6) is the same as over TCP.
    fn first_unacked_before_losses(&self) -> u64 {
        let lost = self.news.lost.iter().map(|lost| lost.number);
        lost.min().unwrap_or(u64::MAX).min(self.flights.first_number())
    }

    /// Returns the number of packets that the ACK newly reports as CE-marked.
    fn count_new_marks(&mut self, now: Time) -> u32 {
        let reported = self.news.ack.take().and_then(|ack| ack.marked);
        if self.feedback == EcnFeedback::None {
            return 0;
        }
        // An ACK that was reordered carries smaller counts (RFC 9000 §13.4.2.1).
        let total = reported.unwrap_or(0).max(self.marked);
        let marked = (total - self.marked) as u32;
        self.marked = total;
        self.totals.marked = total;
        if let Some(controller) = &mut self.controller {
            controller.on_ecn_feedback(&EcnMarks {
                now,
                delivered: self.sampler.delivered(),
                marked: total,
                first_unacked: self.flights.first_number(),
                next_to_send: self.flights.next_number(),
            });
        }
        marked
    }

    /// Reacts to losses and CE marks.
    fn respond(&mut self, now: Time, marked: u32, newest: Option<u64>, report: &mut FlushReport) {
        if let Some(controller) = &mut self.controller {
            for lost in &self.news.lost {
                controller.on_packet_lost(lost);
            }
        }
        self.read_controller();
        if let Some(number) = self.news.congestion.take() {
            if std::mem::take(&mut self.news.persistent) {
                self.on_persistent_congestion(now, number, report);
            } else {
                self.on_congestion_event(now, CongestionSignal::Loss, number, report);
            }
        }
        // RFC 9002 §7.1 and §B.7: an increase of the CE count is a congestion event, with the send
        // time of the largest acknowledged packet.
        if marked > 0
            && let Some(number) = newest
        {
            self.on_congestion_event(now, CongestionSignal::Ecn, number, report);
        }
    }

    /// Updates cwnd by PRR or by the controller.
    fn control(&mut self, now: Time, before: &AckContext, report: &mut FlushReport) {
        let delivery = self.sampler.finish_ack(now, self.rtt.min_rtt());
        let lost = self.news.lost.len() as u32;
        let reducing = self.in_reduction();
        let sample = self.sample(now, before, &delivery, lost);
        if reducing {
            self.reduce_window(self.news.acked, lost);
        }
        if let Some(controller) = &mut self.controller {
            controller.on_ack(&sample);
            let wants = controller.take_cwr_request();
            let limits_flight_on_purpose = controller.limits_flight_on_purpose();
            let before = self.cwnd;
            self.read_controller();
            if !sample.cwnd_limited {
                self.keep_unused_window(before);
            }
            if wants {
                self.on_congestion_event(
                    now,
                    CongestionSignal::Request,
                    self.flights.next_number(),
                    report,
                );
            }
            if limits_flight_on_purpose {
                self.sampler.set_app_limited(self.flights.count());
            }
        }
        self.update_pacing_rate();
    }

    fn sample(
        &self,
        now: Time,
        before: &AckContext,
        delivery: &DeliveryUpdate,
        lost: u32,
    ) -> AckSample {
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
            // The ACK frame reports the ACK delay, and the RTT sample excludes it.
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
            pacing_limited: self.held,
            can_increase_cwnd: !self.in_reduction(),
            recovery_ended: before.left,
            ce_marked: before.marked,
        }
    }

    fn is_window_limited(&self) -> bool {
        let slow_start = self.owner == CwndReductionBy::Transport && self.cwnd < self.ssthresh;
        self.usage.is_limit(self.cwnd, slow_start)
    }

    fn finish(&mut self, report: &mut FlushReport, rtt: Option<Span>) {
        self.totals.acked_bytes += std::mem::take(&mut self.news.stream_bytes);
        let acked = std::mem::take(&mut self.news.acked);
        if acked > 0 {
            report.acknowledged = Some(AckOutcome {
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

/// `ack_delay_exponent` (RFC 9000 §18.2: "a default value of 3 is assumed"). The stack never
/// changes it.
const ACK_DELAY_EXPONENT: u32 = 3;

/// State before an ACK was processed, and results of the ACK.
#[derive(Clone, Copy, Debug)]
struct AckContext {
    prior_in_flight: u32,
    left: bool,
    marked: u32,
    rtt: Option<Span>,
}
