//! The C functions, declared in `jostle_bridge.h`.
//!
//! # Safety
//! Pointers to structures and to text point to valid memory of the given length. A pointer to a
//! registration, connection or cache is from the function that makes it, and the caller passes it
//! to no other function after the one that deletes it. Calls for one connection follow one another.

use alloc::boxed::Box;
use alloc::string::String;
use core::ffi::c_void;
use core::{ptr, slice, str};

use jostle_congestion::peer_cache::{PeerCache, PeerCacheContext};
use jostle_congestion::{CongestionController, StateObserver};
use jostle_units::Time;

use crate::RecordValue;
use crate::events::{
    AckEvent, CongestionCall, ControllerState, EstablishedCall, LostCall, MarksCall, Properties,
    RawAckEvent, SendCall,
};
use crate::exported::controllers;
#[cfg(feature = "library")]
use crate::library::guarded;
use crate::numbers::{ecn_feedback, recovery_state};
use crate::registration::Registration;

/// Calls a function of a controller. Its panic stops the kernel.
#[cfg(not(feature = "library"))]
fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    Some(call())
}

/// The controller of a connection.
pub struct Connection(Box<dyn CongestionController>);

impl Connection {
    /// Returns the state after a call. If the controller panicked, cwnd is 0.
    fn after(&mut self, call: impl FnOnce(&mut dyn CongestionController)) -> ControllerState {
        guarded(|| {
            call(self.0.as_mut());
            ControllerState::of(self.0.as_ref())
        })
        .unwrap_or_default()
    }
}

/// Reads the line of a registration. Returns null if it is malformed, and writes the reason, which
/// ends with a NUL, to `error`.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_register(
    line: *const u8,
    length: usize,
    error: *mut u8,
    room: usize,
) -> *mut Registration {
    // SAFETY: the caller passes a text and its length.
    let line = unsafe { slice::from_raw_parts(line, length) };
    let registration = str::from_utf8(line)
        .map_err(|_| String::from("it is not UTF-8"))
        .and_then(|line| Registration::read(line, controllers()));
    match registration {
        Ok(registration) => Box::into_raw(Box::new(registration)),
        Err(reason) => {
            // SAFETY: the caller passes memory for the reason and its size.
            let to = unsafe { slice::from_raw_parts_mut(error, room) };
            if let Some(last) = room.checked_sub(1) {
                let length = reason.len().min(last);
                to[..length].copy_from_slice(&reason.as_bytes()[..length]);
                to[length] = 0;
            }
            ptr::null_mut()
        }
    }
}

/// Deletes a registration. Its connections remain valid.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_unregister(registration: *mut Registration) {
    // SAFETY: the pointer is from `jk_register`.
    drop(unsafe { Box::from_raw(registration) });
}

/// Returns what does not change in a registration's controllers.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_properties(registration: &Registration) -> Properties {
    guarded(|| Properties::of(registration.create(None).as_mut())).unwrap_or_default()
}

/// Creates a connection with the random stream of the flow, or of its connection `number` unless
/// that is `u32::MAX`. Returns null if the controller panicked.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_connect(registration: &Registration, number: u32) -> *mut Connection {
    let number = (number != u32::MAX).then_some(number);
    let connection = guarded(|| Box::new(Connection(registration.create(number))));
    connection.map_or(ptr::null_mut(), Box::into_raw)
}

/// Deletes a connection.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_disconnect(connection: *mut Connection) {
    // SAFETY: the pointer is from `jk_connect`.
    let connection = unsafe { Box::from_raw(connection) };
    guarded(|| drop(connection));
}

/// Creates the peer cache of a host.
#[unsafe(no_mangle)]
pub extern "C" fn jk_cache_create() -> *mut PeerCache {
    Box::into_raw(Box::default())
}

/// Deletes a peer cache.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_cache_delete(cache: *mut PeerCache) {
    // SAFETY: the pointer is from `jk_cache_create`.
    drop(unsafe { Box::from_raw(cache) });
}

/// Reports that a connection opens.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_on_open(
    connection: &mut Connection,
    cache: &mut PeerCache,
    now_ns: u64,
    peer: u32,
) {
    guarded(|| {
        if let Some(host) = connection.0.host_extension() {
            let now = Time::from_ns(now_ns);
            host.on_connection_open(&mut PeerCacheContext { now, peer, memory: cache });
        }
    });
}

/// Reports that a connection closes.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_on_close(
    connection: &mut Connection,
    cache: &mut PeerCache,
    now_ns: u64,
    peer: u32,
) {
    guarded(|| {
        if let Some(host) = connection.0.host_extension() {
            let now = Time::from_ns(now_ns);
            host.on_connection_close(&mut PeerCacheContext { now, peer, memory: cache });
        }
    });
}

/// Reports an ACK before loss detection, to a controller that wants such reports.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_on_ack_event(
    connection: &mut Connection,
    now_ns: u64,
    slow_path: u32,
    result: &mut ControllerState,
) {
    *result = connection.after(|controller| {
        if let Some(tcp) = controller.tcp_extension_mut() {
            tcp.on_ack_event(Time::from_ns(now_ns), slow_path != 0);
        }
    });
}

/// Reports an ACK after it was processed, and takes the request for a reduction.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_on_ack(
    connection: &mut Connection,
    ack: &AckEvent,
    result: &mut ControllerState,
) {
    let mut requests = false;
    let state = connection.after(|controller| {
        controller.on_ack(&ack.into());
        requests = controller.take_cwr_request();
    });
    *result = ControllerState { requests_cwr: requests.into(), ..state };
}

/// Defines functions that pass one event to a controller and return its result.
macro_rules! calls {
    ($($(#[$about:meta])* fn $name:ident($value:ident: $type:ty) $method:ident($($argument:expr),+);)+) => {
        $(
            $(#[$about])*
            ///
            /// # Safety
            /// See the module.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                connection: &mut Connection,
                $value: $type,
                result: &mut ControllerState,
            ) {
                *result = connection.after(|controller| controller.$method($($argument),+));
            }
        )+
    };
}

calls! {
    /// Reports the negotiated ECN feedback (`EcnFeedback`).
    fn jk_on_ecn_negotiated(feedback: u32) on_ecn_negotiated(ecn_feedback(feedback));
    /// Reports the end of the handshake.
    fn jk_on_established(call: &EstablishedCall) on_established(&call.into());
    /// Reports another packet size.
    fn jk_on_mss_change(mss_bytes: u32) on_mss_change(mss_bytes);
    /// Reports sent packets.
    fn jk_on_send(call: &SendCall) on_send(&call.into());
    /// Reports an ACK before loss detection.
    fn jk_on_raw_ack(call: &RawAckEvent) on_ack_before_loss_detection(&call.into());
    /// Reports ECN marks.
    fn jk_on_ecn_marks(call: &MarksCall) on_ecn_feedback(&call.into());
    /// Reports a lost packet.
    fn jk_on_packet_lost(call: &LostCall) on_packet_lost(&call.into());
    /// Reports a congestion signal.
    fn jk_on_congestion(call: &CongestionCall) on_congestion_event(&call.into());
    /// Reports that the last signal was spurious.
    fn jk_on_undo(now_ns: u64) on_undo(Time::from_ns(now_ns));
    /// Reports the end of a reduction.
    fn jk_on_cwr_complete(now_ns: u64) on_cwr_complete(Time::from_ns(now_ns));
    /// Reports data after an idle time.
    fn jk_on_idle_restart(now_ns: u64) on_idle_restart(Time::from_ns(now_ns));
    /// Reports that the time of the wake-up has come.
    fn jk_on_wakeup(now_ns: u64) on_wakeup(Time::from_ns(now_ns));
    /// Sets cwnd.
    fn jk_set_cwnd(cwnd: u32) set_cwnd(cwnd);
    /// Sets ssthresh.
    fn jk_set_ssthresh(ssthresh: u32) set_ssthresh(ssthresh);
}

/// Reports the recovery state (`tcp_ca_state` in Linux).
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_on_recovery_state(
    connection: &mut Connection,
    now_ns: u64,
    state: u32,
    result: &mut ControllerState,
) {
    *result = connection.after(|controller| {
        controller.on_recovery_state(Time::from_ns(now_ns), recovery_state(state));
    });
}

/// Returns the name of the current mode, which has `length` bytes and is valid as long as the code.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_mode(connection: &Connection, length: &mut usize) -> *const u8 {
    let mode = guarded(|| connection.0.mode()).unwrap_or_default();
    *length = mode.len();
    mode.as_ptr()
}

/// Passes all internal values to `record`, with `context`. Their names are valid as long as the code.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jk_observe(
    connection: &Connection,
    record: RecordValue,
    context: *mut c_void,
) {
    struct Observer(RecordValue, *mut c_void);
    impl StateObserver for Observer {
        fn record_value(&mut self, name: &'static str, value: f64) {
            // SAFETY: the caller passes a function for such arguments, and its context.
            unsafe { (self.0)(self.1, name.as_ptr(), name.len(), value.to_bits()) }
        }
    }
    guarded(|| connection.0.observe(&mut Observer(record, context)));
}
