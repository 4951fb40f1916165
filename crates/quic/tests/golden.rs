//! Golden traces: how connections stand every 100 ms of one scripted transfer, and a digest of every byte
//! and time of their packets. A difference means that the stack or what lies between it and a
//! controller behaves otherwise; if it was meant to, write the traces anew with
//! `JOSTLE_BLESS=1 cargo test -p jostle-quic golden` and review them.

use std::fmt::Write;
use std::path::PathBuf;

use crate::common::{Fate, Link, World, ours};
use jostle_quic::{AckFrequency, Congestion, Recovery, Settings, StackController};
use jostle_units::{Rate, Span, Time};

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// 20 Mbit/s, 50 ms and one BDP of buffer: start-up, the first losses, an application that pauses for 1 s,
/// single losses and a packet that comes late, a path that fails for a second.
fn trace(settings: &Settings, congestion: Congestion) -> String {
    let link = Link::new(Rate::from_mbps(20), Span::from_ms(50), 1.0).with(|number, now| {
        if (at_ms(7_000)..at_ms(8_000)).contains(&now) || number % 997 == 0 && number > 0 {
            Fate::Drop
        } else if number % 2_503 == 0 && number > 0 {
            Fate::Delay(Span::from_ms(15))
        } else {
            Fate::Pass
        }
    });
    let mut world = World::new(settings, congestion, link);
    let mut text = "time_s    cwnd_B inflight_B srtt_us   sent   lost acked_B mode\n".to_owned();
    world.start(Some(6_000_000));
    for tick in 1..=120 {
        if tick == 50 {
            text.push_str("# the application writes on\n");
            world.client.supply(None);
            world.kick();
        }
        world.run(at_ms(100 * tick), |_| false);
        let (state, counters) = (world.client.state().unwrap(), world.counters());
        writeln!(
            text,
            "{:>6.1} {:>9} {:>10} {:>7} {:>6} {:>6} {:>7} {}",
            world.now.as_secs_f64(),
            state.cwnd_bytes,
            state.in_flight_bytes,
            state.srtt.as_ns() / 1_000,
            counters.sent_packets,
            counters.lost_packets,
            counters.acked_bytes,
            state.mode,
        )
        .unwrap();
    }
    let counters = world.counters();
    writeln!(
        text,
        "# {} again, {} spurious, {} ACKs, packets {:016x}",
        counters.retransmitted_bytes, counters.spurious, world.acks, world.digest
    )
    .unwrap();
    text
}

fn cases() -> Vec<(&'static str, Settings, Congestion)> {
    let usual = Settings::default();
    let prr = Settings { recovery: Recovery::Prr, ..usual.clone() };
    let seldom =
        AckFrequency { eliciting_threshold: 9, max_ack_delay: None, reordering_threshold: 1 };
    let seldom = Settings { ack_frequency: Some(seldom), ..usual.clone() };
    vec![
        ("reno", usual.clone(), ours("reno")),
        ("cubic", usual.clone(), ours("cubic")),
        ("cubic-prr", prr, ours("cubic")),
        ("cubic-seldom-acks", seldom, ours("cubic")),
        ("bbr", usual.clone(), ours("bbr")),
        ("bbr3", usual.clone(), ours("bbr3")),
        ("noq-cubic", usual, Congestion::Stack(StackController::Cubic)),
    ]
}

#[test]
fn traces_are_as_recorded() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("JOSTLE_BLESS").is_some();
    let mut changed = Vec::new();
    for (name, settings, congestion) in cases() {
        let text = trace(&settings, congestion);
        let path = folder.join(format!("{name}.txt"));
        if bless {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != text {
            changed.push(name);
        }
    }
    assert!(changed.is_empty(), "these behave otherwise: {changed:?}");
}
