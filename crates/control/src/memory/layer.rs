//! A layer over a controller.

use jostle_units::{Rate, Span, Time};

use super::host::Occasion;
use crate::controller::{
    AckSample, Congestion, Controller, EcnFeedback, Established, LostPacket, Marks, Measurement,
    Observer, RecoveryOwner, RecoveryState, Sent,
};
use crate::rate_code::RateCode;

/// What a layer adds to the controller below it. It changes the beginning of a connection and
/// watches the rest.
pub(super) trait Layer: Send {
    /// The connection opens.
    fn open(&mut self, occasion: &mut Occasion<'_>);

    /// The handshake is complete; `inner` has not heard of it yet.
    fn before_start(&mut self, _established: &mut Established) {}

    /// `inner` has set its initial window.
    fn after_start(&mut self, _inner: &mut dyn Controller, _established: &Established) {}

    /// An ACK was processed, of which `inner` is to hear next.
    fn on_ack(&mut self, _inner: &mut dyn Controller, _ack: &AckSample) {}

    /// The pacing rate, given what `inner` requires.
    fn pacing_rate(&self, inner: &dyn Controller) -> Option<Rate> {
        inner.pacing_rate()
    }

    /// See [`Controller::overrides_receive_window`].
    fn overrides_receive_window(&self) -> bool {
        false
    }

    /// Name of the mode while it is the layer's and not the controller's.
    fn mode(&self) -> Option<&'static str> {
        None
    }

    /// The connection closes.
    fn close(&mut self, inner: &dyn Controller, occasion: &mut Occasion<'_>);

    /// Shows internal state to `observer`.
    fn observe(&self, observer: &mut dyn Observer);
}

/// A controller under a layer. It passes on everything that [`Controller`] has.
pub(super) struct Layered<L> {
    layer: L,
    inner: Box<dyn Controller>,
}

impl<L: Layer> Layered<L> {
    pub fn new(layer: L, inner: Box<dyn Controller>) -> Self {
        Self { layer, inner }
    }
}

impl<L: Layer> Controller for Layered<L> {
    fn rate_request(&self) -> RateCode {
        self.inner.rate_request()
    }

    fn needs_ecn(&self) -> EcnFeedback {
        self.inner.needs_ecn()
    }

    fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {
        self.inner.on_ecn_negotiated(feedback);
    }

    fn on_open(&mut self, occasion: &mut Occasion<'_>) {
        self.layer.open(occasion);
        self.inner.on_open(occasion);
    }

    fn on_established(&mut self, established: &Established) {
        let mut changed = *established;
        self.layer.before_start(&mut changed);
        self.inner.on_established(&changed);
        self.layer.after_start(self.inner.as_mut(), &changed);
    }

    fn on_send(&mut self, sent: &Sent) {
        self.inner.on_send(sent);
    }

    fn on_measurement(&mut self, measurement: &Measurement) {
        self.inner.on_measurement(measurement);
    }

    fn on_ack_event(&mut self, now: Time, slow_path: bool) {
        self.inner.on_ack_event(now, slow_path);
    }

    fn on_lost(&mut self, lost: &LostPacket) {
        self.inner.on_lost(lost);
    }

    fn on_marks(&mut self, marks: &Marks) {
        self.inner.on_marks(marks);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.layer.on_ack(self.inner.as_mut(), ack);
        self.inner.on_ack(ack);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.inner.on_congestion(congestion);
    }

    fn take_reduction_request(&mut self) -> bool {
        self.inner.take_reduction_request()
    }

    fn on_reduction_end(&mut self, now: Time) {
        self.inner.on_reduction_end(now);
    }

    fn on_idle_restart(&mut self, now: Time) {
        self.inner.on_idle_restart(now);
    }

    fn on_state(&mut self, now: Time, state: RecoveryState) {
        self.inner.on_state(now, state);
    }

    fn on_undo(&mut self, now: Time) {
        self.inner.on_undo(now);
    }

    fn on_close(&mut self, occasion: &mut Occasion<'_>) {
        self.layer.close(self.inner.as_ref(), occasion);
        self.inner.on_close(occasion);
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.inner.set_cwnd(cwnd);
    }

    fn set_ssthresh(&mut self, ssthresh: u32) {
        self.inner.set_ssthresh(ssthresh);
    }

    fn cwnd(&self) -> u32 {
        self.inner.cwnd()
    }

    fn ssthresh(&self) -> Option<u32> {
        self.inner.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.layer.pacing_rate(self.inner.as_ref())
    }

    fn packet_gap(&self) -> Option<Span> {
        self.inner.packet_gap()
    }

    fn burst_packets(&self) -> Option<u32> {
        self.inner.burst_packets()
    }

    fn burst_limit(&self) -> Option<u32> {
        self.inner.burst_limit()
    }

    fn overrides_receive_window(&self) -> bool {
        self.layer.overrides_receive_window() || self.inner.overrides_receive_window()
    }

    fn holds_back(&self) -> bool {
        self.inner.holds_back()
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        self.inner.recovery_owner()
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.inner.on_wakeup(now);
    }

    fn mode(&self) -> &'static str {
        self.layer.mode().unwrap_or_else(|| self.inner.mode())
    }

    fn observe(&self, observer: &mut dyn Observer) {
        self.inner.observe(observer);
        self.layer.observe(observer);
    }
}
