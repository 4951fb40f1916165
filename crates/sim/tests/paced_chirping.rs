//! Paced chirping on the simulator: what it finds out, and what that costs the queue.

use crate::common::*;
use jostle_link::DropReason;
use jostle_metrics::{EventSink, FlowState};
use jostle_run_spec::RunSpec;
use jostle_units::{ConnectionId, FULL_PACKET_BYTES, FULL_PAYLOAD_BYTES, FlowId, LinkId, Time};

/// What a sink sees of a start-up, which ends when packets are no longer spaced.
#[derive(Default)]
struct StartUp {
    over: Option<Time>,
    /// What the last chirps found, headers included.
    bandwidth_estimate_bps: f64,
    cwnd_packets: u64,
    peak_packets: u64,
    dropped: u64,
}

impl EventSink for StartUp {
    fn queue_changed(&mut self, _now: Time, _link: LinkId, _bytes: u64, packets: u64) {
        if self.over.is_none() {
            self.peak_packets = self.peak_packets.max(packets);
        }
    }

    fn dropped(&mut self, _: Time, _: LinkId, _: ConnectionId, _: DropReason, _: u32) {
        self.dropped += u64::from(self.over.is_none());
    }

    fn flow_state(&mut self, now: Time, _flow: FlowId, state: &FlowState) {
        match state.mode {
            "handshake" | "chirping" | "pacing" => {
                let payload = state.pacing_rate.map_or(0, |rate| rate.as_bps()) as f64;
                let whole = f64::from(FULL_PACKET_BYTES) / f64::from(FULL_PAYLOAD_BYTES);
                self.bandwidth_estimate_bps = payload * whole;
            }
            _ if self.over.is_none() => {
                self.over = Some(now);
                self.cwnd_packets = state.cwnd_bytes / u64::from(FULL_PAYLOAD_BYTES);
            }
            _ => {}
        }
    }
}

fn start_up(controller: &str, rate_bps: u64, rtt_ns: u64) -> StartUp {
    let mut download = flow("download", controller, rtt_ns);
    download.slow_start = Some(algorithm("paced-chirping"));
    download.initial_receive_window_bytes = download.receive_window_bytes;
    let mut spec: RunSpec =
        run(5 * S, vec![link("path", rate_bps, bdp_bytes(rate_bps, rtt_ns))], vec![download]);
    spec.interval_ns = MS;
    spec.validate().unwrap();
    let mut seen = StartUp::default();
    jostle_sim::run(&spec, &mut seen, &|| false).unwrap();
    seen
}

/// algorithms.md: "100 Mbit/s estimate ±15 %, queue < 10 packets". The window is what the path holds.
#[test]
fn the_capacity_is_found_before_a_queue_builds() {
    for controller in ["cubic", "reno"] {
        for rtt_ms in [10, 20, 40, 100, 200] {
            let seen = start_up(controller, 100 * MBPS, rtt_ms * MS);
            let mbps = seen.bandwidth_estimate_bps / 1e6;
            let bdp = bdp_bytes(100 * MBPS, rtt_ms * MS) / u64::from(FULL_PACKET_BYTES);
            let share = seen.cwnd_packets as f64 / bdp as f64;
            let what = format!(
                "{controller}, {rtt_ms} ms: {mbps:.1} Mbit/s, {share:.2} BDP, queue {}",
                seen.peak_packets
            );
            assert!((85.0..=115.0).contains(&mbps), "{what}");
            assert!(seen.peak_packets < 10, "{what}");
            assert!((0.8..=1.15).contains(&share), "{what}");
            assert_eq!(seen.dropped, 0, "{what}");
            let round_trips = seen.over.unwrap().as_secs_f64() * 1e3 / rtt_ms as f64;
            assert!((5.0..=13.0).contains(&round_trips), "{what}, {round_trips:.1} RTT");
        }
    }
}
