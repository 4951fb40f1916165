//! Constant bit rate (CBR) traffic: datagrams at a given rate, without replies.

use jostle_link::Ecn;
use jostle_metrics::{EventSink, FlowState};
use jostle_run_spec::CbrSpec;
use jostle_tcp::{SegmentSink, TransitTimes};
use jostle_traffic::SendSchedule;
use jostle_units::Time;

use crate::packet::{Body, Datagram};
use crate::received_numbers::ReceivedNumbers;
use crate::transport::{EndpointContext, Endpoints, FlowStatus};

/// Sender and receiver of CBR datagrams.
#[derive(Debug)]
pub(crate) struct Datagrams {
    payload: u16,
    cadence: SendSchedule,
    next: u32,
    received: ReceivedNumbers,
}

impl Datagrams {
    pub fn new(spec: &CbrSpec) -> Self {
        Self {
            payload: spec.bytes as u16,
            cadence: SendSchedule::new(spec),
            next: 0,
            received: ReceivedNumbers::default(),
        }
    }
}

impl Endpoints for Datagrams {
    type Message = Datagram;

    fn run_application<S: EventSink>(&mut self, stop: Time, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        // The first datagram waits until the rate is positive. `after` determines the times of the
        // others.
        if let (0, Err(on)) = (self.next, self.cadence.is_on(now)) {
            if on < stop {
                host.schedule_application(on);
            }
            return;
        }
        let number = self.next;
        self.next += 1;
        let next = self.cadence.after(now);
        if next < stop {
            host.schedule_application(next);
        }
        let datagram = Datagram { number, payload_bytes: self.payload, trip: TransitTimes::NONE };
        let body = Body::OneWay(datagram);
        let mut port = host.port();
        port.note_sent(now, 1, u64::from(body.wire_bytes()), false);
        port.send(now, body, Ecn::NotCapable);
    }

    fn receive<S: EventSink>(
        &mut self,
        datagram: &Datagram,
        wire_bytes: u32,
        _ecn: Ecn,
        _part: bool,
        host: &mut EndpointContext<'_, S>,
    ) {
        // The application discards duplicates, so that they do not hide lost datagrams.
        if !self.received.insert(datagram.number) {
            host.sink.received(host.now, host.connection, wire_bytes);
            return;
        }
        host.received(wire_bytes, &datagram.trip);
        let delay = host.now.since(datagram.trip.departure_time());
        host.sink.datagram_received(host.now, host.connection, datagram.number, delay);
        host.sink.delivered(host.now, host.connection, u64::from(datagram.payload_bytes));
    }

    fn receive_return<S: EventSink>(
        &mut self,
        _: &Datagram,
        _: &mut EndpointContext<'_, S>,
    ) -> FlowStatus {
        debug_assert!(false, "nobody answers");
        FlowStatus::Open
    }

    fn state(&self) -> FlowState {
        FlowState::DATAGRAMS
    }
}
