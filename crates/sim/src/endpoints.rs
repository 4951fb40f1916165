//! The kinds of endpoints that a flow can have. Another kind is a line here, its messages in
//! `packet.rs`, and a file of its own.

use jostle_control::Observer;
use jostle_path::Ecn;
use jostle_record::{FlowState, Sink};
use jostle_units::Time;

use crate::connection::Connection;
use crate::datagrams::Datagrams;
use crate::engine::Deadline;
use crate::host::{Host, Progress, Transport};
use crate::packet::Body;
use crate::pings::Pinger;
use crate::quic::QuicConnection;

/// Names the kinds, each with the bodies that its packets have, and passes every call on to the kind
/// that a flow has. Calls are chosen by a match and not by a table of functions: every packet makes
/// two of them.
macro_rules! endpoints {
    ($($(#[$doc:meta])* $kind:ident($end:ty) = $($body:ident)|+),+ $(,)?) => {
        /// Both endpoints of a flow. Nearly all have a connection: behind a pointer each packet would pay
        /// for it.
        #[allow(clippy::large_enum_variant, reason = "see above")]
        pub(crate) enum Endpoints {
            $($(#[$doc])* $kind($end)),+
        }

        impl Transport for Endpoints {
            type Message = Body;

            #[inline]
            fn act<S: Sink>(&mut self, stop: Time, host: &mut Host<'_, S>) {
                match self { $(Self::$kind(end) => end.act(stop, host)),+ }
            }

            fn answer_with<S: Sink>(&mut self, bytes: u64, host: &mut Host<'_, S>) {
                match self { $(Self::$kind(end) => end.answer_with(bytes, host)),+ }
            }

            fn take_whole(&mut self) -> u32 {
                match self { $(Self::$kind(end) => end.take_whole()),+ }
            }

            fn stop(&mut self) {
                match self { $(Self::$kind(end) => end.stop()),+ }
            }

            #[inline]
            fn receive<S: Sink>(
                &mut self,
                message: &Body,
                wire_bytes: u32,
                ecn: Ecn,
                part: bool,
                host: &mut Host<'_, S>,
            ) {
                match (self, message) {
                    $((Self::$kind(end), $(Body::$body(message))|+) => {
                        end.receive(message, wire_bytes, ecn, part, host);
                    })+
                    _ => debug_assert!(false, "a packet of another kind of flow"),
                }
            }

            #[inline]
            fn receive_return<S: Sink>(&mut self, message: &Body, host: &mut Host<'_, S>) -> Progress {
                match (self, message) {
                    $((Self::$kind(end), $(Body::$body(message))|+) => end.receive_return(message, host),)+
                    _ => {
                        debug_assert!(false, "a packet of another kind of flow");
                        Progress::Open
                    }
                }
            }

            #[inline]
            fn on_deadline<S: Sink>(&mut self, deadline: Deadline, host: &mut Host<'_, S>) {
                match self { $(Self::$kind(end) => end.on_deadline(deadline, host)),+ }
            }

            #[inline]
            fn on_card_drained<S: Sink>(&mut self, host: &mut Host<'_, S>) {
                match self { $(Self::$kind(end) => end.on_card_drained(host)),+ }
            }

            fn settle<S: Sink>(&mut self, host: &mut Host<'_, S>) {
                match self { $(Self::$kind(end) => end.settle(host)),+ }
            }

            fn state(&self) -> FlowState {
                match self { $(Self::$kind(end) => end.state()),+ }
            }

            fn observe(&self, observer: &mut dyn Observer) {
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
    Connection(Connection) = Tcp,
    /// Pings and their echoes.
    Pings(Pinger) = Ping | Echo,
    /// Datagrams that nobody answers.
    Datagrams(Datagrams) = OneWay,
    /// A QUIC connection: its packets cost so much that a pointer to it does not count.
    Quic(Box<QuicConnection>) = Quic | QuicBack,
}
