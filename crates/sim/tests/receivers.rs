//! Receivers that do otherwise than Linux's.

use crate::common::*;
use crate::ledger::Ledger;
#[allow(dead_code, reason = "liars are asked for less")]
use crate::random;
use jostle_run_spec::{FlowSpec, LinkSpec, ReceiverSpec, SourceSpec};
use proptest::prelude::*;

const RATE_BPS: u64 = 25 * MBPS;
const RTT_NS: u64 = 40 * MS;

fn bottleneck() -> LinkSpec {
    link("bottleneck", RATE_BPS, bdp_bytes(RATE_BPS, RTT_NS))
}

/// A flow to a receiver of some conduct, which offers two BDPs.
fn to(receiver: Option<ReceiverSpec>, controller: &str) -> FlowSpec {
    let receive_window_bytes = 2 * bdp_bytes(RATE_BPS, RTT_NS);
    FlowSpec { receiver, receive_window_bytes, ..flow("test", controller, RTT_NS) }
}

/// Goodputs of a flow to such a receiver and of an honest one of the same controller beside it, in
/// Mbit/s.
fn beside_honest(receiver: Option<ReceiverSpec>, controller: &str) -> [f64; 2] {
    let honest = FlowSpec { name: "honest".to_owned(), ..to(None, controller) };
    let summary = measure(&run(60 * S, vec![bottleneck()], vec![to(receiver, controller), honest]));
    [0, 1].map(|i| settled(&summary, i).goodput_bps / 1e6)
}

/// Savage et al. 1999 §2.1: where each ACK counts, a sender can be made to open its window in no time. Linux
/// counts segments, whole ones: a transfer is no faster. (In recovery, what acknowledges a part of a segment looks like
/// proof that nothing was lost. After this undo, RACK does not examine the packets again, so a divided transfer can
/// wait for a timeout.)
#[test]
fn divided_and_repeated_acks_make_no_transfer_faster() {
    let takes = |receiver| {
        let source = SourceSpec::Fixed { bytes: 2_000_000.into() };
        let one = FlowSpec { source, ..to(receiver, "reno") };
        measure(&run(10 * S, vec![bottleneck()], vec![one])).flows[0].completion_time_s.unwrap()
    };
    let honest_s = takes(None);
    for lie in
        [ReceiverSpec::AckDivision { pieces: 32 }, ReceiverSpec::DupackSpoofing { copies: 32 }]
    {
        let lied_s = takes(Some(lie.clone()));
        assert!(lied_s > 0.99 * honest_s, "{lie:?}: {lied_s} s for {honest_s} s");
    }
}

/// What is hidden is not repaired, and what does not slow down takes what others leave: the honest flow
/// has a small part of what it has beside an honest one.
#[test]
fn optimistic_acks_take_the_link_from_others() {
    for controller in ["reno", "cubic"] {
        let fair = beside_honest(None, controller);
        let lied_to = beside_honest(Some(ReceiverSpec::OptimisticAcking { lead: 0.5 }), controller);
        assert!(lied_to[1] < 0.5 * fair[1], "{controller}: {fair:?}, {lied_to:?}");
        assert!(lied_to[0] > 1.5 * fair[0], "{controller}: {fair:?}, {lied_to:?}");
    }
}

/// BBR keeps twice the product of bandwidth and least RTT in flight: an RTT that is half of the path's
/// makes that less, and the lie brings nothing.
#[test]
fn optimistic_acks_gain_nothing_of_bbr() {
    let fair = beside_honest(None, "bbr");
    let lied_to = beside_honest(Some(ReceiverSpec::OptimisticAcking { lead: 0.5 }), "bbr");
    assert!(lied_to[1] > fair[1], "{fair:?}, {lied_to:?}");
}

#[test]
fn what_an_optimist_missed_is_never_sent_again() {
    let receiver = Some(ReceiverSpec::OptimisticAcking { lead: 0.0 });
    let summary = measure(&run(30 * S, vec![bottleneck()], vec![to(receiver, "cubic")]));
    let phase = settled(&summary, 0);
    assert_eq!(phase.retransmission_ratio, Some(0.0));
    assert!(summary.links[0].phases.get("second half").unwrap().dropped_packets > 1_000);
}

/// RFC 3168 §6.1.3 is the receiver's to keep: beside a flow that answers to marks, one whose receiver
/// hides them answers to losses alone.
#[test]
fn hidden_marks_leave_a_sender_to_losses() {
    let goodputs = |receiver| {
        let mut managed = bottleneck();
        managed.queue = part("codel", json!({"limit": {"packets": 1_000}, "ecn": true}));
        let capable = |receiver, name: &str| {
            let name = name.to_owned();
            FlowSpec { name, ecn: true, ..to(receiver, "cubic") }
        };
        let flows = vec![capable(receiver, "test"), capable(None, "honest")];
        let summary = measure(&run(60 * S, vec![managed], flows));
        [0, 1].map(|i| settled(&summary, i).goodput_bps / 1e6)
    };
    let (fair, hidden) = (goodputs(None), goodputs(Some(ReceiverSpec::HiddenEcnMarks)));
    assert!((fair[0] / fair[1] - 1.0).abs() < 0.3, "{fair:?}");
    assert!(hidden[1] < 0.1 * fair[1], "{fair:?}, {hidden:?}");
}

/// A flow of Cubic to a receiver of rLEDBAT, in a run of 60 s.
fn background() -> FlowSpec {
    let rledbat = ReceiverSpec::Rledbat { target_ns: 60 * MS, constant: 1.0, slowdowns: true };
    FlowSpec { receiver: Some(rledbat), ..flow("background", "cubic", RTT_NS) }
}

/// A link whose queue holds 200 ms.
fn deep() -> LinkSpec {
    link("bottleneck", RATE_BPS, RATE_BPS / 8 / 5)
}

/// RFC 9840, abstract: "the execution of a less-than-best-effort congestion control algorithm for TCP at the receiver
/// end". Alone it uses the link, and keeps the queue below its target.
#[test]
fn rledbat_uses_a_link_that_nobody_else_does() {
    let summary = measure(&run(60 * S, vec![deep()], vec![background()]));
    let link = summary.links[0].phases.get("second half").unwrap();
    assert!(link.utilisation.unwrap() > 0.85, "{:?} used", link.utilisation);
    let queue_ms = link.queue_length_mean_bytes * 8e3 / RATE_BPS as f64;
    assert!(queue_ms < 60.0, "{queue_ms:.1} ms wait");
    assert_eq!(settled(&summary, 0).retransmission_ratio, Some(0.0));
}

/// Beside a flow of Cubic, which fills the queue beyond the target, it keeps little.
#[test]
fn rledbat_yields_to_cubic() {
    let late = FlowSpec { start_ns: 10 * S, ..flow("foreground", "cubic", RTT_NS) };
    let summary = measure(&run(60 * S, vec![deep()], vec![background(), late]));
    let [left, taken] = [0, 1].map(|i| settled(&summary, i).goodput_bps / 1e6);
    assert!(taken > 0.9 * (left + taken), "{left:.2} beside {taken:.2} Mbit/s");
}

fn any_lie() -> impl Strategy<Value = ReceiverSpec> {
    prop_oneof![
        (2..100u32).prop_map(|pieces| ReceiverSpec::AckDivision { pieces }),
        (1..100u32).prop_map(|copies| ReceiverSpec::DupackSpoofing { copies }),
        (0.0..1.0).prop_map(|lead| ReceiverSpec::OptimisticAcking { lead }),
        Just(ReceiverSpec::HiddenEcnMarks),
        (MS..200 * MS, any::<bool>()).prop_map(|(target_ns, slowdowns)| {
            ReceiverSpec::Rledbat { target_ns, constant: 1.0, slowdowns }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever receivers make of ACKs, no packet vanishes, no payload comes twice, and nobody panics.
    #[test]
    fn the_books_balance_with_liars(
        case in random::any_run(false),
        lies in prop::collection::vec(any_lie(), 4),
    ) {
        let mut spec = case.0;
        for (flow, lie) in spec.flows.iter_mut().zip(lies) {
            let messages = matches!(flow.source, SourceSpec::RequestResponse { .. });
            let fits = match lie {
                ReceiverSpec::HiddenEcnMarks => flow.ecn,
                ReceiverSpec::OptimisticAcking { .. } => !messages,
                _ => true,
            };
            if fits && matches!(lie, ReceiverSpec::Rledbat { .. }) {
                flow.memory = None;
            }
            if fits && matches!(lie, ReceiverSpec::OptimisticAcking { .. }) {
                // Nothing but the window bounds what is sent and lost.
                (flow.memory, flow.reader) = (None, None);
                let window_bytes = flow.receive_window_bytes.min(100_000);
                flow.receive_window_bytes = window_bytes.max(u64::from(flow.mtu_bytes));
                let first_bytes = flow.initial_receive_window_bytes;
                flow.initial_receive_window_bytes = first_bytes.min(flow.receive_window_bytes);
            }
            flow.receiver = fits.then_some(lie);
        }
        if let Err(error) = spec.validate() {
            // A receiver that divides ACKs may let a flow send more than a run may hold.
            let text = error.to_string();
            prop_assume!(!text.contains("packets at once"));
            prop_assert!(false, "{text}");
        }
        let mut ledger = Ledger::new(&spec);
        jostle_sim::run(&spec, &mut ledger, &|| false)
            .map_err(|e| TestCaseError::fail(e.to_string()))?;
        ledger.close(false).map_err(TestCaseError::fail)?;
    }
}
