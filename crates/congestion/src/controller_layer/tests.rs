use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use super::*;
use crate::peer_cache::PeerCache;
use crate::{CongestionSignal, RateSample};

/// A layer that leaves everything as it is.
struct Clear;

impl ControllerLayer for Clear {
    fn on_connection_open(&mut self, _occasion: &mut PeerCacheContext<'_>) {}
    fn on_connection_close(
        &mut self,
        _inner: &dyn CongestionController,
        _occasion: &mut PeerCacheContext<'_>,
    ) {
    }
}

/// What was called, and with what.
type Calls = Arc<Mutex<Vec<String>>>;

/// Writes down how it is called, and answers what nobody answers who was not asked.
#[derive(Clone, Default)]
struct Told {
    calls: Calls,
    /// Whether it has none of the features that only TCP supports.
    plain: bool,
}

impl Told {
    fn note(&self, name: &str, arguments: &[&dyn Debug]) {
        self.calls.lock().unwrap().push(format!("{name} {arguments:?}"));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

/// A value of a type, other than its default.
trait Example {
    fn example() -> Self;
}

macro_rules! examples {
    ($($type:ty: $value:expr;)+) => {
        $(impl Example for $type { fn example() -> Self { $value } })+
    };
}

/// For as long as the test runs.
fn keep<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

const AT: Time = Time::from_ns(5);
const SPAN: Span = Span::from_ns(6);

examples! {
    bool: true;
    u32: 7;
    &'static str: "told";
    Time: AT;
    EcnFeedback: EcnFeedback::AccEcn;
    CwndReductionBy: CwndReductionBy::Controller;
    RecoveryState: RecoveryState::Cwr;
    Option<u32>: Some(8);
    Option<Rate>: Some(Rate::from_bps(9));
    Option<Span>: Some(SPAN);
    Option<Time>: Some(AT);
    &EstablishedEvent: keep(EstablishedEvent {
        now: AT,
        mss_bytes: 10,
        initial_window: 11,
        rtt: Some(SPAN),
        prospect: Default::default(),
    });
    &AckSample: keep(AckSample {
        now: Time::ZERO,
        acked: 1,
        lost: 0,
        rtt: None,
        srtt: SPAN,
        min_rtt: SPAN,
        rate: Some(RateSample { delivered: 12, interval: SPAN }),
        prior_delivered: 0,
        sent_at: Time::ZERO,
        in_flight_at_send: 10,
        lost_since_send: 0,
        app_limited: false,
        ack_delayed: false,
        delivered: 13,
        total_lost: 0,
        total_sent: 13,
        prior_in_flight: 10,
        in_flight: 9,
        first_unacked: 13,
        next_to_send: 13,
        next_departure: Time::ZERO,
        state: RecoveryState::Open,
        cwnd_limited: true,
        pacing_limited: false,
        can_increase_cwnd: true,
        recovery_ended: false,
        ce_marked: 0,
    });
    &CongestionEvent: keep(CongestionEvent { now: AT, signal: CongestionSignal::Ecn, in_flight: 10, next_to_send: 10 });
    &SendEvent: keep(SendEvent {
        now: AT,
        packets: 14,
        total_sent: 15,
        next_to_send: 16,
        prior_in_flight: 17,
        after_idle: true,
    });
    &RawAckSample: keep(RawAckSample { now: AT, packets: 18, rtt: Some(SPAN), ..RawAckSample::default() });
    &EcnMarks: keep(EcnMarks { now: AT, delivered: 19, marked: 20, first_unacked: 21, next_to_send: 22 });
    &LostPacket: keep(LostPacket {
        now: AT,
        number: 23,
        in_flight_at_send: 24,
        lost_since_send: 25,
        app_limited: true,
        delivered: 26,
    });
    &mut dyn StateObserver: keep(Seen::default());
}

/// Values that a controller shows.
#[derive(Debug, Default)]
struct Seen(Vec<(&'static str, f64)>);

impl StateObserver for Seen {
    fn record_value(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}

impl Debug for dyn StateObserver + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an observer")
    }
}

macro_rules! told_method {
    ($name:ident (&mut $me:ident $(, $argument:ident: $type:ty)*) $(-> $answer:ty)?) => {
        fn $name(&mut $me $(, $argument: $type)*) $(-> $answer)? {
            $me.note(stringify!($name), &[$(&$argument),*]);
            $(<$answer as Example>::example())?
        }
    };
    ($name:ident (&$me:ident $(, $argument:ident: $type:ty)*) $(-> $answer:ty)?) => {
        fn $name(&$me $(, $argument: $type)*) $(-> $answer)? {
            $me.note(stringify!($name), &[$(&$argument),*]);
            $(<$answer as Example>::example())?
        }
    };
}

/// What a call brings about: the calls that arrive, and the answer.
macro_rules! call {
    ($on:ident, $told:ident, $name:ident (&mut self $(, $argument:ident: $type:ty)*)) => {{
        let answer = format!("{:?}", $on.$name($(<$type as Example>::example()),*));
        ($told.take(), answer)
    }};
    ($on:ident, $told:ident, $name:ident (&self $(, $argument:ident: $type:ty)*)) => {{
        let answer = format!("{:?}", $on.$name($(<$type as Example>::example()),*));
        ($told.take(), answer)
    }};
}

macro_rules! define_told {
    (
        required {
            $($(#[$about:meta])* fn $name:ident $arguments:tt $(-> $answer:ty)?;)+
        }
        provided {
            $($(#[$more:meta])* fn $with:ident $taken:tt $(-> $given:ty)? $default:block)+
        }
    ) => {
        impl CongestionController for Told {
            $(told_method! { $name $arguments $(-> $answer)? })+
            $(told_method! { $with $taken $(-> $given)? })+

            fn tcp_extension(&self) -> Option<&dyn TcpExtension> {
                Some(self)
            }

            fn tcp_extension_mut(&mut self) -> Option<&mut dyn TcpExtension> {
                Some(self)
            }

            fn host_extension(&mut self) -> Option<&mut dyn HostExtension> {
                Some(self)
            }
        }

        /// Calls every method, and returns what each brought about.
        fn call_all(on: &mut dyn CongestionController, told: &Told) -> Vec<(Vec<String>, String)> {
            vec![$(call!(on, told, $name $arguments),)+ $(call!(on, told, $with $taken),)+]
        }
    };
}
controller_methods!(define_told);

impl TcpExtension for Told {
    fn quick_start_request(&self) -> QuickStartRate {
        QuickStartRate::from_bits(3)
    }

    fn ignores_receive_window(&self) -> bool {
        !self.plain
    }

    fn wants_ack_events(&self) -> bool {
        !self.plain
    }

    fn on_ack_event(&mut self, now: Time, slow_path: bool) {
        self.note("on_ack_event", &[&now, &slow_path]);
    }
}

impl HostExtension for Told {
    fn on_connection_open(&mut self, occasion: &mut PeerCacheContext<'_>) {
        self.note("on_open", &[&occasion.peer]);
    }

    fn on_connection_close(&mut self, occasion: &mut PeerCacheContext<'_>) {
        self.note("on_close", &[&occasion.peer]);
    }
}

#[test]
fn every_method_goes_through_a_layer_as_it_came() {
    let told = Told::default();
    let alone = call_all(&mut told.clone(), &told);
    assert!(alone.len() > 25 && alone.iter().all(|(calls, _)| calls.len() == 1), "{alone:#?}");
    assert_eq!(call_all(&mut LayeredController::new(Clear, Box::new(told.clone())), &told), alone);
    let twice = LayeredController::new(Clear, Box::new(told.clone()));
    assert_eq!(call_all(&mut LayeredController::new(Clear, Box::new(twice)), &told), alone);
}

#[test]
fn what_tcp_and_the_host_are_asked_goes_through_a_layer() {
    let told = Told::default();
    let mut layered = LayeredController::new(Clear, Box::new(told.clone()));
    let tcp = layered.tcp_extension().unwrap();
    assert!(tcp.ignores_receive_window() && tcp.wants_ack_events());
    assert_eq!(tcp.quick_start_request(), QuickStartRate::from_bits(3));
    let plain = LayeredController::new(Clear, Box::new(Told { plain: true, ..Told::default() }));
    assert!(!plain.ignores_receive_window() && !plain.wants_ack_events());
    layered.tcp_extension_mut().unwrap().on_ack_event(AT, true);
    let mut memory = PeerCache::default();
    let mut occasion = PeerCacheContext { now: AT, peer: 27, memory: &mut memory };
    layered.host_extension().unwrap().on_connection_open(&mut occasion);
    layered.host_extension().unwrap().on_connection_close(&mut occasion);
    assert_eq!(told.take(), ["on_ack_event [Time(5), true]", "on_open [27]", "on_close [27]"]);
}
