//! A controller of a library.

use std::ffi::c_void;
use std::{ptr, slice, str};

use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EcnFeedback, EcnMarks,
    EstablishedEvent, LostPacket, QuickStartRate, RawAckSample, RecoveryState, SendEvent,
    StateObserver, TcpExtension,
};
use jostle_kernel_bridge::{
    ControllerState, NO_SSTHRESH, Properties, ecn_feedback, ecn_feedback_number,
    recovery_state_number,
};
use jostle_units::{Rate, Span, Time};

use crate::failure::Failure;
use crate::functions::{Functions, Handle};

/// Value of `number` for a connection that is the only one of its name.
const ONLY_CONNECTION: u32 = u32::MAX;

/// A controller behind the C functions of a library. The state after each call is kept, so that
/// queries call nothing.
pub(crate) struct LibraryController {
    functions: &'static Functions,
    registration: Handle,
    connection: Handle,
    properties: Properties,
    state: ControllerState,
    flow: String,
    failure: Failure,
}

// SAFETY: the handles are used by one thread at a time, and the controllers behind them are `Send`.
unsafe impl Send for LibraryController {}

impl LibraryController {
    /// Creates the controller of a registration, which it owns.
    pub(crate) fn new(
        functions: &'static Functions,
        registration: Handle,
        flow: &str,
        failure: &Failure,
    ) -> Result<Self, String> {
        // SAFETY: the registration is valid.
        let connection = unsafe { (functions.connect)(registration, ONLY_CONNECTION) };
        let Some(connection) = connection else {
            // SAFETY: the registration has no connection.
            unsafe { (functions.unregister)(registration) };
            return Err(functions.failure());
        };
        // SAFETY: the registration is valid.
        let properties = unsafe { (functions.properties)(registration) };
        // cwnd before the handshake; no transport sends then.
        let state = ControllerState {
            cwnd: 1,
            ssthresh: NO_SSTHRESH,
            wakeup_ns: u64::MAX,
            packet_gap_ns: u64::MAX,
            ..ControllerState::default()
        };
        Ok(Self {
            functions,
            registration,
            connection,
            properties,
            state,
            flow: flow.to_owned(),
            failure: failure.clone(),
        })
    }

    /// Makes a call and keeps the state after it. After a failure, nothing is called.
    fn call(&mut self, call: impl FnOnce(&Functions, Handle, &mut ControllerState)) {
        if self.failure.is_set() {
            return;
        }
        let mut state = ControllerState::default();
        call(self.functions, self.connection, &mut state);
        if state.cwnd > 0 {
            self.state = state;
            return;
        }
        let text = match self.functions.failure() {
            text if text.is_empty() => "cwnd is 0: it must be at least 1".to_owned(),
            text => text,
        };
        self.failure.set(format!("{text} (controller of \"{}\")", self.flow));
        self.state.wakeup_ns = u64::MAX;
    }
}

impl Drop for LibraryController {
    fn drop(&mut self) {
        // SAFETY: both are valid, and this is their last use.
        unsafe {
            (self.functions.disconnect)(self.connection);
            (self.functions.unregister)(self.registration);
        }
    }
}

/// Returns a text of the library.
///
/// # Safety
/// `text` points to `length` bytes that remain as long as the library.
unsafe fn text(text: *const u8, length: usize) -> &'static str {
    if text.is_null() || length == 0 {
        return "";
    }
    // SAFETY: the caller promises it, and libraries are never unloaded.
    let bytes = unsafe { slice::from_raw_parts(text, length) };
    str::from_utf8(bytes).unwrap_or_default()
}

/// Defines methods that make one call.
macro_rules! calls {
    ($($method:ident($value:ident: $type:ty) $function:ident($argument:expr);)+) => {
        $(
            fn $method(&mut self, $value: $type) {
                // SAFETY: the connection is valid, and the structure is the function's.
                self.call(|functions, connection, state| unsafe {
                    (functions.$function)(connection, $argument, state);
                });
            }
        )+
    };
}

impl CongestionController for LibraryController {
    calls! {
        on_established(event: &EstablishedEvent) on_established(&event.into());
        on_ack(ack: &AckSample) on_ack(&ack.into());
        on_congestion_event(event: &CongestionEvent) on_congestion(&event.into());
        on_undo(now: Time) on_undo(now.as_ns());
        set_cwnd(cwnd: u32) set_cwnd(cwnd);
        on_ecn_negotiated(feedback: EcnFeedback) on_ecn_negotiated(ecn_feedback_number(feedback));
        on_mss_change(mss_bytes: u32) on_mss_change(mss_bytes);
        on_send(event: &SendEvent) on_send(&event.into());
        on_ack_before_loss_detection(sample: &RawAckSample) on_raw_ack(&sample.into());
        on_ecn_feedback(marks: &EcnMarks) on_ecn_marks(&marks.into());
        on_packet_lost(lost: &LostPacket) on_packet_lost(&lost.into());
        on_cwr_complete(now: Time) on_cwr_complete(now.as_ns());
        on_idle_restart(now: Time) on_idle_restart(now.as_ns());
        set_ssthresh(ssthresh: u32) set_ssthresh(ssthresh);
        on_wakeup(now: Time) on_wakeup(now.as_ns());
    }

    fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {
        let number = recovery_state_number(state);
        // SAFETY: the connection is valid.
        self.call(|functions, connection, result| unsafe {
            (functions.on_recovery_state)(connection, now.as_ns(), number, result);
        });
    }

    fn take_cwr_request(&mut self) -> bool {
        std::mem::take(&mut self.state.requests_cwr) != 0
    }

    fn cwnd(&self) -> u32 {
        self.state.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        (self.state.ssthresh != NO_SSTHRESH).then_some(self.state.ssthresh)
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        match self.properties.controls_cwnd {
            0 => CwndReductionBy::Transport,
            _ => CwndReductionBy::Controller,
        }
    }

    fn required_ecn_feedback(&self) -> EcnFeedback {
        ecn_feedback(self.properties.ecn_feedback.into())
    }

    fn pacing_rate(&self) -> Option<Rate> {
        (self.state.pacing_bps > 0).then(|| Rate::from_bps(self.state.pacing_bps))
    }

    fn next_packet_gap(&self) -> Option<Span> {
        (self.state.packet_gap_ns != u64::MAX).then(|| Span::from_ns(self.state.packet_gap_ns))
    }

    fn min_burst_packets(&self) -> Option<u32> {
        (self.state.min_burst > 0).then_some(self.state.min_burst)
    }

    fn max_burst_packets(&self) -> Option<u32> {
        (self.state.max_burst > 0).then_some(self.state.max_burst)
    }

    fn limits_flight_on_purpose(&self) -> bool {
        self.state.limits_flight != 0
    }

    fn next_wakeup(&self) -> Option<Time> {
        // A failed controller would request wake-ups forever.
        let waits = self.state.wakeup_ns != u64::MAX && !self.failure.is_set();
        waits.then(|| Time::from_ns(self.state.wakeup_ns))
    }

    fn mode(&self) -> &'static str {
        let mut length = 0;
        // SAFETY: the connection is valid.
        let mode = unsafe { (self.functions.mode)(self.connection, &mut length) };
        // SAFETY: modes are texts of the library.
        unsafe { text(mode, length) }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        unsafe extern "C" fn record(
            context: *mut c_void,
            name: *const u8,
            length: usize,
            bits: u64,
        ) {
            // SAFETY: the context is the observer of the call below.
            let observer = unsafe { &mut *context.cast::<&mut dyn StateObserver>() };
            // SAFETY: names are texts of the library.
            observer.record_value(unsafe { text(name, length) }, f64::from_bits(bits));
        }
        let mut observer = observer;
        // SAFETY: the connection is valid, and the context is for `record`.
        unsafe {
            (self.functions.observe)(self.connection, record, ptr::from_mut(&mut observer).cast())
        }
    }

    fn tcp_extension(&self) -> Option<&dyn TcpExtension> {
        Some(self)
    }

    fn tcp_extension_mut(&mut self) -> Option<&mut dyn TcpExtension> {
        Some(self)
    }
}

impl TcpExtension for LibraryController {
    fn quick_start_request(&self) -> QuickStartRate {
        QuickStartRate::from_bits(self.properties.quick_start_request)
    }

    fn ignores_receive_window(&self) -> bool {
        self.properties.ignores_receive_window != 0
    }

    fn wants_ack_events(&self) -> bool {
        self.properties.wants_ack_events != 0
    }

    fn on_ack_event(&mut self, now: Time, slow_path: bool) {
        // SAFETY: the connection is valid.
        self.call(|functions, connection, state| unsafe {
            (functions.on_ack_event)(connection, now.as_ns(), slow_path.into(), state);
        });
    }
}
