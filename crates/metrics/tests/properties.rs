//! Random runs, measured by the recorder and from the list of all events.

use crate::common;
use jostle_link::DropReason;
use jostle_metrics::{AckEvent, EventSink, FlowState, Recorder, RunRecord};
use jostle_run_spec::{PhaseSpec, RunSpec};
use jostle_units::{ConnectionId, FlowId, LinkId, Span, Time};
use proptest::prelude::*;
use serde_json::json;

const FLOWS: u32 = 2;
const DURATION_NS: u64 = 1_000_000;
/// Bytes that the link could have carried per nanosecond.
const OFFERED: f64 = 2.0;

#[derive(Clone, Copy, Debug)]
enum Action {
    Sent { packets: u32, retransmission: bool },
    Received,
    Delivered(u64),
    Acked { rtt_ns: Option<u64>, cwnd_bytes: u64 },
    Queue(u64),
    LinkSent,
    Dropped,
    Marked,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    ns: u64,
    flow: u32,
    action: Action,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        (1u32..45, any::<bool>())
            .prop_map(|(packets, retransmission)| Action::Sent { packets, retransmission }),
        Just(Action::Received),
        (1u64..100_000).prop_map(Action::Delivered),
        (prop::option::of(1u64..4_000_000_000), 1u64..80_000_000)
            .prop_map(|(rtt_ns, cwnd_bytes)| Action::Acked { rtt_ns, cwnd_bytes }),
        (0u64..36_000_000).prop_map(Action::Queue),
        Just(Action::LinkSent),
        Just(Action::Dropped),
        Just(Action::Marked),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (0..DURATION_NS, 0..FLOWS, action()).prop_map(|(ns, flow, action)| Event {
        ns,
        flow,
        action,
    });
    prop::collection::vec(event, 0..200).prop_map(|mut events| {
        events.sort_by_key(|event| event.ns);
        events
    })
}

fn spec() -> impl Strategy<Value = RunSpec> {
    let phase = (0..DURATION_NS, 1..=DURATION_NS)
        .prop_filter("empty", |(a, b)| a != b)
        .prop_map(|(a, b)| (a.min(b), a.max(b)));
    (prop::collection::vec(phase, 0..4), 50_000u64..400_000).prop_map(|(phases, interval_ns)| {
        let mut spec = common::dumbbell();
        spec["duration_ns"] = json!(DURATION_NS);
        spec["interval_ns"] = json!(interval_ns);
        let mut list = vec![json!({"name": "overall", "from_ns": 0, "to_ns": DURATION_NS})];
        for (i, (from_ns, to_ns)) in phases.into_iter().enumerate() {
            list.push(json!({"name": format!("phase {i}"), "from_ns": from_ns, "to_ns": to_ns}));
        }
        spec["phases"] = json!(list);
        RunSpec::from_json(&spec.to_string()).unwrap()
    })
}

/// Tells a recorder all events and observations in order, as a simulator does.
fn record(spec: &RunSpec, events: &[Event]) -> RunRecord {
    let mut recorder = Recorder::new(spec);
    let mut samples: Vec<u64> =
        (1..).map(|i| i * spec.interval_ns).take_while(|ns| *ns < DURATION_NS).collect();
    samples.push(DURATION_NS);
    let mut bounds: Vec<u64> =
        spec.phases.iter().flat_map(|phase| [phase.from_ns, phase.to_ns]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut observations: Vec<u64> = samples.iter().chain(&bounds).copied().collect();
    observations.sort_unstable();
    observations.dedup();

    let mut rest = events;
    for now_ns in observations {
        let due = rest.partition_point(|event| event.ns < now_ns);
        rest[..due].iter().for_each(|event| tell(&mut recorder, event));
        rest = &rest[due..];
        observe(&mut recorder, now_ns, samples.contains(&now_ns), bounds.contains(&now_ns));
    }
    recorder.finish()
}

fn tell(recorder: &mut Recorder, event: &Event) {
    let (now, flow) = (Time::from_ns(event.ns), ConnectionId(event.flow));
    match event.action {
        Action::Sent { packets, retransmission } => {
            recorder.sent(now, flow, packets, u64::from(packets) * 1_514, retransmission);
        }
        Action::Received => recorder.received(now, flow, 1_514),
        Action::Delivered(bytes) => recorder.delivered(now, flow, bytes),
        Action::Acked { rtt_ns, cwnd_bytes } => recorder.acked(
            now,
            flow,
            &AckEvent {
                rtt: rtt_ns.map(Span::from_ns),
                cwnd_bytes,
                in_flight_bytes: 0,
                acked_bytes: 0,
                lost_packets: 0,
            },
        ),
        Action::Queue(bytes) => {
            recorder.queue_changed(now, LinkId(0), bytes, bytes.div_ceil(1_514))
        }
        Action::LinkSent => recorder.link_sent(now, now, LinkId(0), 1_514, Span::ZERO),
        Action::Dropped => recorder.dropped(now, LinkId(0), flow, DropReason::Overflow, 0),
        Action::Marked => recorder.marked(now, LinkId(0), flow, DropReason::Red),
    }
}

fn observe(recorder: &mut Recorder, now_ns: u64, sample: bool, boundary: bool) {
    let now = Time::from_ns(now_ns);
    let offered_bytes = now_ns as f64 * OFFERED;
    if sample {
        let state = FlowState {
            srtt: Span::ZERO,
            cwnd_bytes: 1,
            ssthresh_bytes: None,
            in_flight_bytes: 0,
            pacing_rate: None,
            mode: "avoidance",
        };
        (0..FLOWS).for_each(|flow| recorder.flow_state(now, FlowId(flow), &state));
        recorder.link_state(now, LinkId(0), 0, offered_bytes.into());
    }
    if boundary {
        recorder.phase_boundary(now, &[offered_bytes.into()]);
    }
}

/// Sum of `value` over the events of a flow in a phase.
fn sum(events: &[Event], flow: u32, phase: &PhaseSpec, value: fn(Action) -> u64) -> u64 {
    let inside = |event: &&Event| (phase.from_ns..phase.to_ns).contains(&event.ns);
    events.iter().filter(inside).filter(|e| e.flow == flow).map(|e| value(e.action)).sum()
}

/// Mean over the part of a phase that follows the first change; `initial`: the value before it.
fn mean_over_time(
    changes: impl Iterator<Item = (u64, u64)>,
    initial: Option<u64>,
    phase: &PhaseSpec,
) -> Option<f64> {
    let mut steps: Vec<(u64, u64)> = initial.map(|value| (0, value)).into_iter().collect();
    steps.extend(changes);
    let ends = steps.iter().skip(1).map(|step| step.0).chain([DURATION_NS]);
    let (mut integral, mut length) = (0u128, 0u64);
    for (&(from, value), to) in steps.iter().zip(ends) {
        let held = to.min(phase.to_ns).saturating_sub(from.max(phase.from_ns));
        integral += u128::from(value) * u128::from(held);
        length += held;
    }
    (length > 0).then(|| integral as f64 / length as f64)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

proptest! {
    #[test]
    fn flows_are_measured_as_from_the_list_of_events(spec in spec(), events in events()) {
        let record = record(&spec, &events);
        for (flow, summary) in (0..).zip(&record.summary.flows) {
            for phase in &spec.phases {
                let found = summary.phases.get(&phase.name).unwrap();
                let total = |value| sum(&events, flow, phase, value);
                let per_s = |bytes: u64| bytes as f64 * 8e9 / (phase.to_ns - phase.from_ns) as f64;
                let sent = total(|action| match action {
                    Action::Sent { packets, .. } => u64::from(packets),
                    _ => 0,
                });
                let again = total(|action| match action {
                    Action::Sent { packets, retransmission: true } => u64::from(packets),
                    _ => 0,
                });
                let received = total(|action| u64::from(matches!(action, Action::Received)));
                let delivered = total(|action| match action {
                    Action::Delivered(bytes) => bytes,
                    _ => 0,
                });
                prop_assert_eq!(found.sent_packets, sent);
                prop_assert_eq!(found.retransmitted_packets, Some(again));
                prop_assert_eq!(found.sending_rate_bps, per_s(sent * 1_514));
                prop_assert_eq!(found.throughput_bps, per_s(received * 1_514));
                prop_assert_eq!(found.goodput_bps, per_s(delivered));

                let changes = events.iter().filter(|e| e.flow == flow).filter_map(|e| {
                    match e.action {
                        Action::Acked { cwnd_bytes, .. } => Some((e.ns, cwnd_bytes)),
                        _ => None,
                    }
                });
                prop_assert_eq!(found.cwnd_mean_bytes, mean_over_time(changes, None, phase));
            }
        }
    }

    #[test]
    fn round_trips_are_measured_as_from_the_list_of_events(spec in spec(), events in events()) {
        let record = record(&spec, &events);
        for (flow, summary) in (0..).zip(&record.summary.flows) {
            for phase in &spec.phases {
                let found = summary.phases.get(&phase.name).unwrap();
                let inside = |e: &&Event| {
                    e.flow == flow && (phase.from_ns..phase.to_ns).contains(&e.ns)
                };
                let mut rtts_s: Vec<f64> = events.iter().filter(inside).filter_map(|e| {
                    match e.action {
                        Action::Acked { rtt_ns, .. } => rtt_ns.map(|ns| ns as f64 / 1e9),
                        _ => None,
                    }
                }).collect();
                rtts_s.sort_by(f64::total_cmp);
                let n = rtts_s.len() as f64;
                if rtts_s.is_empty() {
                    prop_assert!(found.rtt_mean_s.is_none() && found.rtt_min_s.is_none());
                    prop_assert!(found.rtt_p50_s.is_none() && found.power_bits.is_none());
                    continue;
                }
                let mean_s = rtts_s.iter().sum::<f64>() / n;
                prop_assert!(close(found.rtt_mean_s.unwrap(), mean_s));
                prop_assert_eq!(found.rtt_min_s.unwrap(), rtts_s[0]);
                prop_assert_eq!(found.rtt_sd_s.is_some(), rtts_s.len() > 1);
                if let Some(sd_s) = found.rtt_sd_s {
                    let squares: f64 = rtts_s.iter().map(|rtt_s| (rtt_s - mean_s).powi(2)).sum();
                    prop_assert!(close(sd_s, (squares / (n - 1.0)).sqrt()));
                }
                for (p, quantile_s) in [(0.5, found.rtt_p50_s), (0.95, found.rtt_p95_s)] {
                    let rank = p * (n - 1.0);
                    let low = rtts_s[rank.floor() as usize];
                    let high = rtts_s[rank.ceil() as usize];
                    let exact_s = low + (high - low) * rank.fract();
                    let error_s = (quantile_s.unwrap() - exact_s).abs();
                    prop_assert!(error_s <= exact_s / 64.0, "p{}: {} off", p, error_s);
                }
            }
        }
    }

    #[test]
    fn links_are_measured_as_from_the_list_of_events(spec in spec(), events in events()) {
        let record = record(&spec, &events);
        for phase in &spec.phases {
            let found = record.summary.links[0].phases.get(&phase.name).unwrap();
            let count = |wanted: fn(Action) -> u64| {
                (0..FLOWS).map(|flow| sum(&events, flow, phase, wanted)).sum::<u64>()
            };
            let sent = count(|action| u64::from(matches!(action, Action::LinkSent)));
            let offered_bytes = (phase.to_ns - phase.from_ns) as f64 * OFFERED;
            prop_assert!(close(found.utilisation.unwrap(), sent as f64 * 1_514.0 / offered_bytes));
            prop_assert_eq!(
                found.dropped_packets,
                count(|action| u64::from(matches!(action, Action::Dropped)))
            );
            prop_assert_eq!(
                found.marked_packets,
                count(|action| u64::from(matches!(action, Action::Marked)))
            );
            let changes = events.iter().filter_map(|e| match e.action {
                Action::Queue(bytes) => Some((e.ns, bytes)),
                _ => None,
            });
            let mean_bytes = mean_over_time(changes, Some(0), phase);
            prop_assert_eq!(Some(found.queue_length_mean_bytes), mean_bytes);
        }
    }

    #[test]
    fn the_bins_of_the_series_add_up_to_the_run(spec in spec(), events in events()) {
        let record = record(&spec, &events);
        let (table, links) = (&record.flows, &record.links);
        let mut from_s = 0.0;
        let mut length_s = Vec::new();
        for &time_s in &links.time_s {
            length_s.push(time_s - from_s);
            from_s = time_s;
        }
        for (flow, summary) in (0..FLOWS).zip(&record.summary.flows) {
            let overall = summary.phases.get("overall").unwrap();
            let rows: Vec<usize> = (0..table.flow.len()).filter(|i| table.flow[*i] == flow).collect();
            prop_assert_eq!(rows.len(), length_s.len());
            let total = |column: &[u32]| rows.iter().map(|i| u64::from(column[*i])).sum::<u64>();
            prop_assert_eq!(total(&table.sent_packets), overall.sent_packets);
            prop_assert_eq!(Some(total(&table.retransmitted_packets)), overall.retransmitted_packets);
            let bits = |column: &[f64]| {
                rows.iter().zip(&length_s).map(|(i, s)| column[*i] * s).sum::<f64>()
            };
            let duration_s = DURATION_NS as f64 / 1e9;
            for (column, rate_bps) in [
                (&table.sending_rate_bps, overall.sending_rate_bps),
                (&table.throughput_bps, overall.throughput_bps),
                (&table.goodput_bps, overall.goodput_bps),
            ] {
                prop_assert!(close(bits(column), rate_bps * duration_s));
            }
        }
        let overall = record.summary.links[0].phases.get("overall").unwrap();
        let total = |columns: &[Vec<u32>]| {
            columns.iter().flatten().map(|count| u64::from(*count)).sum::<u64>()
        };
        prop_assert_eq!(total(&links.dropped), overall.dropped_packets);
        prop_assert_eq!(total(&links.marked), overall.marked_packets);
        let sent: u32 = links.sent_packets.iter().sum();
        let sent_bytes = overall.utilisation.unwrap() * DURATION_NS as f64 * OFFERED;
        prop_assert!(close(f64::from(sent) * 1_514.0, sent_bytes));
        let queue: f64 = links.queue_length_mean_bytes.iter().zip(&length_s).map(|(q, s)| q * s).sum();
        prop_assert!(close(queue, overall.queue_length_mean_bytes * DURATION_NS as f64 / 1e9));
    }

    #[test]
    fn a_run_told_twice_is_the_same_to_the_last_bit(spec in spec(), events in events()) {
        let (one, two) = (record(&spec, &events), record(&spec, &events));
        // NaN differs from itself; its text does not.
        prop_assert_eq!(format!("{one:?}"), format!("{two:?}"));
        prop_assert_eq!(
            serde_json::to_string(&one.summary).unwrap(),
            serde_json::to_string(&two.summary).unwrap()
        );
    }
}
