//! Delivery-rate sampling for all transports, as in draft-cheng-iccrg-delivery-rate-estimation and
//! Linux 6.1 (`tcp_rate.c`).

use jostle_units::{Span, Time};

use crate::controller::{LostPacket, RateSample};

/// State that a transport saves with each packet in flight for the delivery rate. Kept at 40 bytes,
/// because every packet in flight has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketDeliveryState {
    /// Time of the latest transmission.
    pub sent_at: Time,
    /// Send time of the packet whose delivery began the current flight.
    first_sent_at: Time,
    /// Time of the latest delivery known when the packet was sent.
    delivered_at: Time,
    /// Packets delivered when the packet was sent.
    delivered: u64,
    /// Packets marked lost when the packet was sent, modulo 2³².
    lost: u32,
    /// Packets in flight just after the packet was sent, including itself. The highest bit is set
    /// if sending was application-limited.
    flight: u32,
}

/// Bit of [`PacketDeliveryState::flight`] that marks an application-limited packet.
const APP_LIMITED: u32 = 1 << 31;

impl PacketDeliveryState {
    #[inline]
    const fn in_flight(&self) -> u32 {
        self.flight & !APP_LIMITED
    }

    #[inline]
    const fn app_limited(&self) -> bool {
        self.flight & APP_LIMITED != 0
    }
}

/// The most recently sent packet among those that the current ACK delivers.
#[derive(Clone, Copy, Debug)]
struct MostRecentlySent {
    stamp: PacketDeliveryState,
    /// Orders packets that were sent at the same time.
    end: u64,
}

/// Delivery-rate sampler of one connection.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRateSampler {
    delivered: u64,
    /// Packets marked lost, modulo 2³².
    lost: u32,
    delivered_at: Time,
    first_sent_at: Time,
    /// Samples up to this number of delivered packets are application-limited; 0 for none.
    app_limited_until: u64,
    newest: Option<MostRecentlySent>,
    send_elapsed: Span,
}

/// Delivery-rate sample of an ACK and the state of the packet that it is based on.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryUpdate {
    /// The sample; `None` if its interval is too short to be reliable.
    pub rate: Option<RateSample>,
    /// Value of `delivered` when the newest packet was sent.
    pub prior_delivered: u64,
    /// Time at which the newest packet was sent.
    pub sent_at: Time,
    /// Packets in flight just after the newest packet was sent, including itself.
    pub in_flight_at_send: u32,
    /// Packets marked lost since the newest packet was sent.
    pub lost_since_send: u32,
    /// Whether the sample is application-limited.
    pub app_limited: bool,
}

impl DeliveryRateSampler {
    /// Packets delivered since the connection began.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the state to save with a packet that is sent at `now`. `nothing_in_flight`: no
    /// packet was outstanding. `in_flight`: packets in flight, including this one.
    #[inline]
    pub fn on_send(
        &mut self,
        now: Time,
        nothing_in_flight: bool,
        in_flight: u32,
    ) -> PacketDeliveryState {
        if nothing_in_flight {
            // A new flight begins: exclude the preceding idle time from the send and ACK phases.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        PacketDeliveryState {
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost: self.lost,
            flight: in_flight & !APP_LIMITED
                | if self.app_limited_until != 0 { APP_LIMITED } else { 0 },
        }
    }

    /// Records that packet `number` was marked lost.
    #[inline]
    pub fn on_packet_lost(
        &mut self,
        now: Time,
        stamp: &PacketDeliveryState,
        number: u64,
    ) -> LostPacket {
        self.lost = self.lost.wrapping_add(1);
        LostPacket {
            now,
            number,
            in_flight_at_send: stamp.in_flight(),
            lost_since_send: self.lost.wrapping_sub(stamp.lost),
            app_limited: stamp.app_limited(),
            delivered: self.delivered,
        }
    }

    /// Records that the packet that ends at stream position `end` was newly acknowledged.
    #[inline]
    pub fn on_delivered(&mut self, stamp: &PacketDeliveryState, end: u64) {
        self.delivered += 1;
        let newer = match self.newest {
            None => true,
            Some(best) => (stamp.sent_at, end) > (best.stamp.sent_at, best.end),
        };
        if newer {
            self.newest = Some(MostRecentlySent { stamp: *stamp, end });
            self.first_sent_at = stamp.sent_at;
            self.send_elapsed = stamp.sent_at.since(stamp.first_sent_at);
        }
    }

    /// Counts a duplicate of a packet that was already delivered (D-SACK).
    #[inline]
    pub fn count_spurious(&mut self) {
        self.delivered += 1;
    }

    /// Returns `delivered` at the time when the newest packet of the current ACK was sent, if the
    /// ACK delivered any.
    #[inline]
    pub fn newest_prior_delivered(&self) -> Option<u64> {
        self.newest.map(|newest| newest.stamp.delivered)
    }

    /// Marks sending as application-limited: the application has no data to send although cwnd
    /// would allow it. Samples of the packets now in flight underestimate the path.
    #[inline]
    pub fn set_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Returns whether packets sent now are application-limited.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// Returns the sample of the packets that the current ACK delivered.
    #[inline]
    pub fn finish_ack(&mut self, now: Time, min_rtt: Span) -> DeliveryUpdate {
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let Some(newest) = self.newest.take() else {
            return DeliveryUpdate::default();
        };
        let prior_at = newest.stamp.delivered_at;
        self.delivered_at = now;
        // "The rate is the smaller of send rate and ACK rate": divide by the longer phase.
        let interval = self.send_elapsed.max(now.since(prior_at));
        let delivered = self.delivered - newest.stamp.delivered;
        // "If the interval is less than min_rtt the sample is unreliable" (stretched ACKs or
        // spurious retransmissions): Linux discards it.
        let rate = (interval >= min_rtt && !interval.is_zero())
            .then_some(RateSample { delivered: delivered as u32, interval });
        DeliveryUpdate {
            rate,
            prior_delivered: newest.stamp.delivered,
            sent_at: newest.stamp.sent_at,
            in_flight_at_send: newest.stamp.in_flight(),
            lost_since_send: self.lost.wrapping_sub(newest.stamp.lost),
            app_limited: newest.stamp.app_limited(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at_ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_steady_stream_measures_its_rate() {
        // One packet every 10 ms over an RTT of 40 ms: 100 packets a second.
        let mut sampler = DeliveryRateSampler::default();
        let mut stamps = Vec::new();
        let mut last = DeliveryUpdate::default();
        for i in 0..40 {
            if let Some(acked) = (i as usize).checked_sub(4) {
                sampler.on_delivered(&stamps[acked], acked as u64 + 1);
                last = sampler.finish_ack(at_ms(i * 10), Span::from_ms(40));
            }
            stamps.push(sampler.on_send(at_ms(i * 10), i == 0, 4));
        }
        let rate = last.rate.unwrap();
        let per_s = f64::from(rate.delivered) / rate.interval.as_secs_f64();
        assert!((per_s - 100.0).abs() < 12.0, "{per_s} packets/s");
    }

    #[test]
    fn samples_shorter_than_the_min_rtt_are_discarded() {
        let mut sampler = DeliveryRateSampler::default();
        let stamp = sampler.on_send(at_ms(0), true, 1);
        sampler.on_delivered(&stamp, 1);
        assert!(sampler.finish_ack(at_ms(30), Span::from_ms(40)).rate.is_none());
    }

    #[test]
    fn app_limited_marks_end_when_their_flight_is_delivered() {
        let mut sampler = DeliveryRateSampler::default();
        sampler.set_app_limited(0);
        let marked = sampler.on_send(at_ms(0), true, 1);
        sampler.on_delivered(&marked, 1);
        assert!(sampler.finish_ack(at_ms(40), Span::ZERO).app_limited);
        let second = sampler.on_send(at_ms(40), true, 1);
        sampler.on_delivered(&second, 2);
        assert!(sampler.finish_ack(at_ms(80), Span::ZERO).app_limited);
        let third = sampler.on_send(at_ms(80), true, 1);
        sampler.on_delivered(&third, 3);
        assert!(!sampler.finish_ack(at_ms(120), Span::ZERO).app_limited);
    }

    /// `tcp_rate.c::tcp_rate_skb_delivered`: the sample is that of the packet "most recently sent", and of the one
    /// with the higher sequence number if both were sent at the same time.
    #[test]
    fn the_sample_belongs_to_the_packet_sent_last() {
        let mut sampler = DeliveryRateSampler::default();
        let first = sampler.on_send(at_ms(0), true, 1);
        sampler.on_delivered(&first, 1);
        sampler.finish_ack(at_ms(40), Span::ZERO);
        let burst = [2, 3].map(|in_flight| sampler.on_send(at_ms(50), false, in_flight));
        let retransmission = sampler.on_send(at_ms(60), false, 4);
        assert_eq!(sampler.newest_prior_delivered(), None);
        for order in [[0, 1], [1, 0]] {
            for i in order {
                sampler.on_delivered(&burst[i], 11 + i as u64);
            }
            assert_eq!(sampler.newest_prior_delivered(), Some(1));
            let update = sampler.finish_ack(at_ms(90), Span::ZERO);
            assert_eq!((update.in_flight_at_send, update.sent_at), (3, at_ms(50)));
        }
        sampler.on_delivered(&retransmission, 10);
        sampler.on_delivered(&burst[1], 12);
        assert_eq!(sampler.finish_ack(at_ms(100), Span::ZERO).sent_at, at_ms(60));
        assert_eq!(sampler.delivered(), 7);
        sampler.count_spurious();
        assert_eq!(sampler.delivered(), 8, "`tcp_input.c::tcp_sacktag_one` counts the copy");
    }

    /// `tcp_rate.c::tcp_rate_check_app_limited`: until more than `delivered + in flight` packets are delivered.
    #[test]
    fn app_limited_lasts_for_the_packets_in_flight() {
        let mut sampler = DeliveryRateSampler::default();
        let stamp = sampler.on_send(at_ms(0), true, 1);
        let deliver = |sampler: &mut DeliveryRateSampler| {
            sampler.on_delivered(&stamp, 1);
            sampler.finish_ack(at_ms(40), Span::ZERO);
            sampler.is_app_limited()
        };
        assert!(!deliver(&mut sampler) && !deliver(&mut sampler));
        sampler.set_app_limited(3);
        let limited: Vec<_> = (3..=6).map(|_| deliver(&mut sampler)).collect();
        assert_eq!(limited, [true, true, true, false]);
    }

    #[test]
    fn stamps_know_the_flight_and_the_losses_since() {
        let mut sampler = DeliveryRateSampler::default();
        let stamps: Vec<_> = (1..=5).map(|n| sampler.on_send(at_ms(0), n == 1, n)).collect();
        sampler.set_app_limited(5);
        let last = sampler.on_send(at_ms(1), false, 6);
        sampler.on_delivered(&stamps[3], 4);
        for (number, lost_since_send) in [(0, 1), (1, 2)] {
            let lost = sampler.on_packet_lost(at_ms(40), &stamps[number], number as u64);
            assert_eq!(lost.lost_since_send, lost_since_send);
            assert_eq!(lost.in_flight_at_send, number as u32 + 1);
            assert_eq!((lost.number, lost.delivered, lost.app_limited), (number as u64, 1, false));
        }
        let delivery = sampler.finish_ack(at_ms(40), Span::ZERO);
        assert_eq!((delivery.in_flight_at_send, delivery.lost_since_send), (4, 2));
        let later = sampler.on_send(at_ms(41), false, 3);
        assert!(sampler.on_packet_lost(at_ms(80), &last, 5).app_limited);
        assert_eq!(sampler.on_packet_lost(at_ms(80), &later, 6).lost_since_send, 2);
        assert_eq!(size_of::<PacketDeliveryState>(), 40);
    }
}
