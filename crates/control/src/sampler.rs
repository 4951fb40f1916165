//! The delivery rate, computed in one place for every transport, as
//! draft-cheng-iccrg-delivery-rate-estimation has it and Linux 6.1 (`tcp_rate.c`).

use jostle_units::{Span, Time};

use crate::controller::{LostPacket, RateSample};

/// What a transport remembers with every packet it sends, for the delivery rate. There is one for
/// every packet in flight, so it is kept to 40 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendStamp {
    /// Time of (the latest) sending.
    pub sent_at: Time,
    /// Send time of the packet whose delivery began the current flight.
    first_sent_at: Time,
    /// Time of the latest delivery known when the packet was sent.
    delivered_at: Time,
    /// Packets delivered when the packet was sent.
    delivered: u64,
    /// Packets marked lost when the packet was sent, modulo 2³².
    lost: u32,
    /// Packets in flight when the packet had been sent, itself included; the highest bit says that
    /// the application had left the network idle.
    flight: u32,
}

/// The bit of [`SendStamp::flight`] that stands for the application's limit.
const APP_LIMITED: u32 = 1 << 31;

impl SendStamp {
    #[inline]
    const fn in_flight(&self) -> u32 {
        self.flight & !APP_LIMITED
    }

    #[inline]
    const fn app_limited(&self) -> bool {
        self.flight & APP_LIMITED != 0
    }
}

/// The packet sent last among those that the present ACK delivers.
#[derive(Clone, Copy, Debug)]
struct Newest {
    stamp: SendStamp,
    /// Orders packets that were sent at the same time.
    end: u64,
}

/// Delivery-rate sampler of one connection.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    delivered: u64,
    /// Packets marked lost, modulo 2³².
    lost: u32,
    delivered_at: Time,
    first_sent_at: Time,
    /// Samples up to this count of delivered packets are limited by the application; 0 for none.
    app_limited_until: u64,
    newest: Option<Newest>,
    send_elapsed: Span,
}

/// What an ACK says of the delivery rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// The sample, unless it is too short to mean anything.
    pub rate: Option<RateSample>,
    /// `delivered` when the newest packet was sent.
    pub prior_delivered: u64,
    /// When the newest packet was sent.
    pub sent_at: Time,
    /// Packets in flight when the newest packet had been sent, itself included.
    pub in_flight_at_send: u32,
    /// Packets marked lost since then.
    pub lost_since_send: u32,
    /// The sample was limited by the application.
    pub app_limited: bool,
}

impl Sampler {
    /// Packets delivered since the connection began.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Stamps a packet that is sent at `now`. `nothing_in_flight`: no packet was outstanding.
    /// `in_flight`: packets in flight with it.
    #[inline]
    pub fn on_send(&mut self, now: Time, nothing_in_flight: bool, in_flight: u32) -> SendStamp {
        if nothing_in_flight {
            // A flight begins: neither phase may reach back into the idle time before it.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SendStamp {
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost: self.lost,
            flight: in_flight & !APP_LIMITED
                | if self.app_limited_until != 0 { APP_LIMITED } else { 0 },
        }
    }

    /// The packet `number` was marked lost.
    #[inline]
    pub fn on_lost(&mut self, now: Time, stamp: &SendStamp, number: u64) -> LostPacket {
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

    /// A packet that ends at position `end` of the stream is newly acknowledged.
    #[inline]
    pub fn on_delivered(&mut self, stamp: &SendStamp, end: u64) {
        self.delivered += 1;
        let newer = match self.newest {
            None => true,
            Some(best) => (stamp.sent_at, end) > (best.stamp.sent_at, best.end),
        };
        if newer {
            self.newest = Some(Newest { stamp: *stamp, end });
            self.first_sent_at = stamp.sent_at;
            self.send_elapsed = stamp.sent_at.since(stamp.first_sent_at);
        }
    }

    /// A copy of a packet that had been delivered already was delivered, too (D-SACK).
    #[inline]
    pub fn count_spurious(&mut self) {
        self.delivered += 1;
    }

    /// `delivered` when the newest packet of the present ACK was sent, if it delivered any.
    #[inline]
    pub fn newest_prior_delivered(&self) -> Option<u64> {
        self.newest.map(|newest| newest.stamp.delivered)
    }

    /// The application has nothing to send although cwnd would allow it: samples of what is now
    /// in flight understate the path.
    #[inline]
    pub fn set_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Whether packets sent now count as limited by the application.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// Ends the processing of an ACK: the sample of the packets delivered by it.
    #[inline]
    pub fn finish_ack(&mut self, now: Time, min_rtt: Span) -> Delivery {
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let Some(newest) = self.newest.take() else {
            return Delivery::default();
        };
        let prior_at = newest.stamp.delivered_at;
        self.delivered_at = now;
        // "The rate is the smaller of send rate and ACK rate": the longer of both phases divides.
        let interval = self.send_elapsed.max(now.since(prior_at));
        let delivered = self.delivered - newest.stamp.delivered;
        // "If the interval is less than min_rtt the sample is unreliable" (stretched ACKs, or a
        // retransmission that was not needed): Linux discards it.
        let rate = (interval >= min_rtt && !interval.is_zero())
            .then_some(RateSample { delivered: delivered as u32, interval });
        Delivery {
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
        let mut sampler = Sampler::default();
        let mut stamps = Vec::new();
        let mut last = Delivery::default();
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
        let mut sampler = Sampler::default();
        let stamp = sampler.on_send(at_ms(0), true, 1);
        sampler.on_delivered(&stamp, 1);
        assert!(sampler.finish_ack(at_ms(30), Span::from_ms(40)).rate.is_none());
    }

    #[test]
    fn app_limited_marks_end_when_their_flight_is_delivered() {
        let mut sampler = Sampler::default();
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

    #[test]
    fn stamps_know_the_flight_and_the_losses_since() {
        let mut sampler = Sampler::default();
        let stamps: Vec<_> = (1..=5).map(|n| sampler.on_send(at_ms(0), n == 1, n)).collect();
        sampler.set_app_limited(5);
        let last = sampler.on_send(at_ms(1), false, 6);
        sampler.on_delivered(&stamps[3], 4);
        for (number, lost_since_send) in [(0, 1), (1, 2)] {
            let lost = sampler.on_lost(at_ms(40), &stamps[number], number as u64);
            assert_eq!(lost.lost_since_send, lost_since_send);
            assert_eq!(lost.in_flight_at_send, number as u32 + 1);
            assert_eq!((lost.number, lost.delivered, lost.app_limited), (number as u64, 1, false));
        }
        let delivery = sampler.finish_ack(at_ms(40), Span::ZERO);
        assert_eq!((delivery.in_flight_at_send, delivery.lost_since_send), (4, 2));
        let later = sampler.on_send(at_ms(41), false, 3);
        assert!(sampler.on_lost(at_ms(80), &last, 5).app_limited);
        assert_eq!(sampler.on_lost(at_ms(80), &later, 6).lost_since_send, 2);
        assert_eq!(size_of::<SendStamp>(), 40);
    }
}
