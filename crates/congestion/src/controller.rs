//! The interface between a transport and a congestion controller.
//!
//! Windows are counted in full-sized packets, as in Linux: the integer arithmetic of its
//! controllers is part of their behaviour. A transport that counts bytes multiplies by its datagram
//! size.

mod events;
mod extensions;

use jostle_units::{Rate, Span, Time};

pub use events::{
    AckSample, CongestionEvent, CongestionSignal, CwndReductionBy, EcnFeedback, EcnMarks,
    EstablishedEvent, FirstFlightLimits, LostPacket, RateSample, RawAckSample, RecoveryState,
    SendEvent, Timestamps,
};
pub use extensions::{HostExtension, TcpExtension};

/// Receives the internal state of a controller, for plots. Names end with their unit
/// (`bottleneck_bps`, `k_s`).
pub trait StateObserver {
    /// Records one value of the controller's state.
    fn record_value(&mut self, name: &'static str, value: f64);
}

/// Passes the methods of [`CongestionController`] to the macro `$apply`. The trait and everything
/// that forwards its methods are generated from this list, so that a new method is forwarded
/// everywhere.
#[macro_export]
macro_rules! controller_methods {
    ($apply:ident) => {
        $apply! {
            required {
                /// Called when the handshake is complete. Sets the initial window.
                fn on_established(&mut self, established: &EstablishedEvent);

                /// Called after an ACK was processed.
                fn on_ack(&mut self, ack: &AckSample);

                /// Called at a congestion signal. Sets ssthresh.
                /// [`recovery_owner`](CongestionController::recovery_owner) determines who then
                /// changes cwnd. After a timeout, the transport of a window-based controller sets
                /// cwnd with [`set_cwnd`](CongestionController::set_cwnd).
                fn on_congestion_event(&mut self, congestion: &CongestionEvent);

                /// Called when the last congestion signal proved to be spurious. Restores the
                /// window from before that signal.
                fn on_undo(&mut self, now: Time);

                /// Sets cwnd. The transport calls this for PRR, after a timeout, after a long idle
                /// time, and when the packet size changes. QUIC also takes back the increase of a
                /// window that is not used.
                fn set_cwnd(&mut self, cwnd: u32);

                /// Returns the congestion window, at least 1.
                fn cwnd(&self) -> u32;

                /// Returns which side reduces cwnd after a congestion signal.
                fn recovery_owner(&self) -> CwndReductionBy;

                /// Returns the name of the current mode (`slow_start`, `probe_bw`, …).
                fn mode(&self) -> &'static str;
            }
            provided {
                /// Returns the ECN feedback that the controller requires. The transport then
                /// negotiates ECN even if its settings disable ECN.
                fn required_ecn_feedback(&self) -> EcnFeedback {
                    EcnFeedback::None
                }

                /// Reports the ECN feedback that the handshake negotiated. Called before
                /// [`on_established`](CongestionController::on_established). If the transport does
                /// not call it, the controller may assume the feedback that it requires.
                fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {}

                /// Reports that a full-sized packet now carries a payload of `mss_bytes`, because
                /// path MTU discovery (RFC 8899) found another packet size for the path. Values in
                /// packets (cwnd, ssthresh) keep their number of packets, and values in bits per
                /// second remain unchanged. A transport that wants to keep the number of bytes in
                /// flight calls [`set_cwnd`](CongestionController::set_cwnd) next
                /// (`tcp_input.c::tcp_mtup_probe_success` in Linux). The transports of this project
                /// never call this method, because the MTU of a flow is fixed.
                fn on_mss_change(&mut self, mss_bytes: u32) {}

                /// Called after packets were sent.
                fn on_send(&mut self, sent: &SendEvent) {}

                /// Called when an ACK arrived, before loss detection processes it.
                fn on_ack_before_loss_detection(&mut self, measurement: &RawAckSample) {}

                /// Reports the ECN marks of an ACK. Called after
                /// [`on_ack_before_loss_detection`](CongestionController::on_ack_before_loss_detection),
                /// only on connections with ECN (`in_ack_event` in Linux).
                fn on_ecn_feedback(&mut self, marks: &EcnMarks) {}

                /// Called when an ACK or a timer marked a packet lost. If the loss starts a
                /// recovery episode, this call precedes
                /// [`on_congestion_event`](CongestionController::on_congestion_event).
                fn on_packet_lost(&mut self, lost: &LostPacket) {}

                /// Takes the controller's request to reduce the window as after an ECN mark (a
                /// Linux module that calls `tcp_input.c::tcp_enter_cwr`). The transport calls this after
                /// every [`on_ack`](CongestionController::on_ack). It responds to a request with
                /// [`on_congestion_event`](CongestionController::on_congestion_event), with
                /// [`CongestionSignal::Request`] and state [`RecoveryState::Cwr`], unless a
                /// reduction or recovery is in progress.
                fn take_cwr_request(&mut self) -> bool {
                    false
                }

                /// Called when the transport has reduced cwnd to ssthresh, or when recovery has
                /// ended for another reason (`CA_EVENT_COMPLETE_CWR` in Linux).
                fn on_cwr_complete(&mut self, now: Time) {}

                /// Called when the application writes after an idle time of more than one
                /// retransmission timeout, before the transport reduces cwnd and changes ssthresh
                /// (`CA_EVENT_CWND_RESTART` in Linux).
                fn on_idle_restart(&mut self, now: Time) {}

                /// Called when the recovery state changed.
                fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {}

                /// Sets ssthresh. The transport calls this before it reduces the cwnd of an
                /// application-limited flow (RFC 2861).
                fn set_ssthresh(&mut self, ssthresh: u32) {}

                /// Returns the slow-start threshold, if it is set.
                fn ssthresh(&self) -> Option<u32> {
                    None
                }

                /// Returns the pacing rate that the controller requires. `None` leaves the choice
                /// to the transport. A window-based controller requires a rate while its start-up
                /// spreads a flight over time, from the first packet on.
                fn pacing_rate(&self) -> Option<Rate> {
                    None
                }

                /// Returns the time from the packet that was just sent to the next one, if the
                /// start-up of a window-based controller determines it packet by packet. Bursts are
                /// then not allowed. `None` means that the pacing rate determines the gap. The
                /// transport calls this before it sends packets and after
                /// [`on_send`](CongestionController::on_send), while a
                /// [`pacing_rate`](CongestionController::pacing_rate) is required.
                fn next_packet_gap(&self) -> Option<Span> {
                    None
                }

                /// Returns the smallest burst size, in packets, that the transport may choose
                /// (`min_tso_segs` in Linux). `None` sets no minimum.
                fn min_burst_packets(&self) -> Option<u32> {
                    None
                }

                /// Returns the largest burst size, in packets. It takes precedence over all other
                /// rules for the burst size (`tso_segs` of TCP Prague). `None` leaves the limit to
                /// the transport.
                fn max_burst_packets(&self) -> Option<u32> {
                    None
                }

                /// Returns whether the controller keeps the data in flight small on purpose (BBR's
                /// PROBE_RTT), so that delivery-rate samples would underestimate the path. If this
                /// returns `true` after an ACK, the transport marks the packets in flight with
                /// [`DeliveryRateSampler::set_app_limited`](crate::DeliveryRateSampler::set_app_limited)
                /// before it sends.
                fn limits_flight_on_purpose(&self) -> bool {
                    false
                }

                /// Returns the time at which [`on_wakeup`](CongestionController::on_wakeup) must be
                /// called, if any.
                fn next_wakeup(&self) -> Option<Time> {
                    None
                }

                /// Called at the time of [`next_wakeup`](CongestionController::next_wakeup).
                fn on_wakeup(&mut self, now: Time) {}

                /// Reports internal state to `observer`. The set of names does not change during a
                /// connection.
                fn observe(&self, observer: &mut dyn StateObserver) {}
            }
        }
    };
}

macro_rules! define_controller {
    (
        required {
            $($(#[$about:meta])* fn $name:ident $arguments:tt $(-> $answer:ty)?;)+
        }
        provided {
            $($(#[$more:meta])* fn $with:ident $taken:tt $(-> $given:ty)? $default:block)+
        }
    ) => {
        /// A congestion controller for any transport.
        ///
        /// For every ACK the transport calls [`on_ack_before_loss_detection`](Self::on_ack_before_loss_detection) and with ECN
        /// [`on_ecn_feedback`](Self::on_ecn_feedback), then runs loss detection (which may call
        /// [`on_packet_lost`](Self::on_packet_lost), [`on_congestion_event`](Self::on_congestion_event),
        /// [`on_recovery_state`](Self::on_recovery_state) or [`on_cwr_complete`](Self::on_cwr_complete)), then
        /// [`on_ack`](Self::on_ack).
        pub trait CongestionController: Send {
            $($(#[$about])* fn $name $arguments $(-> $answer)?;)+

            $(
                $(#[$more])*
                #[allow(unused_variables, reason = "a controller may have no use for it")]
                fn $with $taken $(-> $given)? $default
            )+

            /// Returns the interface for features that only TCP offers. Other transports ignore it.
            fn tcp_extension(&self) -> Option<&dyn TcpExtension> {
                None
            }

            /// Returns the same interface mutably. It is `Some` exactly if
            /// [`tcp_extension`](Self::tcp_extension) is, and this never changes.
            fn tcp_extension_mut(&mut self) -> Option<&mut dyn TcpExtension> {
                None
            }

            /// Returns the interface for hosts with a peer cache.
            fn host_extension(&mut self) -> Option<&mut dyn HostExtension> {
                None
            }
        }
    };
}
controller_methods!(define_controller);
