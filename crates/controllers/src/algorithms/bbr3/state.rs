//! States of BBR v3 and their transitions.

/// State of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Doubles the rate per round until the pipe is full.
    Startup,
    /// Drains the queue that Startup built.
    Drain,
    /// Sends less than is delivered, to drain the queue of the probe and to leave headroom.
    Down,
    /// Sends as much as is delivered.
    Cruise,
    /// Fills the pipe for a round, so that capacity left unused by Cruise does not affect the
    /// result of the probe.
    Refill,
    /// Probes for more bandwidth.
    Up,
    /// Halves the packets in flight to measure the base RTT.
    ProbeRtt,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::Down => "probe_bw_down",
            Self::Cruise => "probe_bw_cruise",
            Self::Refill => "probe_bw_refill",
            Self::Up => "probe_bw_up",
            Self::ProbeRtt => "probe_rtt",
        }
    }

    /// `IsInAProbeBWState`.
    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// `IsProbingBW`: losses are expected.
    pub(super) const fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// Transitions of the draft's "State Transition Diagram", and those that only its text
    /// describes.
    const fn leads_to(self, next: Self) -> bool {
        match (self, next) {
            // "Finally, it exits Startup and enters Drain."
            (Self::Startup, Self::Drain)
            // "BBR exits Drain and enters ProbeBW", which begins with DOWN.
            | (Self::Drain, Self::Down)
            // "The flow exits the ProbeBW_DOWN phase and enters CRUISE"
            | (Self::Down, Self::Cruise)
            // "... decides that it is time to probe for bandwidth [...], at which time it enters
            // ProbeBW_REFILL"; from DOWN by the pseudocode of `UpdateProbeBWCyclePhase` and, after a
            // precautionary probe, "bypassing the usual cruise phase". Neither is in the diagram.
            | (Self::Down | Self::Cruise, Self::Refill)
            // "The flow exits ProbeBW_REFILL after one packet-timed round trip, and enters ProbeBW_UP."
            | (Self::Refill, Self::Up)
            // "... transitions to ProbeBW_DOWN to try to drain the bottleneck queue"
            | (Self::Up, Self::Down)
            // "BBR leaves ProbeRTT and transitions to ProbeBW if it estimates the pipe was filled
            // already, or Startup otherwise."
            | (Self::ProbeRtt, Self::Down | Self::Startup) => true,
            // "In any state other than ProbeRTT itself"
            (from, Self::ProbeRtt) => !matches!(from, Self::ProbeRtt),
            _ => false,
        }
    }

    /// Transitions after spurious losses: "returning to Startup, or returning to ProbeBW by
    /// starting a refill phase", both only if "the connection is not currently in ProbeRTT".
    const fn undo_leads_to(self, next: Self) -> bool {
        match next {
            Self::Startup => !matches!(self, Self::Startup | Self::ProbeRtt),
            // Only the end of UP can be spurious, and it is followed by a state of ProbeBW.
            Self::Refill => matches!(self, Self::Down | Self::Cruise | Self::Refill),
            _ => false,
        }
    }
}

/// Cause of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The model of the path (draft-ietf-ccwg-bbr, "State Machine Operation").
    Model,
    /// Losses proved to be spurious (`HandleSpuriousLossDetection`).
    Undo,
}

impl Cause {
    /// Returns whether the draft allows the transition from `state` to `next` for this cause.
    pub(super) const fn allows(self, state: State, next: State) -> bool {
        match self {
            Self::Model => state.leads_to(next),
            Self::Undo => state.undo_leads_to(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [State; 7] = [
        State::Startup,
        State::Drain,
        State::Down,
        State::Cruise,
        State::Refill,
        State::Up,
        State::ProbeRtt,
    ];

    /// The draft's diagram, arrow by arrow, in the order of [`ALL`]; `u` only by an undo.
    #[test]
    fn the_diagram_is_that_of_the_draft() {
        let rows = [
            ".D....P", // startup
            "u.D...P", // drain
            "u..CR.P", // down
            "u...R.P", // cruise
            "u...uUP", // refill
            "u.D...P", // up
            "S.D....", // probe_rtt
        ];
        for (from, row) in ALL.into_iter().zip(rows) {
            for (next, arrow) in ALL.into_iter().zip(row.chars()) {
                let (model, undo) =
                    (Cause::Model.allows(from, next), Cause::Undo.allows(from, next));
                let back = matches!(next, State::Startup | State::Refill);
                let both = back && matches!(from, State::Down | State::Cruise) && arrow == 'R';
                assert_eq!(model, !matches!(arrow, '.' | 'u'), "{from:?} to {next:?}");
                assert_eq!(undo, arrow == 'u' || both, "undo of {from:?} to {next:?}");
            }
        }
    }
}
