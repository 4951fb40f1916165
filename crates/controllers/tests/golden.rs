//! Golden traces: cwnd, ssthresh and mode of every controller at the end of each round of one
//! scripted transfer. A difference means that behaviour changed; if it was meant to, write the
//! traces anew with `JOSTLE_BLESS=1 cargo test -p jostle-controllers golden` and review them.

use std::fs;
use std::path::PathBuf;

use crate::common::{Path, Transfer, build, build_with};
use jostle_congestion::CongestionController;
use jostle_controllers::registry::CONTROLLERS;
use jostle_registry::ParameterValue;
use jostle_units::{Rate, Span};

/// Steps until `until_s`, with a line at the end of every round.
fn follow(transfer: &mut Transfer, until_s: f64, text: &mut String) {
    let end = jostle_units::Time::ZERO + Span::from_secs_f64(until_s);
    let mut rounds = transfer.rounds;
    while transfer.next_time() <= end {
        transfer.step();
        if transfer.rounds != rounds {
            rounds = transfer.rounds;
            let ssthresh =
                transfer.controller.ssthresh().map_or("-".to_owned(), |value| value.to_string());
            text.push_str(&format!(
                "{:>9.3} {:>6} {:>8} {}\n",
                transfer.now.as_secs_f64(),
                transfer.controller.cwnd(),
                ssthresh,
                transfer.controller.mode(),
            ));
        }
    }
    transfer.run_until(until_s);
}

/// A trace in the file of its name.
struct Case {
    name: &'static str,
    controller: Box<dyn CongestionController>,
    buffer_packets: usize,
}

/// One BDP of the path.
const BDP_PACKETS: usize = 82;

fn case(name: &'static str, controller: Box<dyn CongestionController>) -> Case {
    Case { name, controller, buffer_packets: BDP_PACKETS }
}

/// 20 Mbit/s, 50 ms and one BDP of buffer, of which a third may fill before controllers that need
/// marks get some: start-up, the first losses, an application that pauses
/// for 1.5 s, a path that halves its rate, one that fails for a second.
fn trace(case: Case) -> String {
    let mut path = Path::new(Rate::from_mbps(20), Span::from_ms(50), case.buffer_packets);
    path.ack_every = 2;
    path.mark_above = 27;
    let mut transfer = Transfer::new(path, case.controller);
    let mut text = "   time_s   cwnd ssthresh mode\n".to_owned();
    follow(&mut transfer, 5.0, &mut text);
    text.push_str("# the application pauses until 6.5 s\n");
    transfer.offer(0);
    follow(&mut transfer, 6.5, &mut text);
    transfer.offer(u64::MAX);
    follow(&mut transfer, 9.0, &mut text);
    text.push_str("# 10 Mbit/s\n");
    transfer.path.rate = Rate::from_mbps(10);
    follow(&mut transfer, 12.0, &mut text);
    text.push_str("# nothing arrives until 13 s\n");
    transfer.path.loss = 1.0;
    follow(&mut transfer, 13.0, &mut text);
    transfer.path.loss = 0.0;
    follow(&mut transfer, 18.0, &mut text);
    text.push_str(&format!(
        "# {} sent, {} lost, {} recoveries, {} timeouts\n",
        transfer.total_sent, transfer.total_lost, transfer.recoveries, transfer.timeouts
    ));
    text
}

/// The first line in which two texts differ.
fn difference(expected: &str, found: &str) -> String {
    let lines = expected.lines().zip(found.lines()).enumerate();
    for (number, (expected, found)) in lines {
        if expected != found {
            return format!("line {}: expected `{expected}`, found `{found}`", number + 1);
        }
    }
    format!("{} lines instead of {}", found.lines().count(), expected.lines().count())
}

#[test]
fn every_controller_follows_its_golden_trace() {
    let text = |text: &str| ParameterValue::Text(text.to_owned());
    let usual = CONTROLLERS.iter().map(|row| row.entry.name);
    let mut cases: Vec<_> = usual.map(|name| case(name, build(name, &[], None))).collect();
    let google = || ("flavour", text("google"));
    let ecn_low = ("ecn_low", ParameterValue::Bool(true));
    cases.push(case("bbr3-google", build("bbr3", &[google()], None)));
    cases.push(case("bbr3-google-ecn", build("bbr3", &[google(), ecn_low], None)));
    cases.push(case("copa-mvfst", build("copa", &[("flavour", text("mvfst"))], None)));
    let rfc9438 = [("flavour", text("rfc9438"))];
    cases.push(case("cubic-rfc9438", build("cubic", &rfc9438, Some("hystart++"))));
    cases.push(case("cubic-linux-4.15", build("cubic", &[("linux", text("4.15"))], None)));
    let no_hystart = build("cubic", &[("hystart", ParameterValue::Bool(false))], None);
    cases.push(case("cubic-no-hystart", no_hystart));
    cases.push(case("cubic-paced-chirping", build("cubic", &[], Some("paced-chirping"))));
    let scavenger = [("mode", text("scavenger"))];
    cases.push(case("proteus-scavenger", build("proteus", &scavenger, None)));
    cases.push(case("reno-rfc9002", build("reno", &[("flavour", text("rfc9002"))], None)));
    // Its limited slow start shows where a buffer holds several BDPs.
    let limited = [("after_rise", text("limited"))];
    let limited = build_with("reno", &[], Some("hystart++"), &limited);
    let deep = 5 * BDP_PACKETS;
    cases.push(Case { buffer_packets: deep, ..case("reno-hystart++-limited", limited) });

    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut differences = Vec::new();
    for case in cases {
        let name = case.name;
        let file = folder.join(format!("{name}.txt"));
        let found = trace(case);
        if std::env::var_os("JOSTLE_BLESS").is_some() {
            fs::write(&file, &found).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if expected != found {
            differences.push(format!("{name}, {}", difference(&expected, &found)));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
