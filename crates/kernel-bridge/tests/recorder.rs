//! A controller that records all calls and results of another controller.

use std::slice;
use std::sync::{Arc, Mutex};

use jostle_congestion::peer_cache::PeerCacheContext;
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EcnFeedback, EcnMarks, EstablishedEvent, HostExtension, LostPacket, QuickStartRate,
    RawAckSample, RecoveryState, SendEvent, TcpExtension,
};
use jostle_kernel_bridge::{
    AckEvent, CongestionCall, ControllerState, EstablishedCall, LostCall, MarksCall, RawAckEvent,
    SendCall,
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

fn signed(span: Option<Span>) -> i64 {
    span.map_or(-1, |span| span.as_ns() as i64)
}

fn bps(rate: Option<Rate>) -> u64 {
    rate.map_or(0, Rate::as_bps)
}

const fn state_number(state: RecoveryState) -> u32 {
    match state {
        RecoveryState::Open => 0,
        RecoveryState::Disorder => 1,
        RecoveryState::Cwr => 2,
        RecoveryState::Recovery => 3,
        RecoveryState::Loss => 4,
    }
}

impl CongestionController for Recorder {
    fn on_established(&mut self, event: &EstablishedEvent) {
        self.inner.on_established(event);
        let call = EstablishedCall {
            now_ns: event.now.as_ns(),
            rtt_ns: signed(event.rtt),
            backlog_packets: event.prospect.send_backlog_packets.unwrap_or(u64::MAX),
            quick_start_bps: bps(event.prospect.quick_start_rate),
            mss_bytes: event.mss_bytes,
            initial_window: event.initial_window,
            receive_window: event.prospect.receive_window,
            padding: 0,
        };
        self.record(Kind::Established, &call);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.inner.on_ack(ack);
        self.requests_cwr = self.inner.take_cwr_request();
        let call = AckEvent {
            now_ns: ack.now.as_ns(),
            rtt_ns: signed(ack.rtt),
            srtt_ns: ack.srtt.as_ns(),
            min_rtt_ns: ack.min_rtt.as_ns(),
            rate_interval_ns: ack.rate.map_or(0, |rate| rate.interval.as_ns()),
            prior_delivered: ack.prior_delivered,
            sent_at_ns: ack.sent_at.as_ns(),
            delivered: ack.delivered,
            total_lost: ack.total_lost,
            total_sent: ack.total_sent,
            first_unacked: ack.first_unacked,
            next_to_send: ack.next_to_send,
            next_departure_ns: ack.next_departure.as_ns(),
            acked: ack.acked,
            lost: ack.lost,
            rate_delivered: ack.rate.map_or(0, |rate| rate.delivered),
            in_flight_at_send: ack.in_flight_at_send,
            lost_since_send: ack.lost_since_send,
            prior_in_flight: ack.prior_in_flight,
            in_flight: ack.in_flight,
            ce_marked: ack.ce_marked,
            state: state_number(ack.state),
            app_limited: ack.app_limited.into(),
            ack_delayed: ack.ack_delayed.into(),
            cwnd_limited: ack.cwnd_limited.into(),
            pacing_limited: ack.pacing_limited.into(),
            can_increase_cwnd: ack.can_increase_cwnd.into(),
            recovery_ended: ack.recovery_ended.into(),
            padding: [0; 6],
        };
        let result = ControllerState::of(self.inner.as_ref());
        let result = ControllerState { requests_cwr: self.requests_cwr.into(), ..result };
        self.log.event(Kind::Ack, &call, result);
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        self.inner.on_congestion_event(event);
        let call = CongestionCall {
            now_ns: event.now.as_ns(),
            next_to_send: event.next_to_send,
            in_flight: event.in_flight,
            signal: match event.signal {
                CongestionSignal::Loss => 0,
                CongestionSignal::Ecn => 1,
                CongestionSignal::Request => 2,
                CongestionSignal::Timeout => 3,
            },
        };
        self.record(Kind::Congestion, &call);
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
        let number = match feedback {
            EcnFeedback::None => 0,
            EcnFeedback::Classic => 1,
            EcnFeedback::DctcpEcho => 2,
            EcnFeedback::AccEcn => 3,
        };
        self.record_plain(Kind::EcnNegotiated, Time::ZERO, number);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.inner.on_mss_change(mss_bytes);
        self.record_plain(Kind::MssChange, Time::ZERO, mss_bytes);
    }

    fn on_send(&mut self, event: &SendEvent) {
        self.inner.on_send(event);
        let call = SendCall {
            now_ns: event.now.as_ns(),
            total_sent: event.total_sent,
            next_to_send: event.next_to_send,
            packets: event.packets,
            prior_in_flight: event.prior_in_flight,
            after_idle: event.after_idle.into(),
            padding: 0,
        };
        self.record(Kind::Send, &call);
    }

    fn on_ack_before_loss_detection(&mut self, sample: &RawAckSample) {
        self.inner.on_ack_before_loss_detection(sample);
        let call = RawAckEvent {
            now_ns: sample.now.as_ns(),
            rtt_ns: signed(sample.rtt),
            first_unacked: sample.first_unacked,
            next_to_send: sample.next_to_send,
            pacing_bps: bps(sample.pacing_rate),
            packets: sample.packets,
            delivered: sample.delivered,
            sacked: sample.sacked,
            state: state_number(sample.state),
            has_timestamps: sample.timestamps.is_some().into(),
            timestamp_ms: sample.timestamps.map_or(0, |it| it.value_ms),
            echo_ms: sample.timestamps.map_or(0, |it| it.echo_ms),
            clock_ms: sample.timestamps.map_or(0, |it| it.now_ms),
        };
        self.record(Kind::RawAck, &call);
    }

    fn on_ecn_feedback(&mut self, marks: &EcnMarks) {
        self.inner.on_ecn_feedback(marks);
        let call = MarksCall {
            now_ns: marks.now.as_ns(),
            delivered: marks.delivered,
            marked: marks.marked,
            first_unacked: marks.first_unacked,
            next_to_send: marks.next_to_send,
        };
        self.record(Kind::EcnMarks, &call);
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.inner.on_packet_lost(lost);
        let call = LostCall {
            now_ns: lost.now.as_ns(),
            number: lost.number,
            delivered: lost.delivered,
            in_flight_at_send: lost.in_flight_at_send,
            lost_since_send: lost.lost_since_send,
            app_limited: lost.app_limited.into(),
            padding: 0,
        };
        self.record(Kind::PacketLost, &call);
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
        self.record_plain(Kind::RecoveryState, now, state_number(state));
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
