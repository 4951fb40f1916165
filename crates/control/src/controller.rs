//! The seam between a transport and a congestion controller.
//!
//! Windows are counted in full-sized packets, as Linux counts them: the integer arithmetic of its
//! controllers is part of their behaviour. A byte-counting transport multiplies by its datagram
//! size.

mod extension;
mod sample;

use jostle_units::{Rate, Span, Time};

pub use extension::{HostExtension, TcpExtension};
pub use sample::{
    AckSample, Congestion, EcnFeedback, Established, LostPacket, Marks, Measurement, Prospect,
    RateSample, RecoveryOwner, RecoveryState, Sent, Signal, Timestamps,
};

/// Receives a controller's internal state, for plots. Names carry their unit
/// (`bottleneck_bps`, `k_s`).
pub trait Observer {
    /// One value of the controller's state.
    fn value(&mut self, name: &'static str, value: f64);
}

/// The methods of [`Controller`], for `$apply`: the trait is made of them, and so is all that passes
/// them on, so that none can be forgotten where one is added.
macro_rules! controller_methods {
    ($apply:ident) => {
        $apply! {
            required {
                /// The handshake is complete: set the initial window.
                fn on_established(&mut self, established: &Established);

                /// An ACK was processed.
                fn on_ack(&mut self, ack: &AckSample);

                /// Congestion was signalled: set ssthresh. The window itself follows as
                /// [`recovery_owner`](Controller::recovery_owner) says; after a timeout the transport
                /// of a window-based controller sets it with [`set_cwnd`](Controller::set_cwnd).
                fn on_congestion(&mut self, congestion: &Congestion);

                /// The last congestion signal proved to be spurious: restore the window it took.
                fn on_undo(&mut self, now: Time);

                /// The transport takes cwnd to a value: PRR, a timeout, a long idle time, another
                /// packet size.
                fn set_cwnd(&mut self, cwnd: u32);

                /// Congestion window, at least 1.
                fn cwnd(&self) -> u32;

                /// Who brings cwnd down.
                fn recovery_owner(&self) -> RecoveryOwner;

                /// Name of the mode the controller is in (`slow_start`, `probe_bw`, …).
                fn mode(&self) -> &'static str;
            }
            provided {
                /// The feedback without which the controller is not what it is for. A transport
                /// offers ECN for it whatever its own settings are.
                fn needs_ecn(&self) -> EcnFeedback {
                    EcnFeedback::None
                }

                /// What the handshake agreed on; comes before
                /// [`on_established`](Controller::on_established). A controller that is not told may
                /// take what it needs for granted.
                fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {}

                /// From now on a full-sized packet has a payload of `mss_bytes`: path MTU discovery
                /// (RFC 8899) found that the path takes larger ones, or none so large. What the
                /// controller counts in packets (cwnd, ssthresh) remains as many packets, and what it
                /// knows of the path in bits per second remains what it is. A transport that wants as
                /// many bytes in flight as before calls [`set_cwnd`](Controller::set_cwnd) next
                /// (`tcp_mtup_probe_success` in Linux). A transport that discovers its path's MTU
                /// calls it; that of this project does not, for a flow's MTU is given.
                fn on_packet_size(&mut self, mss_bytes: u32) {}

                /// Packets were sent.
                fn on_send(&mut self, sent: &Sent) {}

                /// An ACK arrived; loss detection has not yet seen it.
                fn on_measurement(&mut self, measurement: &Measurement) {}

                /// What the ACK says of marks: after
                /// [`on_measurement`](Controller::on_measurement), on connections with ECN only
                /// (`in_ack_event` in Linux).
                fn on_marks(&mut self, marks: &Marks) {}

                /// A packet was marked lost, by an ACK or by a timer. Comes before
                /// [`on_congestion`](Controller::on_congestion) where the loss begins an episode of
                /// recovery.
                fn on_lost(&mut self, lost: &LostPacket) {}

                /// Takes the controller's request that the transport reduce the window as it would
                /// for a mark (a module of Linux that calls `tcp_enter_cwr`). Asked after every
                /// [`on_ack`](Controller::on_ack). The answer to a request is
                /// [`on_congestion`](Controller::on_congestion) with [`Signal::Request`] and state
                /// [`RecoveryState::Cwr`], unless a reduction or recovery is under way.
                fn take_reduction_request(&mut self) -> bool {
                    false
                }

                /// The transport has brought cwnd down to ssthresh, or recovery has ended in another
                /// way (`CA_EVENT_COMPLETE_CWR` in Linux).
                fn on_reduction_end(&mut self, now: Time) {}

                /// The application writes again after more than a retransmission timeout of silence,
                /// and the transport is about to take cwnd and ssthresh down for it
                /// (`CA_EVENT_CWND_RESTART` in Linux).
                fn on_idle_restart(&mut self, now: Time) {}

                /// Recovery went from one state to another.
                fn on_state(&mut self, now: Time, state: RecoveryState) {}

                /// The transport raises ssthresh for the window it takes away while the application
                /// is slow (RFC 2861).
                fn set_ssthresh(&mut self, ssthresh: u32) {}

                /// Slow-start threshold; none while there is none.
                fn ssthresh(&self) -> Option<u32> {
                    None
                }

                /// Pacing rate that the controller requires; none if the transport may choose. A
                /// window-based controller requires one for as long as its start-up spreads a flight
                /// over time, from the first packet on.
                fn pacing_rate(&self) -> Option<Rate> {
                    None
                }

                /// Time from the packet that was just sent to the next one, where a window-based
                /// controller's start-up chooses it packet by packet, which forbids bursts; none if
                /// the pacing rate does. Asked before packets are sent and after
                /// [`on_send`](Controller::on_send), while a
                /// [`pacing_rate`](Controller::pacing_rate) is required.
                fn packet_gap(&self) -> Option<Span> {
                    None
                }

                /// Fewest packets that the transport's choice of burst size should come to
                /// (`min_tso_segs` in Linux); none if it may choose.
                fn burst_packets(&self) -> Option<u32> {
                    None
                }

                /// Most packets that a burst may have, whatever else it should have (`tso_segs` of TCP
                /// Prague); none if only the transport bounds it.
                fn burst_limit(&self) -> Option<u32> {
                    None
                }

                /// The controller keeps the flight small on purpose (BBR's PROBE_RTT), so that
                /// delivery rates would understate the path. While this holds after an ACK, the
                /// transport marks what is in flight with
                /// [`Sampler::set_app_limited`](crate::Sampler::set_app_limited) before it sends.
                fn holds_back(&self) -> bool {
                    false
                }

                /// When to call [`on_wakeup`](Controller::on_wakeup); none if only events matter.
                fn next_wakeup(&self) -> Option<Time> {
                    None
                }

                /// The time of [`next_wakeup`](Controller::next_wakeup) has come.
                fn on_wakeup(&mut self, now: Time) {}

                /// Shows internal state to `observer`. Which names appear does not change during a
                /// connection.
                fn observe(&self, observer: &mut dyn Observer) {}
            }
        }
    };
}
pub(crate) use controller_methods;

macro_rules! define_controller {
    (
        required {
            $($(#[$about:meta])* fn $name:ident $arguments:tt $(-> $answer:ty)?;)+
        }
        provided {
            $($(#[$more:meta])* fn $with:ident $taken:tt $(-> $given:ty)? $default:block)+
        }
    ) => {
        /// A congestion controller, as any transport can have it.
        ///
        /// For every ACK the transport calls [`on_measurement`](Self::on_measurement) and with ECN
        /// [`on_marks`](Self::on_marks), then runs loss detection (which may call
        /// [`on_lost`](Self::on_lost), [`on_congestion`](Self::on_congestion),
        /// [`on_state`](Self::on_state) or [`on_reduction_end`](Self::on_reduction_end)), then
        /// [`on_ack`](Self::on_ack).
        pub trait Controller: Send {
            $($(#[$about])* fn $name $arguments $(-> $answer)?;)+

            $(
                $(#[$more])*
                #[allow(unused_variables, reason = "a controller may have no use for it")]
                fn $with $taken $(-> $given)? $default
            )+

            /// What the controller asks of a TCP beyond that. A transport which is none need not look.
            fn tcp(&self) -> Option<&dyn TcpExtension> {
                None
            }

            /// The same, to be told. There is one if there is a [`tcp`](Self::tcp), always or never.
            fn tcp_mut(&mut self) -> Option<&mut dyn TcpExtension> {
                None
            }

            /// What the controller asks of a host that remembers its peers.
            fn host(&mut self) -> Option<&mut dyn HostExtension> {
                None
            }
        }
    };
}
controller_methods!(define_controller);
