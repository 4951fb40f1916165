//! Shares of the time by what limited the sender, computed by hand.

use crate::common::{MS, S, dumbbell};
use jostle_link::Service;
use jostle_metrics::{EventSink, FlowPhase, Recorder};
use jostle_run_spec::RunSpec;
use jostle_units::SendLimit::{
    Application, Cwnd, CwndOrPacing, Other, Pacing, ReceiveWindow, SendBuffer,
};
use jostle_units::{ConnectionId, SendLimit, Span, Time};

fn at(ms: u64) -> Time {
    Time::from_ns(ms * MS)
}

/// Records `changes` of the first flow's limit, which stops after `stop_ms`, and returns its
/// measures in a phase: `overall` of 10 s, `startup` until 4 s, `middle` from 2 to 6 s.
fn measured(stop_ms: Option<u64>, changes: &[(u64, SendLimit)], phase: &str) -> FlowPhase {
    let mut json = dumbbell();
    if let Some(ms) = stop_ms {
        json["flows"][0]["stop_ns"] = (ms * MS).into();
    }
    let mut recorder = Recorder::new(&RunSpec::from_json(&json.to_string()).unwrap());
    let mut boundaries = [0, 2, 4, 6, 10].iter().map(|s| Time::from_ns(s * S)).peekable();
    for (ms, limit) in changes {
        while let Some(end) = boundaries.next_if(|end| *end <= at(*ms)) {
            recorder.phase_boundary(end, &[Service::default()]);
        }
        recorder.send_limit(at(*ms), ConnectionId(0), *limit);
    }
    boundaries.for_each(|end| recorder.phase_boundary(end, &[Service::default()]));
    recorder.finish().summary.flows[0].phases.get(phase).unwrap().clone()
}

/// Shares of application, cwnd, receive window, send buffer and pacing.
fn shares(it: &FlowPhase) -> [Option<f64>; 5] {
    [
        it.application_limited,
        it.cwnd_limited,
        it.receive_window_limited,
        it.send_buffer_limited,
        it.pacing_limited,
    ]
}

#[test]
fn the_time_of_each_phase_is_divided_at_its_bounds() {
    let changes = [(1_000, Cwnd), (3_000, ReceiveWindow), (5_000, Pacing), (9_000, Application)];
    // The first second is that of the handshake: 9 s count.
    let overall = measured(None, &changes, "overall");
    let of = |share: f64| Some(share / 9.0);
    assert_eq!(shares(&overall), [of(1.0), of(2.0), of(2.0), Some(0.0), of(4.0)]);
    assert_eq!(overall.cwnd_or_pacing_limited, of(6.0));
    let middle = measured(None, &changes, "middle");
    let expected = [Some(0.0), Some(0.25), Some(0.5), Some(0.0), Some(0.25)];
    assert_eq!(shares(&middle), expected);
}

#[test]
fn time_after_the_end_of_a_flow_does_not_count() {
    let changes = [(0, Cwnd), (1_000, SendBuffer)];
    let overall = measured(Some(2_000), &changes, "overall");
    assert_eq!(shares(&overall), [Some(0.0), Some(0.5), Some(0.0), Some(0.5), Some(0.0)]);
    let later = measured(Some(2_000), &changes, "middle");
    assert_eq!(shares(&later), [None; 5]);
}

#[test]
fn what_is_not_told_apart_is_absent() {
    let kernel = measured(None, &[(0, CwndOrPacing), (5_000, ReceiveWindow)], "overall");
    assert_eq!(shares(&kernel), [Some(0.0), None, Some(0.5), Some(0.0), None]);
    assert_eq!(kernel.cwnd_or_pacing_limited, Some(0.5));
    let capture = measured(None, &[(0, Other), (5_000, Application)], "overall");
    assert_eq!(shares(&capture), [Some(0.5), None, Some(0.0), None, None]);
    assert_eq!(capture.cwnd_or_pacing_limited, None);
    assert_eq!(shares(&measured(None, &[], "overall")), [None; 5]);
}

#[test]
fn sums_count_in_the_phase_in_which_they_are_reported() {
    let mut recorder = Recorder::new(&RunSpec::from_json(&dumbbell().to_string()).unwrap());
    recorder.phase_boundary(Time::ZERO, &[Service::default()]);
    recorder.limited_for(ConnectionId(0), Application, Span::from_ms(500));
    recorder.limited_for(ConnectionId(0), ReceiveWindow, Span::from_ms(1_500));
    let record = recorder.finish();
    let flow = &record.summary.flows[0].phases;
    assert_eq!(flow.get("startup").unwrap().receive_window_limited, Some(0.75));
    assert_eq!(flow.get("middle").unwrap().receive_window_limited, None);
}
