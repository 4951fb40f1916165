//! Controllers that live on marks, and the queues that mark for them.

use crate::common::*;
use jostle_link::Service;
use jostle_metrics::{EventSink, LinkPhase, Summary};
use jostle_registry::ParameterValue;
use jostle_run_spec::{FlowSpec, LinkPart, LinkSpec, Prr, TcpSpec};
use jostle_units::{FULL_PACKET_BYTES, LinkId, Time};

fn settled_link(summary: &Summary) -> &LinkPhase {
    summary.links[0].phases.get("second half").unwrap()
}

/// A link whose queue marks what has waited for more than `threshold_ns`.
fn stepping(rate_bps: u64, limit_packets: u64, threshold_ns: u64) -> LinkSpec {
    LinkSpec {
        queue: part(
            "step_mark",
            json!({"limit": {"packets": limit_packets}, "threshold": threshold_ns}),
        ),
        ..link("bottleneck", rate_bps, 0)
    }
}

fn capable(name: &str, controller: &str, rtt_ns: u64) -> FlowSpec {
    FlowSpec { ecn: true, ..flow(name, controller, rtt_ns) }
}

/// RFC 8511 (ABE), §3.1: "CUBIC connections benefit from beta_{ecn} of 0.85 (cf. beta_{loss} = 0.7),
/// and NewReno connections see improvements with beta_{ecn} in the range 0.7 to 0.85". CoDel keeps a
/// queue of 5 ms, so that on a long path a window that was halved leaves the link idle. On paths much
/// longer than CoDel's interval of 100 ms, Cubic does not gain: a second mark follows before the first
/// one has an effect.
#[test]
fn a_gentler_answer_to_marks_uses_more_of_a_long_path_behind_codel() {
    let measured = |controller: &str, beta_ecn: f64| {
        let mut managed = link("bottleneck", 10 * MBPS, 0);
        managed.queue = part("codel", json!({"limit": {"packets": 1_000}, "ecn": true}));
        let mut only = capable("only", controller, 120 * MS);
        only.controller.parameters.insert("beta_ecn".to_owned(), ParameterValue::Number(beta_ecn));
        let summary = measure(&run(240 * S, vec![managed], vec![only]));
        assert_eq!(settled(&summary, 0).retransmission_ratio, Some(0.0), "marks, no losses");
        (
            settled_link(&summary).utilisation.unwrap(),
            settled_link(&summary).queue_length_mean_bytes,
        )
    };
    // H-TCP leaves 0.8 of its own accord where the queue is short.
    let cases = [
        ("reno", 0.8, 0.1),
        ("cubic", 0.85, 0.05),
        ("compound", 0.8, 0.05),
        ("veno", 0.8, 0.05),
        ("htcp", 0.9, 0.1),
    ];
    for (controller, beta_ecn, gain) in cases {
        let (off, on) = (measured(controller, 0.0), measured(controller, beta_ecn));
        assert!(on.0 > off.0 + gain, "{controller}: {:.3} and {:.3} used", off.0, on.0);
        // 5 ms at 10 Mbit/s are 6,250 bytes.
        assert!(on.1 < 6_250.0, "{controller}: {:.0} bytes wait", on.1);
    }
}

/// Alizadeh et al. 2010 §3.3: with n flows "Q_max = K + N" packets: all that the senders add in the
/// round trip before they hear of their marks.
#[test]
fn dctcp_keeps_the_queue_at_k_and_a_packet_per_flow() {
    let packet = f64::from(FULL_PACKET_BYTES);
    for (n, rtt_ns) in [(1u64, MS), (2, MS), (10, MS), (2, 2 * MS)] {
        // 1 Gbit/s: K = 65 packets, the value of the paper, is 787 µs, and more than the seventh of
        // the BDP (165 packets at most) that keeps the link busy (§3.4).
        let k = 65.0;
        let threshold_ns = (k * packet * 8.0) as u64;
        let flows = (0..n).map(|i| capable(&format!("f{i}"), "dctcp", rtt_ns)).collect();
        let summary =
            measure(&run(4 * S, vec![stepping(1_000 * MBPS, 1_000, threshold_ns)], flows));
        let link = settled_link(&summary);
        let p95 = link.queue_length_p95_bytes / packet;
        // Linux sends and acknowledges in bursts.
        let burst = 2.0 * n as f64 + 4.0;
        assert!(p95 <= k + n as f64 + burst, "{n} flows: {p95} packets");
        assert!(link.utilisation.unwrap() > 0.97, "{n} flows: {:?}", link.utilisation);
        assert_eq!(link.dropped_packets, 0, "{n} flows");
        assert!(link.marked_packets > 100, "{n} flows");
    }
}

#[test]
fn dctcp_flows_share_equally() {
    let flows = (0..4)
        .map(|i| FlowSpec { start_ns: i * 200 * MS, ..capable(&format!("f{i}"), "dctcp", 2 * MS) });
    let spec = run(8 * S, vec![stepping(1_000 * MBPS, 1_000, 800_000)], flows.collect());
    let jain = measure(&spec).fairness.get("second half").unwrap().jain.unwrap();
    assert!(jain > 0.99, "{jain}");
}

/// The receiver's end knows no ECN: Reno, to the packet.
#[test]
fn dctcp_without_ecn_is_reno() {
    let of = |controller| {
        measure(&run(
            10 * S,
            vec![stepping(20 * MBPS, 60, MS)],
            vec![flow("only", controller, 20 * MS)],
        ))
    };
    let (dctcp, reno) = (of("dctcp"), of("reno"));
    assert_eq!(settled_link(&dctcp).marked_packets, 0);
    assert_eq!(settled(&dctcp, 0).goodput_bps, settled(&reno, 0).goodput_bps);
    assert_eq!(settled(&dctcp, 0).retransmitted_packets, settled(&reno, 0).retransmitted_packets);
}

/// Classic ECN halves on what DCTCP takes for a hint: on the same step its queue runs empty.
#[test]
fn a_step_suits_dctcp_and_not_classic_ecn() {
    let utilisation = |controller| {
        let flows = vec![capable("only", controller, 20 * MS)];
        let summary = measure(&run(20 * S, vec![stepping(50 * MBPS, 1_000, 3 * MS)], flows));
        settled_link(&summary).utilisation.unwrap()
    };
    let (dctcp, reno) = (utilisation("dctcp"), utilisation("reno"));
    assert!(dctcp > 0.97 && reno < 0.92, "dctcp {dctcp}, reno {reno}");
}

fn dualpi2() -> LinkPart {
    part("dualpi2", json!({"limit": {"packets": 10_000}}))
}

/// Samples of the queue, once per interval.
#[derive(Default)]
struct Queue(Vec<(Time, u64)>);

impl EventSink for Queue {
    fn link_state(&mut self, now: Time, _link: LinkId, queue_bytes: u64, _service: Service) {
        self.0.push((now, queue_bytes));
    }
}

/// algorithms.md: on a step of 1 ms the 99th percentile of the queue is below 2 ms, at more than
/// 90 % of the rate.
#[test]
fn prague_keeps_the_queue_below_two_milliseconds() {
    for (rate_bps, rtt_ns) in [(50 * MBPS, 10 * MS), (50 * MBPS, 40 * MS), (200 * MBPS, 40 * MS)] {
        let links = vec![stepping(rate_bps, 1_000, MS)];
        let mut spec = run(30 * S, links, vec![capable("only", "prague", rtt_ns)]);
        spec.interval_ns = MS;
        let mut queue = Queue::default();
        jostle_sim::run(&spec, &mut queue, &|| false).unwrap();
        let late = queue.0.iter().filter(|(now, _)| now.as_ns() > 5 * S);
        let mut delays_ms: Vec<_> =
            late.map(|(_, bytes)| *bytes as f64 * 8e3 / rate_bps as f64).collect();
        delays_ms.sort_unstable_by(f64::total_cmp);
        let p99_ms = delays_ms[delays_ms.len() * 99 / 100];
        assert!(p99_ms < 2.0, "{p99_ms} ms at {rate_bps} bit/s, {rtt_ns} ns");
        let utilisation = settled_link(&measure(&spec)).utilisation.unwrap();
        assert!(utilisation > 0.9, "{utilisation} at {rate_bps} bit/s, {rtt_ns} ns");
    }
}

/// RFC 9768 §3.2.2.5: if ACKs are lost, the three bits of the header may have wrapped, and the sender
/// assumes as many marks as possible. The option counts further.
#[test]
fn lost_acks_cost_prague_rate_only_without_the_accecn_option() {
    let goodput = |ack_loss: f64, accecn_option: bool| {
        let forward = stepping(50 * MBPS, 1_000, MS);
        let back = LinkSpec { loss: lost(ack_loss), ..link("back", 50 * MBPS, 1_000_000) };
        let mut only = capable("only", "prague", 20 * MS);
        only.reverse_path = vec![LinkId(1)];
        only.tcp = Some(TcpSpec { prr: Prr::Linux, accecn_option });
        settled(&measure(&run(20 * S, vec![forward, back], vec![only])), 0).goodput_bps / 1e6
    };
    for accecn_option in [true, false] {
        assert!(goodput(0.0, accecn_option) > 45.0, "every ACK arrives");
    }
    let (with, without) = (goodput(0.4, true), goodput(0.4, false));
    assert!(with > 43.0 && without < 0.6 * with, "{with} and {without} Mbit/s");
}

/// A run of Prague beside Cubic through a dual queue.
fn dual(rtt_ns: u64, ecn: bool, seed: u64) -> Summary {
    let bottleneck = LinkSpec { queue: dualpi2(), ..link("bottleneck", 50 * MBPS, 0) };
    let classic = FlowSpec { ecn, ..flow("classic", "cubic", rtt_ns) };
    let mut spec = run(60 * S, vec![bottleneck], vec![capable("l4s", "prague", rtt_ns), classic]);
    spec.seed = seed;
    measure(&spec)
}

/// RFC 9332 §2.1: flows of both kinds get about the same, each with the delay of its own queue. The
/// classic flow's RTT is longer by its queue, so that the L4S flow gets somewhat more.
#[test]
fn prague_and_cubic_share_a_dual_queue() {
    for rtt_ns in [40 * MS, 100 * MS] {
        let mut ratios = 0.0;
        for seed in 1..=4 {
            let summary = dual(rtt_ns, false, seed);
            let (l4s, classic) = (settled(&summary, 0), settled(&summary, 1));
            ratios += l4s.goodput_bps / classic.goodput_bps;
            assert!(settled_link(&summary).utilisation.unwrap() > 0.95);
            let waited_s = [l4s, classic].map(|it| it.rtt_mean_s.unwrap() - rtt_ns as f64 / 1e9);
            assert!(waited_s[0] < 0.002, "L4S waits for {} s", waited_s[0]);
            assert!((0.005..0.025).contains(&waited_s[1]), "classic for {} s", waited_s[1]);
            assert_eq!(l4s.retransmitted_packets, Some(0));
            assert!(classic.retransmitted_packets > Some(0));
        }
        let ratio = ratios / 4.0;
        assert!((0.5..2.0).contains(&ratio), "{ratio} at {rtt_ns} ns");
    }
}

/// The RTT modes of TCP Prague 0.6, two flows of different RTTs in a dual queue: a window settles where
/// what a round adds is what its marks take, so that rates are as a·R'/R², with the increase a per round
/// and the least distance R' of two reductions. For 5 and 25 ms that is 5 : 1 without scaling, 1 : 1
/// with rate, 1.5 : 1 with scalable and 1.67 : 1 with additive; for 5 and 100 ms 20, 4, 1.5 and 4.2.
#[test]
fn rtt_modes_bring_flows_of_different_rtts_together() {
    let ratio = |mode: &str, other_ns| {
        let bottleneck = LinkSpec { queue: dualpi2(), ..link("bottleneck", 50 * MBPS, 0) };
        let flows = [5 * MS, other_ns].map(|rtt_ns| {
            let mut flow = capable("l4s", "prague", rtt_ns);
            let mode = ParameterValue::Text(mode.to_owned());
            flow.controller.parameters.insert("prague_rtt_scaling".to_owned(), mode);
            flow
        });
        let [mut short, mut long] = flows;
        (short.name, long.name) = ("short".to_owned(), "long".to_owned());
        let summary = measure(&run(120 * S, vec![bottleneck], vec![short, long]));
        assert!(settled_link(&summary).utilisation.unwrap() > 0.95, "{mode}");
        settled(&summary, 0).goodput_bps / settled(&summary, 1).goodput_bps
    };
    for (other_ns, modes) in [
        (25 * MS, [("none", 5.0), ("rate", 1.0), ("scalable", 1.5), ("additive", 1.67)]),
        (100 * MS, [("none", 20.0), ("rate", 4.0), ("scalable", 1.5), ("additive", 4.2)]),
    ] {
        let none = ratio("none", other_ns);
        for (mode, expected) in modes {
            let measured = ratio(mode, other_ns);
            // A factor of two either way: marks are answered late, and once for several.
            assert!((0.45..2.2).contains(&(measured / expected)), "{mode}: {measured:.2}");
            assert!(mode == "none" || measured < 0.4 * none, "{mode}: {measured:.2} of {none:.2}");
        }
    }
}

#[test]
fn a_dual_queue_marks_classic_packets_that_can_be_marked() {
    let summary = dual(40 * MS, true, 1);
    assert_eq!(settled_link(&summary).dropped_packets, 0);
    assert!(settled(&summary, 1).goodput_bps > 10e6);
}

/// The receiver's end knows no ECN: Reno, unpaced.
#[test]
fn prague_without_ecn_is_reno() {
    let of = |controller| {
        let links = vec![link("bottleneck", 20 * MBPS, 60_000)];
        measure(&run(10 * S, links, vec![flow("only", controller, 20 * MS)]))
    };
    let (prague, reno) = (of("prague"), of("reno"));
    assert_eq!(settled(&prague, 0).goodput_bps, settled(&reno, 0).goodput_bps);
    assert_eq!(settled(&prague, 0).retransmitted_packets, settled(&reno, 0).retransmitted_packets);
}

/// Prague adds 1500 bytes per round trip whatever its packets are. With a packet of its own size it
/// had 8.6 times the goodput of a flow of 1500 bytes with packets of 9000, and a fifth with 576; now it
/// has 3.8 times and 0.44. A packet of 9000 bytes takes 1.44 ms, so that with `min_qlen_step = 0` every
/// packet behind it would be marked.
#[test]
fn the_packet_size_decides_less_with_prague() {
    for (mtu_bytes, expected) in [(576, 0.35..1.0), (9_000, 1.0..5.0)] {
        let queue = part("dualpi2", json!({"limit": {"packets": 10_000}, "min_qlen_step": 1}));
        let bottleneck = LinkSpec { queue, ..link("bottleneck", 50 * MBPS, 0) };
        let standard = capable("standard", "prague", 25 * MS);
        let other = FlowSpec { mtu_bytes, ..capable("other", "prague", 25 * MS) };
        let summary = measure(&run(60 * S, vec![bottleneck], vec![standard, other]));
        let [standard, other] = [0, 1].map(|flow| settled(&summary, flow).goodput_bps);
        let ratio = other / standard;
        assert!(expected.contains(&ratio), "{mtu_bytes} bytes: {ratio:.2}");
    }
}
