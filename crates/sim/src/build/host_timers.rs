//! Timers of a flow's hosts.

use jostle_congestion::transport::HostTimers;
use jostle_run_spec::FlowSpec;
use jostle_units::Span;

/// Returns the timers of a flow's hosts.
pub(super) fn host_timers(spec: &FlowSpec) -> HostTimers {
    spec.timers.map_or(HostTimers::EXACT, |timers| HostTimers {
        tick: timers.hz.map(|hz| Span::from_ns(1_000_000_000 / u64::from(hz))),
        slack: Span::from_ns(timers.slack_ns),
        resolution: Span::from_ns(timers.resolution_ns),
    })
}
