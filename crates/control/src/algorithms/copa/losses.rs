//! The one answer to losses that Copa's default mode has: to very many of them.
//!
//! The paper has none. The authors' release cuts the window where more than 30 % of the packets of
//! two round trips were lost, without which a flow behind a buffer of a few packets, too short to
//! delay anything, would go on sending at a multiple of the link's rate.

use jostle_units::Time;

use crate::controller::AckSample;

/// Packets, lost or delivered, without which a share means nothing (release).
const FEWEST: u64 = 20;
/// Round trips over which packets are counted (release).
const RTTS: u64 = 2;

/// What became of the packets of the last two round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    since: Option<Mark>,
}

/// Where counting began.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Time,
    delivered: u64,
    lost: u64,
}

impl Losses {
    /// Whether counting has just ended with more than `threshold` of the packets lost.
    pub(super) fn exceed(&mut self, ack: &AckSample, threshold: f64) -> bool {
        if let Some(since) = self.since
            && ack.now.since(since.at) <= ack.rtt.unwrap_or(ack.srtt).mul_div(RTTS, 1)
        {
            return false;
        }
        let here = Mark { at: ack.now, delivered: ack.delivered, lost: ack.total_lost };
        let Some(since) = self.since else {
            self.since = Some(here);
            return false;
        };
        let lost = here.lost - since.lost;
        let packets = here.delivered - since.delivered + lost;
        if packets <= FEWEST {
            return false;
        }
        self.since = Some(here);
        lost as f64 > threshold * packets as f64
    }
}
