//! A controller that records all calls and results of another controller.

use std::slice;
use std::sync::{Arc, Mutex};

use jostle_congestion::peer_cache::PeerCacheContext;
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EcnFeedback, EcnMarks,
    EstablishedEvent, HostExtension, LostPacket, QuickStartRate, RawAckSample, RecoveryState,
    SendEvent, TcpExtension,
};
use jostle_kernel_bridge::{
    AckEvent, CongestionCall, ControllerState, EstablishedCall, LostCall, MarksCall, RawAckEvent,
    SendCall, ecn_feedback_number, recovery_state_number,
};
use jostle_units::{Rate, Span, Time};

/// Numbers of `replay.c`.
#[derive(Clone, Copy)]
enum Kind {
    Next,
    Disconnect,
    Open,
    Close,
    EcnNegotiated,
    Established,
    MssChange,
    Send,
    AckEvent,
    RawAck,
    EcnMarks,
    PacketLost,
    Congestion,
    RecoveryState,
    Ack,
    Undo,
    CwrComplete,
    IdleRestart,
    Wakeup,
    SetCwnd,
    SetSsthresh,
}

/// Arguments of a call without a structure.
#[derive(Clone, Copy)]
#[repr(C)]
struct Plain {
    now_ns: u64,
    value: u32,
    padding: u32,
}

/// A recording.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<(usize, Vec<u8>)>>);

impl Log {
    /// Returns the number of events.
    pub fn events(&self) -> usize {
        self.0.lock().unwrap().0
    }

    /// Records that the connection ends and another one begins.
    pub fn disconnect(&self) {
        self.write(Kind::Disconnect, &[]);
    }

    /// Ends the recording, and returns it.
    pub fn take(&self) -> Vec<u8> {
        self.write(Kind::Next, &[]);
        std::mem::take(&mut self.0.lock().unwrap().1)
    }

    fn write(&self, kind: Kind, argument: &[u8]) {
        let bytes = &mut self.0.lock().unwrap().1;
        bytes.extend((kind as u32).to_ne_bytes());
        bytes.extend((argument.len() as u32).to_ne_bytes());
        bytes.extend(argument);
    }

    fn event<T: Copy>(&self, kind: Kind, argument: &T, result: ControllerState) {
        self.write(kind, bytes(argument));
        let mut log = self.0.lock().unwrap();
        log.0 += 1;
        log.1.extend(bytes(&result));
    }
}

/// Returns the bytes of a C structure without unnamed padding.
fn bytes<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: all bytes of the structure are initialised.
    unsafe { slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Records the calls for `inner`.
pub struct Recorder {
    inner: Box<dyn CongestionController>,
    log: Log,
    requests_cwr: bool,
}

/// Packets that the receive window allows: extreme parameters open huge windows.
const RECEIVE_WINDOW: u32 = 400;

impl Recorder {
    pub fn new(inner: Box<dyn CongestionController>, log: Log) -> Self {
        Self { inner, log, requests_cwr: false }
    }

    fn record<T: Copy>(&self, kind: Kind, argument: &T) {
        self.log.event(kind, argument, ControllerState::of(self.inner.as_ref()));
    }

    fn record_plain(&self, kind: Kind, now: Time, value: u32) {
        self.record(kind, &Plain { now_ns: now.as_ns(), value, padding: 0 });
    }
}

impl CongestionController for Recorder {
    fn on_established(&mut self, event: &EstablishedEvent) {
        self.inner.on_established(event);
        self.record(Kind::Established, &EstablishedCall::from(event));
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.inner.on_ack(ack);
        self.requests_cwr = self.inner.take_cwr_request();
        let result = ControllerState::of(self.inner.as_ref());
        let result = ControllerState { requests_cwr: self.requests_cwr.into(), ..result };
        self.log.event(Kind::Ack, &AckEvent::from(ack), result);
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        self.inner.on_congestion_event(event);
        self.record(Kind::Congestion, &CongestionCall::from(event));
    }

    fn on_undo(&mut self, now: Time) {
        self.inner.on_undo(now);
        self.record_plain(Kind::Undo, now, 0);
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.inner.set_cwnd(cwnd);
        self.record_plain(Kind::SetCwnd, Time::ZERO, cwnd);
    }

    fn cwnd(&self) -> u32 {
        self.inner.cwnd().min(RECEIVE_WINDOW)
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        self.inner.recovery_owner()
    }

    fn mode(&self) -> &'static str {
        self.inner.mode()
    }

    fn required_ecn_feedback(&self) -> EcnFeedback {
        self.inner.required_ecn_feedback()
    }

    fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {
        self.inner.on_ecn_negotiated(feedback);
        self.record_plain(Kind::EcnNegotiated, Time::ZERO, ecn_feedback_number(feedback));
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.inner.on_mss_change(mss_bytes);
        self.record_plain(Kind::MssChange, Time::ZERO, mss_bytes);
    }

    fn on_send(&mut self, event: &SendEvent) {
        self.inner.on_send(event);
        self.record(Kind::Send, &SendCall::from(event));
    }

    fn on_ack_before_loss_detection(&mut self, sample: &RawAckSample) {
        self.inner.on_ack_before_loss_detection(sample);
        self.record(Kind::RawAck, &RawAckEvent::from(sample));
    }

    fn on_ecn_feedback(&mut self, marks: &EcnMarks) {
        self.inner.on_ecn_feedback(marks);
        self.record(Kind::EcnMarks, &MarksCall::from(marks));
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.inner.on_packet_lost(lost);
        self.record(Kind::PacketLost, &LostCall::from(lost));
    }

    fn take_cwr_request(&mut self) -> bool {
        std::mem::take(&mut self.requests_cwr)
    }

    fn on_cwr_complete(&mut self, now: Time) {
        self.inner.on_cwr_complete(now);
        self.record_plain(Kind::CwrComplete, now, 0);
    }

    fn on_idle_restart(&mut self, now: Time) {
        self.inner.on_idle_restart(now);
        self.record_plain(Kind::IdleRestart, now, 0);
    }

    fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {
        self.inner.on_recovery_state(now, state);
        self.record_plain(Kind::RecoveryState, now, recovery_state_number(state));
    }

    fn set_ssthresh(&mut self, ssthresh: u32) {
        self.inner.set_ssthresh(ssthresh);
        self.record_plain(Kind::SetSsthresh, Time::ZERO, ssthresh);
    }

    fn ssthresh(&self) -> Option<u32> {
        self.inner.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.inner.pacing_rate()
    }

    fn next_packet_gap(&self) -> Option<Span> {
        self.inner.next_packet_gap()
    }

    fn min_burst_packets(&self) -> Option<u32> {
        self.inner.min_burst_packets()
    }

    fn max_burst_packets(&self) -> Option<u32> {
        self.inner.max_burst_packets()
    }

    fn limits_flight_on_purpose(&self) -> bool {
        self.inner.limits_flight_on_purpose()
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.inner.on_wakeup(now);
        self.record_plain(Kind::Wakeup, now, 0);
    }

    fn tcp_extension(&self) -> Option<&dyn TcpExtension> {
        self.inner.tcp_extension().map(|_| self as &dyn TcpExtension)
    }

    fn tcp_extension_mut(&mut self) -> Option<&mut dyn TcpExtension> {
        self.inner.tcp_extension().is_some().then_some(self as &mut dyn TcpExtension)
    }

    fn host_extension(&mut self) -> Option<&mut dyn HostExtension> {
        self.inner.host_extension().is_some().then_some(self as &mut dyn HostExtension)
    }
}

impl TcpExtension for Recorder {
    fn quick_start_request(&self) -> QuickStartRate {
        let tcp = self.inner.tcp_extension();
        tcp.map_or(QuickStartRate::NONE, TcpExtension::quick_start_request)
    }

    fn ignores_receive_window(&self) -> bool {
        self.inner.tcp_extension().is_some_and(TcpExtension::ignores_receive_window)
    }

    fn wants_ack_events(&self) -> bool {
        self.inner.tcp_extension().is_some_and(TcpExtension::wants_ack_events)
    }

    fn on_ack_event(&mut self, now: Time, slow_path: bool) {
        if let Some(tcp) = self.inner.tcp_extension_mut() {
            tcp.on_ack_event(now, slow_path);
        }
        self.record_plain(Kind::AckEvent, now, slow_path.into());
    }
}

impl HostExtension for Recorder {
    fn on_connection_open(&mut self, context: &mut PeerCacheContext<'_>) {
        if let Some(host) = self.inner.host_extension() {
            host.on_connection_open(context);
        }
        self.record_plain(Kind::Open, context.now, context.peer);
    }

    fn on_connection_close(&mut self, context: &mut PeerCacheContext<'_>) {
        if let Some(host) = self.inner.host_extension() {
            host.on_connection_close(context);
        }
        self.record_plain(Kind::Close, context.now, context.peer);
    }
}
