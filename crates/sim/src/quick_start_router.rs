//! Quick-Start in a router (RFC 4782).

use jostle_congestion::QuickStartRate;
use jostle_run_spec::QuickStartSpec;
use jostle_units::{Rate, Span, Time};

use crate::packet::SimPacket;

/// Grants Quick-Start rates from an allowance. The rate of recent arrivals and recent grants is
/// subtracted first, because granted traffic is still to arrive.
///
/// "Recent" means the current and the previous interval. Grants count in full until both intervals
/// are over; arrivals count by their mean rate.
#[derive(Debug)]
pub(crate) struct QuickStartRouter {
    allowance: Rate,
    interval: Span,
    start: Time,
    /// Bytes in the previous and in the current interval.
    arrived_bytes: [u64; 2],
    granted_bps: [u64; 2],
}

impl QuickStartRouter {
    pub fn new(spec: &QuickStartSpec) -> Self {
        Self {
            allowance: Rate::from_bps(spec.allowance_bps),
            interval: Span::from_ns(spec.interval_ns),
            start: Time::ZERO,
            arrived_bytes: [0; 2],
            granted_bps: [0; 2],
        }
    }

    /// Handles a packet that enters the link.
    #[inline]
    pub fn pass(&mut self, now: Time, packet: &mut SimPacket) {
        if now.since(self.start) >= self.interval {
            self.turn(now);
        }
        self.arrived_bytes[1] += u64::from(packet.size_bytes);
        if let Some(rate) = packet.transport.requested_rate_mut() {
            *rate = self.grant(now, *rate);
        }
    }

    #[cold]
    fn turn(&mut self, now: Time) {
        let intervals = now.since(self.start).as_ns() / self.interval.as_ns();
        let kept = |values: [u64; 2]| [if intervals == 1 { values[1] } else { 0 }, 0];
        self.arrived_bytes = kept(self.arrived_bytes);
        self.granted_bps = kept(self.granted_bps);
        self.start += Span::from_ns(intervals * self.interval.as_ns());
    }

    fn grant(&mut self, now: Time, request: QuickStartRate) -> QuickStartRate {
        let looked_at = self.interval + now.since(self.start);
        let used = Rate::of(self.arrived_bytes.iter().sum(), looked_at);
        let taken_bps = used.as_bps() + self.granted_bps.iter().sum::<u64>();
        let spare = Rate::from_bps(self.allowance.as_bps().saturating_sub(taken_bps));
        let granted = request.min(QuickStartRate::not_above(spare));
        self.granted_bps[1] += granted.rate().map_or(0, Rate::as_bps);
        granted
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::ConnectionId;

    use super::*;
    use crate::packet::Body;
    use jostle_link::{Ecn, Packet};
    use jostle_tcp::{Data, Segment, Syn, TransitTimes};

    fn router() -> QuickStartRouter {
        QuickStartRouter::new(&QuickStartSpec {
            allowance_bps: 50_000_000,
            interval_ns: 100_000_000,
        })
    }

    fn packet(segment: Segment) -> SimPacket {
        let body = Body::Tcp(segment);
        Packet {
            connection: ConnectionId(0),
            size_bytes: body.wire_bytes(),
            queued_at: Time::ZERO,
            ecn: Ecn::NotCapable,
            hop: 0,
            is_corrupted: false,
            dscp: 0,
            transport: body,
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// What a SYN that asks for `bps` gets.
    fn ask(router: &mut QuickStartRouter, now: Time, bps: u64) -> u64 {
        let rate = QuickStartRate::not_above(Rate::from_bps(bps));
        let mut syn = packet(Segment::Syn(Syn { ecn: false, rate, tsval_ms: 1 }));
        router.pass(now, &mut syn);
        syn.transport.requested_rate_mut().and_then(|rate| rate.rate()).map_or(0, Rate::as_bps)
    }

    #[test]
    fn a_request_is_lowered_to_what_is_spare() {
        let mut router = router();
        assert_eq!(ask(&mut router, at(0), 10_240_000), 10_240_000);
        // 50 − 10.24, less a SYN: 20.48 is the next lower.
        assert_eq!(ask(&mut router, at(1), 1_310_720_000), 20_480_000);
        assert_eq!(ask(&mut router, at(2), 1_310_720_000), 10_240_000);
        // Grants count for an interval after the one in which they were made.
        assert_eq!(ask(&mut router, at(199), 1_310_720_000), 5_120_000);
        assert_eq!(ask(&mut router, at(400), 1_310_720_000), 40_960_000);
    }

    #[test]
    fn traffic_uses_the_allowance() {
        let mut router = router();
        let data = Data {
            cwr: false,
            payload_bytes: 1448,
            number: 0,
            tsval_ms: 1,
            tsecr_ms: 0,
            trip: TransitTimes::NONE,
        };
        // 41 Mbit/s until 300 ms.
        for i in 0..1_016 {
            let now = Time::ZERO + Span::from_us(295 * i);
            router.pass(now, &mut packet(Segment::Data(data)));
        }
        assert_eq!(ask(&mut router, at(300), 1_310_720_000), 5_120_000);
        assert_eq!(ask(&mut router, at(600), 1_310_720_000), 40_960_000);
    }
}
