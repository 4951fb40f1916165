//! What a controller may ask of some transports and hosts, and of others not.

use jostle_units::Time;

use crate::memory::Occasion;
use crate::rate_code::RateCode;

/// What a controller asks of a TCP in particular.
pub trait TcpExtension {
    /// Rate that the SYN asks the routers of the path for (RFC 4782).
    fn rate_request(&self) -> RateCode;

    /// Packets may leave beyond the receiver's window, which will have grown by the time that they
    /// arrive if the application reads. A window of 0 is respected.
    fn overrides_receive_window(&self) -> bool;

    /// Whether [`on_ack_event`](Self::on_ack_event) is to be called. Asked once, when the connection
    /// is established, so that no ACK pays for it where it is not.
    fn hears_headers(&self) -> bool;

    /// An ACK, of which [`Controller::on_measurement`](super::Controller::on_measurement) has just
    /// told, is about to reach loss detection (`in_ack_event` in Linux). `slow_path`: its header was
    /// not the one that a TCP in steady state predicts, for it carries SACK blocks, an ECN echo, or
    /// another window than the ACK before (`CA_ACK_SLOWPATH`).
    fn on_ack_event(&mut self, now: Time, slow_path: bool);
}

/// What a controller asks of a host that remembers its peers from one connection to the next.
pub trait HostExtension {
    /// The connection opens: what the host remembers of the peer may shape its start. Comes before
    /// [`Controller::on_established`](super::Controller::on_established).
    fn on_open(&mut self, occasion: &mut Occasion<'_>);

    /// The connection closes: what it found out may be remembered.
    fn on_close(&mut self, occasion: &mut Occasion<'_>);
}
