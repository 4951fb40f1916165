//! The kinds of endpoints of a flow. To add a kind, add a line here, its messages in `packet.rs`,
//! and a module.

use jostle_congestion::StateObserver;
use jostle_link::Ecn;
use jostle_metrics::{EventSink, FlowState};
use jostle_units::Time;

use crate::cbr_sender::Datagrams;
use crate::event_queue::Deadline;
use crate::packet::Body;
use crate::ping::Pinger;
use crate::quic_connection::QuicConnection;
use crate::tcp_connection::{SharedConnection, TcpConnection};
use crate::transport::{EndpointContext, Endpoints, FlowStatus};
use crate::tunnel::UdpTunnel;

/// Declares the kinds with the packet bodies of each, and dispatches every call to the flow's kind.
/// A `match` is faster than dynamic dispatch, and every packet causes two calls.
macro_rules! endpoints {
    ($($(#[$doc:meta])* $kind:ident($end:ty) = $($body:ident)|+),+ $(,)?) => {
        /// Both endpoints of a flow. The connection is not boxed: nearly all flows are TCP, and
        /// every packet would pay for the indirection.
        #[allow(clippy::large_enum_variant, reason = "see above")]
        pub(crate) enum EndpointKind {
            $($(#[$doc])* $kind($end)),+
        }

        impl Endpoints for EndpointKind {
            type Message = Body;

            #[inline]
            fn run_application<S: EventSink>(&mut self, stop: Time, host: &mut EndpointContext<'_, S>) {
                match self { $(Self::$kind(end) => end.run_application(stop, host)),+ }
            }

            fn stop(&mut self) {
                match self { $(Self::$kind(end) => end.stop()),+ }
            }

            #[inline]
            fn receive<S: EventSink>(
                &mut self,
                message: &Body,
                wire_bytes: u32,
                ecn: Ecn,
                part: bool,
                host: &mut EndpointContext<'_, S>,
            ) {
                match (self, message) {
                    $((Self::$kind(end), $(Body::$body(message))|+) => {
                        end.receive(message, wire_bytes, ecn, part, host);
                    })+
                    _ => debug_assert!(false, "a packet of another kind of flow"),
                }
            }

            #[inline]
            fn receive_return<S: EventSink>(&mut self, message: &Body, host: &mut EndpointContext<'_, S>) -> FlowStatus {
                match (self, message) {
                    $((Self::$kind(end), $(Body::$body(message))|+) => end.receive_return(message, host),)+
                    _ => {
                        debug_assert!(false, "a packet of another kind of flow");
                        FlowStatus::Open
                    }
                }
            }

            #[inline]
            fn on_deadline<S: EventSink>(&mut self, deadline: Deadline, host: &mut EndpointContext<'_, S>) {
                match self { $(Self::$kind(end) => end.on_deadline(deadline, host)),+ }
            }

            #[inline]
            fn on_nic_sent<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
                match self { $(Self::$kind(end) => end.on_nic_sent(host)),+ }
            }

            fn flush_events<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
                match self { $(Self::$kind(end) => end.flush_events(host)),+ }
            }

            fn state(&self) -> FlowState {
                match self { $(Self::$kind(end) => end.state()),+ }
            }

            fn observe(&self, observer: &mut dyn StateObserver) {
                match self { $(Self::$kind(end) => end.observe(observer)),+ }
            }

            fn failure(&self) -> Option<String> {
                match self { $(Self::$kind(end) => end.failure()),+ }
            }
        }
    };
}

endpoints! {
    /// A TCP connection.
    Connection(TcpConnection) = Tcp,
    /// One direction of a TCP connection whose both ends send data.
    Shared(SharedConnection) = Tcp,
    /// Pings and their echoes.
    Pings(Pinger) = Ping | Echo,
    /// CBR datagrams without replies.
    Datagrams(Datagrams) = OneWay,
    /// A QUIC connection. Boxed, because the cost of a pointer is negligible compared with QUIC's.
    Quic(Box<QuicConnection>) = Quic | QuicBack,
    /// A tunnel over UDP.
    UdpTunnel(UdpTunnel) = Tunnelled,
}
