//! The measures of a run, per phase: what `jostle run --json` prints for it. What they are stands in
//! [`measures`](crate::measures). A measure without data is absent (`null`).

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::Transport;
use crate::measures::{
    ArrivedSummary, CapturedSummary, Fairness, FlowPhase, GroupPhase, LinkPhase, Totals,
    VideoSummary, WebSummary,
};
use crate::ping_meter::Pings;

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
    /// Groups in the order of their first flows.
    pub groups: Vec<GroupSummary>,
    /// Links in the order of the spec.
    pub links: Vec<LinkSummary>,
    /// How fairly the flows shared.
    pub fairness: ByPhase<Fairness>,
    /// What the flows did together.
    pub totals: ByPhase<Totals>,
}

/// The measures of a flow.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FlowSummary {
    /// Name of the flow.
    pub name: String,
    /// Name of its group.
    pub group: String,
    /// Its transport protocol.
    pub transport: Transport,
    /// Name of its controller.
    pub controller: String,
    /// When its application opened it, counted from the beginning of the run; absent if it waited
    /// for another to the end.
    pub start_s: Option<f64>,
    /// Time from the flow's start until all its data were acknowledged; absent if that never was.
    pub completion_s: Option<f64>,
    /// All its payload ÷ that time.
    pub completion_rate_bps: Option<f64>,
    /// 1 if it should have ended by itself and did not, else 0; absent if it has no end of its own.
    pub unfinished: Option<u64>,
    /// How close to the least completion time it came.
    pub efficiency: Option<f64>,
    /// What its estimator of bandwidth said in the end.
    pub estimate_bps: Option<f64>,
    /// What became of its video; absent of other flows.
    #[serde(flatten)]
    pub video: Option<VideoSummary>,
    /// What became of its pages; absent of other flows.
    #[serde(flatten)]
    pub web: Option<WebSummary>,
    /// What a capture shows of it; absent of runs.
    #[serde(flatten)]
    pub captured: Option<CapturedSummary>,
    /// Measures of each phase.
    pub phases: ByPhase<FlowPhase>,
    /// What became of its pings, of the whole run; absent for other flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pings: Option<Pings>,
}

impl FlowSummary {
    /// No window of it is known.
    pub fn forget_window(&mut self) {
        for (_, phase) in &mut self.phases.0 {
            phase.cwnd_mean_bytes = None;
        }
    }
}

/// The measures of flows that were written as one, together.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct GroupSummary {
    /// Name under which they were written.
    pub name: String,
    /// How many flows it has.
    pub flows: u64,
    /// Mean completion time of those that were complete.
    pub completion_mean_s: Option<f64>,
    /// Median; those that were not complete count as the longest.
    pub completion_p50_s: Option<f64>,
    /// 95th percentile, likewise.
    pub completion_p95_s: Option<f64>,
    /// 99th percentile, likewise.
    pub completion_p99_s: Option<f64>,
    /// Mean of payload ÷ completion time.
    pub completion_rate_mean_bps: Option<f64>,
    /// Those that should have ended by themselves and did not; absent if none has an end of its own.
    pub unfinished: Option<u64>,
    /// What became of the transfers of its flows that are many connections; absent if it has none.
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
