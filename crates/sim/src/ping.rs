//! Pings: datagrams at regular intervals, their echoes and timeouts.

use std::collections::VecDeque;

use jostle_link::Ecn;
use jostle_metrics::{EventSink, FlowState};
use jostle_tcp::SegmentSink;
use jostle_tcp::TransitTimes;
use jostle_units::{Span, Time};

use crate::packet::{Body, Datagram};
use crate::received_numbers::ReceivedNumbers;
use crate::transport::{EndpointContext, Endpoints, FlowStatus};

/// Sends pings and waits for their echoes. Pings older than the timeout are forgotten.
#[derive(Debug)]
pub(crate) struct Pinger {
    payload: u16,
    every: Span,
    timeout: Span,
    next: u32,
    /// Departure times of the pings from number `next` − `waiting.len()` on. `None` after the echo
    /// arrived.
    waiting: VecDeque<Option<Time>>,
    /// Pings that reached the receiver.
    received: ReceivedNumbers,
}

impl Pinger {
    pub fn new(payload: u16, every: Span, timeout: Span) -> Self {
        let received = ReceivedNumbers::default();
        Self { payload, every, timeout, next: 0, waiting: VecDeque::new(), received }
    }

    /// Returns the next ping and the time of the following one.
    pub fn ping(&mut self, now: Time) -> (Datagram, Time) {
        let datagram =
            Datagram { number: self.next, payload_bytes: self.payload, trip: TransitTimes::NONE };
        self.waiting.push_back(Some(now));
        self.next += 1;
        (datagram, now + self.every)
    }

    /// Handles an echo. Returns its RTT, unless the ping has timed out.
    pub fn on_echo(&mut self, now: Time, number: u32) -> Option<Span> {
        let at = number.checked_sub(self.oldest())? as usize;
        let waited_for = self.waiting.get_mut(at)?;
        let rtt = now.since((*waited_for)?);
        if rtt >= self.timeout {
            // `expired` will report it as lost.
            return None;
        }
        *waited_for = None;
        Some(rtt)
    }

    /// Removes and returns the oldest ping that has timed out, if any.
    pub fn expired(&mut self, now: Time) -> Option<u32> {
        loop {
            let oldest = self.oldest();
            let sent = *self.waiting.front()?;
            if sent.is_some_and(|sent| now.since(sent) < self.timeout) {
                return None;
            }
            self.waiting.pop_front();
            if sent.is_some() {
                return Some(oldest);
            }
        }
    }

    /// Returns the payload bytes of the pings without echo.
    pub fn waiting_bytes(&self) -> u64 {
        let waiting = self.waiting.iter().flatten().count() as u64;
        waiting * u64::from(self.payload)
    }

    fn oldest(&self) -> u32 {
        self.next - self.waiting.len() as u32
    }
}

impl Endpoints for Pinger {
    type Message = Datagram;

    fn run_application<S: EventSink>(&mut self, stop: Time, host: &mut EndpointContext<'_, S>) {
        self.flush_events(host);
        let (datagram, next) = self.ping(host.now);
        if next < stop {
            host.schedule_application(next);
        }
        let ping = Body::Ping(datagram);
        let now = host.now;
        let mut port = host.port();
        port.note_sent(now, 1, u64::from(ping.wire_bytes()), false);
        port.send(now, ping, Ecn::NotCapable);
    }

    fn receive<S: EventSink>(
        &mut self,
        ping: &Datagram,
        wire_bytes: u32,
        ecn: Ecn,
        _part: bool,
        host: &mut EndpointContext<'_, S>,
    ) {
        // The receiver echoes duplicates, too, but they deliver no payload, as in `cbr_sender`.
        if self.received.insert(ping.number) {
            host.received(wire_bytes, &ping.trip);
            host.sink.delivered(host.now, host.connection, u64::from(ping.payload_bytes));
        } else {
            host.sink.received(host.now, host.connection, wire_bytes);
        }
        host.send_back(Body::Echo(*ping), ecn);
    }

    fn receive_return<S: EventSink>(
        &mut self,
        echo: &Datagram,
        host: &mut EndpointContext<'_, S>,
    ) -> FlowStatus {
        if let Some(rtt) = self.on_echo(host.now, echo.number) {
            host.sink.ping_reply(host.now, host.connection, rtt);
        }
        FlowStatus::Open
    }

    /// Reports the pings that have timed out.
    fn flush_events<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        while let Some(number) = self.expired(host.now) {
            host.sink.ping_lost(host.now, host.connection, number);
        }
    }

    /// Pings have no cwnd and do not react to the path.
    fn state(&self) -> FlowState {
        FlowState {
            srtt: Span::ZERO,
            cwnd_bytes: 0,
            ssthresh_bytes: None,
            in_flight_bytes: self.waiting_bytes(),
            pacing_rate: None,
            mode: "pings",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn pinger() -> Pinger {
        Pinger::new(20, Span::from_ms(200), Span::from_ms(1_000))
    }

    #[test]
    fn an_echo_gives_the_time_since_its_ping() {
        let mut pinger = pinger();
        let (first, next) = pinger.ping(at(0));
        assert_eq!((first.number, next), (0, at(200)));
        let (second, _) = pinger.ping(next);
        assert_eq!(pinger.waiting_bytes(), 40);
        // The second overtakes the first.
        assert_eq!(pinger.on_echo(at(600), second.number), Some(Span::from_ms(400)));
        assert_eq!(pinger.on_echo(at(601), first.number), Some(Span::from_ms(601)));
        assert_eq!(pinger.on_echo(at(602), first.number), None, "a copy");
        assert_eq!(pinger.expired(at(5_000)), None);
        assert_eq!(pinger.waiting_bytes(), 0);
    }

    #[test]
    fn what_is_late_is_lost() {
        let mut pinger = pinger();
        pinger.ping(at(0));
        pinger.ping(at(200));
        assert_eq!(pinger.on_echo(at(700), 1), Some(Span::from_ms(500)));
        assert_eq!(pinger.expired(at(999)), None);
        assert_eq!(pinger.expired(at(1_000)), Some(0));
        assert_eq!(pinger.expired(at(1_000)), None);
        assert_eq!(pinger.on_echo(at(1_001), 0), None);
        pinger.ping(at(1_200));
        assert_eq!(pinger.on_echo(at(2_200), 2), None);
        assert_eq!(pinger.expired(at(2_200)), Some(2));
    }

    proptest! {
        /// Sent = echoed + lost + still waited for, and no more is remembered than a timeout holds.
        #[test]
        fn every_ping_has_one_fate(echo_ms in prop::collection::vec(prop::option::of(0u64..2_000), 1..100)) {
            let mut pinger = pinger();
            let mut back: Vec<(u64, u32)> = Vec::new();
            let (mut echoed, mut lost) = (0, 0);
            for (number, delay_ms) in (0..).zip(&echo_ms) {
                let now_ms = u64::from(number) * 200;
                back.extend(delay_ms.map(|delay_ms| (now_ms + delay_ms, number)));
                back.sort_unstable();
                while let Some(&(then_ms, echo)) = back.first().filter(|(ms, _)| *ms <= now_ms) {
                    back.remove(0);
                    echoed += u32::from(pinger.on_echo(at(then_ms), echo).is_some());
                }
                while pinger.expired(at(now_ms)).is_some() {
                    lost += 1;
                }
                pinger.ping(at(now_ms));
                let waiting = pinger.waiting.iter().flatten().count() as u32;
                prop_assert_eq!(number + 1, echoed + lost + waiting);
                prop_assert!(pinger.waiting.len() <= 6);
            }
        }
    }
}
