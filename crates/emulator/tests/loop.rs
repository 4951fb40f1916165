//! The loop between sockets instead of TUN devices: no rights are needed for it. Its times are the
//! machine's, so only what no scheduler can change is asserted: nothing leaves early, nothing gets
//! lost unseen.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // Clippy takes only functions marked `#[test]` for tests.

use std::os::unix::net::UnixDatagram;
use std::thread;

use jostle_emulator::{EmulationSpec, Emulator, Outcome, Validity};
use jostle_forwarding::PacketEventKind;
use rustix::time::{ClockId, clock_gettime};

/// An emulation of one link each way: `queue` packets and 10 Mbit/s forward, 20 ms both ways.
fn spec(queue_packets: u64, lateness_bound_ns: u64) -> EmulationSpec {
    let link = |name: &str, packets| {
        format!(
            r#"[{{"name": "{name}", "capacity": {{"kind": "constant", "rate_bps": 10000000}},
                "queue": {{"kind": "drop_tail", "parameters": {{"limit": {{"packets": {packets}}}}}}},
                "delay": {{"steps": [{{"at_ns": 0, "delay_ns": 20000000}}], "jitter": null}},
                "loss": null, "outages": null,
                "quick_start": null}}]"#
        )
    };
    EmulationSpec::from_json(&format!(
        r#"{{"seed": 1, "forward": {}, "reverse": {}, "mtu_bytes": 1500,
            "lateness_bound_ns": {lateness_bound_ns}, "memory_bytes": 1000000,
            "journal": true}}"#,
        link("there", queue_packets),
        link("back", 1000),
    ))
    .unwrap()
}

/// Runs `conversation` between the far ends of the two devices.
fn emulate(
    spec: &EmulationSpec,
    conversation: impl FnOnce(&UnixDatagram, &UnixDatagram),
) -> Outcome {
    let (near, first) = UnixDatagram::pair().unwrap();
    let (far, second) = UnixDatagram::pair().unwrap();
    let emulator = Emulator::new(spec, [first, second]).unwrap();
    let stop = emulator.stop();
    let running = thread::spawn(move || emulator.run().unwrap());
    conversation(&near, &far);
    stop.stop();
    running.join().unwrap()
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn numbered(number: u8) -> Vec<u8> {
    let mut packet = vec![0; 1236];
    packet[..2].copy_from_slice(&[0x45, 0]);
    packet[1235] = number;
    packet
}

#[test]
fn packets_arrive_in_order_and_never_early() {
    let outcome = emulate(&spec(1000, u64::MAX), |near, far| {
        let sent_ns = now_ns();
        for number in 0..50 {
            near.send(&numbered(number)).unwrap();
        }
        let mut buffer = [0; 1500];
        for number in 0..50 {
            assert_eq!(far.recv(&mut buffer).unwrap(), 1236);
            assert_eq!(buffer[1235], number);
            let due_ns = 20_000_000 + (u64::from(number) + 1) * 1_000_000;
            assert!(now_ns() - sent_ns >= due_ns, "packet {number} came early");
        }
        far.send(&numbered(7)).unwrap();
        near.recv(&mut buffer).unwrap();
        assert_eq!(buffer[1235], 7);
    });
    let summary = outcome.summary;
    assert_eq!((summary.forward.arrived_packets, summary.forward.delivered_packets), (50, 50));
    assert_eq!(summary.forward.arrived_bytes, 50 * 1250);
    assert_eq!(summary.reverse.delivered_packets, 1);
    assert_eq!(summary.verdict, Validity::OnTime);
    assert!(summary.lateness.max_s.unwrap() >= summary.lateness.p50_s.unwrap());
    assert!(summary.duration_s > 0.09, "{}", summary.duration_s);
}

#[test]
fn every_packet_is_accounted_for() {
    let outcome = emulate(&spec(5, u64::MAX), |near, far| {
        for number in 0..100 {
            near.send(&numbered(number)).unwrap();
        }
        far.recv(&mut [0; 1500]).unwrap();
    });
    let forward = outcome.summary.forward;
    assert_eq!(forward.arrived_packets, 100);
    let known = forward.delivered_packets + forward.dropped_packets + forward.left_packets;
    assert_eq!((known, forward.refused_packets), (100, 0));
    let overflow = forward.links[0].dropped["overflow"];
    assert_eq!(overflow, forward.dropped_packets);
    let events = outcome.journal.unwrap().events;
    assert_eq!(events.len() as u64, overflow);
    assert!(
        events
            .iter()
            .all(|event| event.what == PacketEventKind::Dropped && event.size_bytes == 1250)
    );
    assert!(events.is_sorted_by_key(|event| event.at));
}

#[test]
fn a_bound_that_nobody_can_keep_is_reported() {
    let outcome = emulate(&spec(1000, 0), |near, far| {
        near.send(&numbered(0)).unwrap();
        far.recv(&mut [0; 1500]).unwrap();
    });
    assert_eq!(outcome.summary.verdict, Validity::Late);
}

#[test]
fn an_emulation_can_be_stopped_before_it_begins() {
    let (_near, first) = UnixDatagram::pair().unwrap();
    let (_far, second) = UnixDatagram::pair().unwrap();
    let emulator = Emulator::new(&spec(1000, 0), [first, second]).unwrap();
    emulator.stop().stop();
    let summary = emulator.run().unwrap().summary;
    assert_eq!((summary.forward.arrived_packets, summary.lateness.max_s), (0, None));
    assert_eq!(summary.verdict, Validity::OnTime);
}

#[test]
fn packets_beyond_the_memory_are_counted_and_nothing_else_suffers() {
    let mut spec = spec(1000, u64::MAX);
    spec.memory_bytes = 10 * usize::from(spec.mtu_bytes);
    let outcome = emulate(&spec, |near, far| {
        for number in 0..50 {
            near.send(&numbered(number)).unwrap();
        }
        let mut buffer = [0; 1500];
        for _ in 0..10 {
            assert_eq!(far.recv(&mut buffer).unwrap(), 1236);
        }
        // What was dropped has left no packet behind, and there is room again.
        near.send(&numbered(99)).unwrap();
        while buffer[1235] != 99 {
            far.recv(&mut buffer).unwrap();
        }
    });
    let forward = &outcome.summary.forward;
    assert!(forward.unheld_packets > 0, "{forward:?}");
    assert_eq!(forward.arrived_packets + forward.unheld_packets, 51);
    assert_eq!(forward.delivered_packets, forward.arrived_packets);
    assert_eq!(outcome.summary.verdict, Validity::Overrun);
}

#[test]
fn specifications_that_make_no_sense_are_refused() {
    let refused = |change: fn(&mut EmulationSpec)| {
        let mut spec = spec(1000, 0);
        change(&mut spec);
        spec.validate().unwrap_err().to_string()
    };
    assert_eq!(
        refused(|spec| spec.reverse.clear()),
        "`reverse` cannot be 0 links: expected 1 to 64"
    );
    assert_eq!(
        refused(|spec| spec.reverse[0].name = "there".to_owned()),
        "`forward and reverse` cannot be two links named \"there\": expected a unique name for \
         each"
    );
    assert!(refused(|spec| spec.memory_bytes = 1499).starts_with("`memory_bytes` cannot be 1499"));
    assert!(refused(|spec| spec.mtu_bytes = 576).starts_with("`mtu_bytes` cannot be 576"));
    assert!(
        refused(|spec| spec.forward[0].delay.steps.clear())
            .starts_with("`forward[0].delay.steps` cannot be empty")
    );
}
