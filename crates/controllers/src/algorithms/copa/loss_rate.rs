//! Reaction of Copa's default mode to a very high loss rate.
//!
//! The paper does not react to losses. The authors' release reduces the window if more than 30 % of
//! the packets of two round trips were lost. Otherwise a flow behind a buffer of a few packets, too
//! short for a measurable delay, would continue to send at a multiple of the link's rate.

use jostle_units::Time;

use jostle_congestion::AckSample;

/// Minimum number of packets, lost or delivered, for a valid loss rate (release).
const FEWEST: u64 = 20;
/// Round trips over which packets are counted (release).
const RTTS: u64 = 2;

/// Lost and delivered packets of the last two round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRateWindow {
    since: Option<CountStart>,
}

/// Start of the count.
#[derive(Clone, Copy, Debug)]
struct CountStart {
    at: Time,
    delivered: u64,
    lost: u64,
}

impl LossRateWindow {
    /// Returns whether the count has just ended with a loss rate above `threshold`.
    pub(super) fn exceed(&mut self, ack: &AckSample, threshold: f64) -> bool {
        if let Some(since) = self.since
            && ack.now.since(since.at) <= ack.rtt.unwrap_or(ack.srtt).mul_div(RTTS, 1)
        {
            return false;
        }
        let here = CountStart { at: ack.now, delivered: ack.delivered, lost: ack.total_lost };
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
