//! Summary of a run: its measures per phase, as printed by `jostle run --json`. Definitions are in
//! [`measures`](crate::measures). A measure without data is absent (`null`).

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::measures::{
    ArrivedSummary, CapturedSummary, Fairness, FlowPhase, GroupPhase, LinkPhase, Totals,
    VideoSummary, WebSummary,
};
use crate::ping_meter::Pings;
use jostle_run_spec::Transport;

/// Values by phase name, in the order of the spec. Serialized as a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub struct ByPhase<T>(Vec<(String, T)>);

impl<T> ByPhase<T> {
    /// Returns the value of a phase.
    pub fn get(&self, phase: &str) -> Option<&T> {
        self.0.iter().find(|(name, _)| name == phase).map(|(_, value)| value)
    }

    /// Iterates over all phases with their values.
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

/// The measures of a run, in the order of canonical JSON: sorting long texts takes time.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Fairness per phase.
    pub fairness: ByPhase<Fairness>,
    /// Flows in the order of the spec.
    pub flows: Vec<FlowSummary>,
    /// Groups in the order of their first flows.
    pub groups: Vec<GroupSummary>,
    /// Links in the order of the spec.
    pub links: Vec<LinkSummary>,
    /// Sums and means over all flows, per phase.
    pub totals: ByPhase<Totals>,
}

/// The measures of a flow.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FlowSummary {
    /// Name of the flow.
    pub name: String,
    /// Name of its group.
    pub group: String,
    /// Transport protocol.
    pub transport: Transport,
    /// Name of the controller.
    pub controller: String,
    /// Time at which the application opened the flow, since the beginning of the run; absent if the
    /// flow still waited for another flow at the end.
    pub start_s: Option<f64>,
    /// Time from the flow's start until all its data were acknowledged; absent if the flow did not
    /// complete.
    pub completion_time_s: Option<f64>,
    /// Payload ÷ completion time.
    pub completion_rate_bps: Option<f64>,
    /// 1 if the flow has an end and did not reach it, else 0; absent if the flow has no end.
    pub unfinished: Option<u64>,
    /// Minimum completion time ÷ completion time.
    pub efficiency: Option<f64>,
    /// Final bandwidth estimate of the flow.
    pub bandwidth_estimate_bps: Option<f64>,
    /// Measures of the video session; absent for other flows.
    #[serde(flatten)]
    pub video: Option<VideoSummary>,
    /// Measures of the page loads; absent for other flows.
    #[serde(flatten)]
    pub web: Option<WebSummary>,
    /// Measures of a captured flow; absent in runs.
    #[serde(flatten)]
    pub captured: Option<CapturedSummary>,
    /// Measures of each phase.
    pub phases: ByPhase<FlowPhase>,
    /// Pings without a reply in time; absent for other flows, and if no reply arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pings_lost: Option<u64>,
    /// Ping statistics over the complete run; absent for other flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pings: Option<Pings>,
}

impl FlowSummary {
    /// Removes the congestion window, if it is unknown.
    pub fn forget_window(&mut self) {
        for (_, phase) in &mut self.phases.0 {
            phase.cwnd_mean_bytes = None;
        }
    }
}

/// Measures of the flows that one scenario entry created.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct GroupSummary {
    /// Name of the scenario entry.
    pub name: String,
    /// Number of flows.
    pub flows: u64,
    /// Mean completion time of the complete flows.
    pub completion_time_mean_s: Option<f64>,
    /// Median completion time; incomplete flows rank last.
    pub completion_time_p50_s: Option<f64>,
    /// 95th percentile of the completion time; incomplete flows rank last.
    pub completion_time_p95_s: Option<f64>,
    /// 99th percentile of the completion time; incomplete flows rank last.
    pub completion_time_p99_s: Option<f64>,
    /// Mean of payload ÷ completion time.
    pub completion_rate_mean_bps: Option<f64>,
    /// Flows that have an end and did not reach it; absent if no flow has an end.
    pub unfinished: Option<u64>,
    /// Measures of the transfers of multi-connection flows; absent if there are none.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub arrived: Option<ArrivedSummary>,
    /// Measures of each phase.
    pub phases: ByPhase<GroupPhase>,
}

/// The measures of a link.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LinkSummary {
    /// Name of the link.
    pub name: String,
    /// Measures of each phase.
    pub phases: ByPhase<LinkPhase>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_keep_their_order_in_json() {
        let phases: ByPhase<u8> = [("z".to_owned(), 1), ("a".to_owned(), 2)].into_iter().collect();
        assert_eq!(serde_json::to_string(&phases).unwrap(), r#"{"z":1,"a":2}"#);
        assert_eq!(phases.get("a"), Some(&2));
    }
}
