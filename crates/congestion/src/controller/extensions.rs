//! Optional interfaces of a controller that only some transports and hosts support.

use jostle_units::Time;

use crate::peer_cache::PeerCacheContext;
use crate::quick_start_rate::QuickStartRate;

/// Features of a controller that only TCP supports.
pub trait TcpExtension {
    /// Returns the rate that the SYN requests from the routers of the path (RFC 4782).
    fn quick_start_request(&self) -> QuickStartRate;

    /// Returns whether packets may exceed the receive window. If the application reads, the window
    /// will have grown by the time they arrive. A window of 0 is respected.
    fn ignores_receive_window(&self) -> bool;

    /// Returns whether [`on_ack_event`](Self::on_ack_event) must be called. The transport calls
    /// this once, when the connection is established, so that other controllers cause no cost per
    /// ACK.
    fn wants_ack_events(&self) -> bool;

    /// Called before loss detection processes an ACK, after
    /// [`CongestionController::on_ack_before_loss_detection`](super::CongestionController::on_ack_before_loss_detection)
    /// (`in_ack_event` in Linux). `slow_path`: the ACK does not match the header that a TCP in
    /// steady state predicts, because it carries SACK blocks, an ECN echo, or a receive window that
    /// differs from the previous ACK's (`CA_ACK_SLOWPATH`).
    fn on_ack_event(&mut self, now: Time, slow_path: bool);
}

/// Features of a controller that use the peer cache of a host.
pub trait HostExtension {
    /// Called when the connection opens, before
    /// [`CongestionController::on_established`](super::CongestionController::on_established). The
    /// controller may read cached data of the peer.
    fn on_connection_open(&mut self, occasion: &mut PeerCacheContext<'_>);

    /// Called when the connection closes. The controller may save its measurements in the cache.
    fn on_connection_close(&mut self, occasion: &mut PeerCacheContext<'_>);
}
