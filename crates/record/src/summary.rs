//! The measures of a run, per phase: what `jostle run --json` prints for it.
//!
//! Definitions follow Turkovic, Kuipers, Uhlig, "Interactions between Congestion Control
//! Algorithms", TMA 2019. Every rate of a phase is over the whole length of the phase, so a flow
//! that starts late or ends early has less. A measure without data is absent (`null`).

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::Transport;

/// Values by name, in the order of the spec; a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub struct ByPhase<T>(Vec<(String, T)>);

impl<T> ByPhase<T> {
    /// The value of a phase.
    pub fn get(&self, phase: &str) -> Option<&T> {
        self.0.iter().find(|(name, _)| name == phase).map(|(_, value)| value)
    }

    /// All phases with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<T> FromIterator<(String, T)> for ByPhase<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl<T: Serialize> Serialize for ByPhase<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The measures of a run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Flows in the order of the spec.
    pub flows: Vec<FlowSummary>,
    /// Links in the order of the spec.
    pub links: Vec<LinkSummary>,
    /// How fairly the flows shared.
    pub fairness: ByPhase<Fairness>,
}

/// The measures of a flow.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FlowSummary {
    /// Name of the flow.
    pub name: String,
    /// Its transport protocol.
    pub transport: Transport,
    /// Name of its controller.
    pub controller: String,
    /// Time from the flow's start until all its data were acknowledged; absent if that never was.
    pub completion_s: Option<f64>,
    /// Measures of each phase.
    pub phases: ByPhase<FlowPhase>,
    /// What became of its pings, of the whole run; absent for other flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pings: Option<Pings>,
}

/// What became of pings: `sent` = `echoed` + `lost` + `waiting`.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Pings {
    /// Sent.
    pub sent: u64,
    /// Back in time.
    pub echoed: u64,
    /// Not back in time.
    pub lost: u64,
    /// Still in time at the end of the run, and not back.
    pub waiting: u64,
    /// Longest round trip.
    pub rtt_max_s: Option<f64>,
    /// Whole milliseconds of a round trip, and how many took them; only those that occurred.
    pub echoes_by_ms: Vec<(u64, u64)>,
    /// Length of losses in a row, and how often they were as long.
    pub losses_by_length: Vec<(u64, u64)>,
}

/// The measures of a flow in a phase.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FlowPhase {
    /// Bits that the sender put on the wire, link headers and retransmissions included, per second.
    pub sending_rate_bps: f64,
    /// Bits that reached the receiver, link headers included, per second.
    pub throughput_bps: f64,
    /// Bits of payload that reached the application in order, per second.
    pub goodput_bps: f64,
    /// Useful data ÷ all data transmitted: goodput ÷ sending rate. Data sent in one phase may be
    /// delivered in the next, so it can pass 1 in a short phase; nothing caps it.
    pub goodput_ratio: Option<f64>,
    /// Mean of the RTT samples, one per ACK that gave one, or per echo of a ping, in the phase in
    /// which it arrived.
    pub rtt_mean_s: Option<f64>,
    /// Smallest RTT sample.
    pub rtt_min_s: Option<f64>,
    /// Median RTT sample, less than 1.6 % off.
    pub rtt_p50_s: Option<f64>,
    /// 95th percentile of the RTT samples, less than 1.6 % off.
    pub rtt_p95_s: Option<f64>,
    /// Standard deviation of the RTT samples (n − 1).
    pub rtt_sd_s: Option<f64>,
    /// Mean over time of the congestion window, while the flow lived: from its first ACK until it
    /// completed, or until the last ACK after its stop.
    pub cwnd_mean_bytes: Option<f64>,
    /// Packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Packets sent again.
    pub retransmitted_packets: u64,
    /// Packets sent again ÷ packets sent.
    pub retransmission_ratio: Option<f64>,
    /// Mean throughput ÷ mean RTT.
    pub power_bits: Option<f64>,
}

/// The measures of a link.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LinkSummary {
    /// Name of the link.
    pub name: String,
    /// Measures of each phase.
    pub phases: ByPhase<LinkPhase>,
}

/// The measures of a link in a phase.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LinkPhase {
    /// Bytes sent ÷ bytes that the capacity could have carried; absent if that is none.
    pub utilisation: Option<f64>,
    /// Mean over time of the bytes waiting.
    pub queue_mean_bytes: f64,
    /// Bytes that the queue holds at most during 95 % of the time, less than 1.6 % off.
    pub queue_p95_bytes: f64,
    /// Packets dropped, for whatever reason.
    pub dropped_packets: u64,
    /// Packets marked with congestion experienced.
    pub marked_packets: u64,
}

/// How fairly the flows shared in a phase.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Fairness {
    /// Jain's index of the throughputs of all flows that were there during part of the phase at
    /// least: between their start and their stop or completion. Absent if none of them got
    /// anything. Pings, which take what they ask for, do not count.
    pub jain: Option<f64>,
}

/// (Σx)² ÷ n·Σx² (Jain, Chiu, Hawe 1984): 1 if all have the same, 1/n if one has it all.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_goes_from_one_to_one_over_n() {
        assert_eq!(jain(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[3.0, 1.0]), Some(0.8));
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[]), None);
    }

    #[test]
    fn phases_keep_their_order_in_json() {
        let phases: ByPhase<u8> = [("z".to_owned(), 1), ("a".to_owned(), 2)].into_iter().collect();
        assert_eq!(serde_json::to_string(&phases).unwrap(), r#"{"z":1,"a":2}"#);
        assert_eq!(phases.get("a"), Some(&2));
    }
}
