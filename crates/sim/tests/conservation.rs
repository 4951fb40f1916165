//! The books of random runs balance: packets neither appear nor vanish, data arrive once, queues
//! keep their limits, time goes forward.

use crate::common::{MBPS, MS, S, bdp_bytes, flow, link, lost, run};
use crate::ledger::Ledger;
use crate::random;
use jostle_link::DropReason;
use jostle_metrics::{AckEvent, EndpointRole, EventSink, FlowState, SegmentHeader};
use jostle_run_spec::{LinkSpec, RunSpec, SourceSpec};
use jostle_units::{ConnectionId, FlowId, LinkId, Span, Time};
use proptest::prelude::*;

/// Time after which nothing that was sent is on its way any more: longer than any queue of the
/// random runs takes to drain.
const DRAINED_AFTER: Span = Span::from_secs(100);

/// Runs `spec` and checks its books.
fn audit(spec: &RunSpec) -> Result<Ledger, String> {
    spec.validate().map_err(|e| e.to_string())?;
    let mut ledger = Ledger::new(spec);
    let counts = jostle_sim::run(spec, &mut ledger, &|| false).map_err(|e| e.to_string())?;
    let drained = ledger.last_sent() + DRAINED_AFTER < Time::from_ns(spec.duration_ns);
    let ledger = ledger.close(drained)?;
    // No packet costs more than a few events, and no flow wakes up without end.
    let seconds = spec.duration_ns / S + 1;
    let most = 12 * (ledger.sent_packets() + counts.link_packets) + 200 * 4 * seconds;
    if counts.events > most {
        return Err(format!("{} events for {} packets", counts.events, ledger.sent_packets()));
    }
    Ok(ledger)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_books_balance_at_every_moment(case in random::any_run(false)) {
        audit(&case.0).map_err(TestCaseError::fail)?;
    }

    /// Given time, whatever was sent has arrived or was dropped, and all that was written is
    /// delivered.
    #[test]
    fn the_books_balance_in_the_end(case in random::any_run(true)) {
        let ledger = audit(&case.0).map_err(TestCaseError::fail)?;
        let clean =
            |it: &LinkSpec| it.loss.is_none() && it.outages.is_none() && it.faults.is_none();
        let complete = ledger.all_completed() || !case.0.links.iter().all(clean);
        prop_assert!(complete, "not all is delivered: {ledger:?}");
        // Losses may make it take longer, but nobody gives up.
        let silent = ledger.silent_since(Time::from_ns(case.0.duration_ns));
        prop_assert!(silent.is_none(), "waits for nothing: {silent:?}: {ledger:?}");
    }
}

/// A sink that lies about one thing to the ledger behind it.
struct Lying {
    ledger: Ledger,
    lie: Lie,
    told: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    Nothing,
    HiddenDrop,
    HiddenSending,
    DoubledArrival,
    DoubledDelivery,
    DoubledCompletion,
    LostDelivery,
    TimeGoesBack,
    QueueOverflows,
    NoWindow,
    TooMuchInFlight,
}

impl Lying {
    /// Whether this is the moment for the lie: the first one after a second.
    fn lies(&mut self, now: Time, lie: Lie) -> bool {
        let now_it_is = self.lie == lie && !self.told && now > Time::from_ns(S);
        self.told |= now_it_is;
        now_it_is
    }
}

impl EventSink for Lying {
    fn wants_segments(&self) -> bool {
        true
    }
    fn segment(&mut self, now: Time, it: ConnectionId, end: EndpointRole, header: &SegmentHeader) {
        self.ledger.segment(now, it, end, header);
    }
    fn sent(&mut self, now: Time, flow: ConnectionId, packets: u32, wire_bytes: u64, again: bool) {
        if !self.lies(now, Lie::HiddenSending) {
            self.ledger.sent(now, flow, packets, wire_bytes, again);
        }
    }
    fn received(&mut self, now: Time, flow: ConnectionId, wire_bytes: u32) {
        if self.lies(now, Lie::DoubledArrival) {
            self.ledger.received(now, flow, wire_bytes);
        }
        let back = Span::from_us(u64::from(self.lies(now, Lie::TimeGoesBack)) * 100_000);
        self.ledger.received(now - back, flow, wire_bytes);
    }
    fn delivered(&mut self, now: Time, flow: ConnectionId, payload_bytes: u64) {
        if self.lies(now, Lie::DoubledDelivery) {
            self.ledger.delivered(now, flow, payload_bytes);
        }
        if !self.lies(now, Lie::LostDelivery) {
            self.ledger.delivered(now, flow, payload_bytes);
        }
    }
    fn acked(&mut self, now: Time, flow: ConnectionId, row: &AckEvent) {
        // For the rest of the run.
        self.told |= self.lies(now, Lie::TooMuchInFlight);
        let shrunk = self.lie == Lie::TooMuchInFlight && self.told;
        let cwnd_bytes = if shrunk { 1_448 } else { row.cwnd_bytes };
        self.ledger.acked(now, flow, &AckEvent { cwnd_bytes, ..*row });
    }
    fn flow_completed(&mut self, now: Time, flow: ConnectionId, after: Span) {
        if self.lies(now, Lie::DoubledCompletion) {
            self.ledger.flow_completed(now, flow, after);
        }
        self.ledger.flow_completed(now, flow, after);
    }
    fn queue_changed(&mut self, now: Time, link: LinkId, bytes: u64, packets: u64) {
        let more = if self.lies(now, Lie::QueueOverflows) { 1 << 20 } else { 0 };
        self.ledger.queue_changed(now, link, bytes + more, packets);
    }
    fn dropped(
        &mut self,
        now: Time,
        link: LinkId,
        flow: ConnectionId,
        reason: DropReason,
        queued_bytes: u32,
    ) {
        if !self.lies(now, Lie::HiddenDrop) {
            self.ledger.dropped(now, link, flow, reason, queued_bytes);
        }
    }
    fn flow_state(&mut self, now: Time, flow: FlowId, state: &FlowState) {
        let broken = self.lies(now, Lie::NoWindow);
        let cwnd_bytes = if broken { 0 } else { state.cwnd_bytes };
        self.ledger.flow_state(now, flow, &FlowState { cwnd_bytes, ..*state });
    }
}

/// 10 MB over a lossy link: 12 s.
fn lossy_download() -> RunSpec {
    let mut bottleneck = link("bottleneck", 8 * MBPS, bdp_bytes(8 * MBPS, 40 * MS));
    bottleneck.loss = lost(0.002);
    let mut download = flow("download", "cubic", 40 * MS);
    download.source = SourceSpec::Fixed { bytes: 10_000_000.into() };
    run(200 * S, vec![bottleneck], vec![download])
}

fn close(lie: Lie) -> Result<Ledger, String> {
    let spec = lossy_download();
    let mut sink = Lying { ledger: Ledger::new(&spec), lie, told: false };
    jostle_sim::run(&spec, &mut sink, &|| false).unwrap();
    assert!(sink.told || lie == Lie::Nothing, "no occasion for {lie:?}");
    sink.ledger.close(true)
}

#[test]
fn honest_books_are_accepted() {
    let ledger = close(Lie::Nothing).unwrap();
    assert!(ledger.all_completed());
    assert!(ledger.dropped_packets() > 10);
}

#[test]
fn every_lie_is_found() {
    for lie in [
        Lie::HiddenDrop,
        Lie::HiddenSending,
        Lie::DoubledArrival,
        Lie::DoubledDelivery,
        Lie::DoubledCompletion,
        Lie::LostDelivery,
        Lie::TimeGoesBack,
        Lie::QueueOverflows,
        Lie::NoWindow,
        Lie::TooMuchInFlight,
    ] {
        assert!(close(lie).is_err(), "{lie:?} passed");
    }
}

/// A flow that is stopped has not completed, however soon its last ACK comes.
#[test]
fn a_stopped_download_is_not_reported_as_complete() {
    let mut spec = lossy_download();
    spec.flows[0].stop_ns = Some(3 * S);
    let ledger = audit(&spec).unwrap();
    assert!(!ledger.all_completed());
    // Stopped after everything was sent, it has.
    spec.flows[0].source = SourceSpec::Fixed { bytes: 100_000.into() };
    assert!(audit(&spec).unwrap().all_completed());
}
