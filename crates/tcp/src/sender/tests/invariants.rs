//! Whatever a path does, a sender's counts are those of its segments, and it never waits for nothing.

use std::cell::Cell;
use std::ops::RangeInclusive;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

/// What a path is like for a while.
#[derive(Clone, Debug)]
struct Episode {
    lasts_ms: u64,
    /// Longer by far than before: timeouts that were needless.
    rtt_ms: u64,
    /// What is sent now may overtake what is on its way.
    overtakes: bool,
    /// Of the segments from the next new one on, these are lost,
    lost: RangeInclusive<u32>,
    /// so many times each.
    times: usize,
}

fn episode() -> impl Strategy<Value = Episode> {
    let rtt_ms = prop_oneof![3 => 20..80_u64, 1 => 200..2_000_u64];
    (5..400_u64, rtt_ms, any::<bool>(), (0..60_u32, 0..100_u32), 0..4_usize).prop_map(
        |(lasts_ms, rtt_ms, overtakes, (from, more), times)| Episode {
            lasts_ms,
            rtt_ms,
            overtakes,
            lost: from..=from + more,
            times,
        },
    )
}

/// What runs have come through: recoveries, timeouts, undone reductions.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    recoveries: u32,
    timeouts: u32,
    undone: u32,
}

/// Lets a millisecond pass.
fn step(path: &mut Loopback, seen: &Cell<Seen>) -> Result<(), TestCaseError> {
    let (state, ssthresh) = (path.script.state(), path.script.sender.ssthresh);
    path.until(path.script.now + Span::from_ms(1));
    let sender = &path.script.sender;
    prop_assert!(sender.board.adds_up(), "{:?}", sender.board.counts());
    sender.check();
    let mut now_seen = seen.get();
    if sender.recovery.state() != state {
        now_seen.recoveries += u32::from(sender.recovery.state() == RecoveryState::Recovery);
        now_seen.timeouts += u32::from(sender.recovery.state() == RecoveryState::Loss);
    }
    // Nothing else raises Reno's threshold while there is always something to send.
    now_seen.undone += u32::from(sender.ssthresh > ssthresh);
    seen.set(now_seen);
    Ok(())
}

fn run(episodes: &[Episode], seen: &Cell<Seen>) -> Result<(), TestCaseError> {
    let mut path = Loopback::new(SenderConfig { initial_window: 20, ..OPTIONS }, reno(), RTT);
    // A path of any capacity is filled by the receiver's window alone.
    path.receiver = Receiver::new(1448, 300_000, RTT, EcnFeedback::Classic);
    path.start(None);
    for episode in episodes {
        path.rtt = Span::from_ms(episode.rtt_ms);
        if episode.overtakes {
            path.latest = [path.script.now; 2];
        }
        let next = path.script.sender.board.next();
        for _ in 0..episode.times {
            path.lost.extend(episode.lost.clone().map(|number| next + number));
        }
        let end = path.script.now + Span::from_ms(episode.lasts_ms);
        while path.script.now < end {
            step(&mut path, seen)?;
        }
    }
    // Nothing is lost any more: what was sent arrives, however long its timeout has become.
    path.lost.clear();
    path.rtt = RTT;
    path.script.sender.withdraw();
    let end = path.script.now + RTO_MAX + RTO_MAX;
    while path.script.now < end && !path.script.sender.is_drained() {
        path.until(path.script.now + Span::from_secs(1));
    }
    prop_assert!(path.script.sender.is_drained(), "{:?}", path.script.sender.board.counts());
    Ok(())
}

#[test]
fn counts_add_up_through_recovery_timeout_and_undo() {
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let seen = Cell::new(Seen::default());
    let outcome = TestRunner::new_with_rng(config, rng)
        .run(&prop::collection::vec(episode(), 1..12), |episodes| run(&episodes, &seen));
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    let Seen { recoveries, timeouts, undone } = seen.get();
    assert!(recoveries.min(timeouts).min(undone) > 20, "{:?}", seen.get());
}
