//! Benchmarks of complete runs. Throughput is counted in packets that left a link.
//!
//! `README.md` in this folder explains what is compared, and how to count instructions and memory.

#[path = "../../crates/sim/tests/common/mod.rs"]
mod common;

use std::time::Duration;

use common::{GBPS, MBPS, MS, S, algorithm, bdp_bytes, flow, link, run};
use criterion::{
    BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use jostle_metrics::{NullSink, Recorder};
use jostle_run_spec::{FlowSpec, RunSpec};

/// One drop-tail link with a buffer of one bandwidth-delay product.
fn dumbbell(rate_bps: u64, rtt_ns: u64, duration_ns: u64, flows: Vec<FlowSpec>) -> RunSpec {
    let bottleneck = link("bottleneck", rate_bps, bdp_bytes(rate_bps, rtt_ns));
    let spec = run(duration_ns, vec![bottleneck], flows);
    RunSpec { interval_ns: S, ..spec }
}

fn cubic(name: &str, rtt_ns: u64) -> FlowSpec {
    FlowSpec { receive_window_bytes: 1 << 30, ..flow(name, "cubic", rtt_ns) }
}

/// Two flows at 100 Mbit/s and 40 ms.
fn access() -> RunSpec {
    let flows = ["first", "second"].map(|name| cubic(name, 40 * MS));
    dumbbell(100 * MBPS, 40 * MS, 60 * S, flows.to_vec())
}

/// One flow over a geostationary satellite with 36 MB of buffer.
fn satellite() -> RunSpec {
    let spec = run(
        120 * S,
        vec![link("satellite", 144 * MBPS, 36_000_000)],
        vec![cubic("only", 600 * MS)],
    );
    RunSpec { interval_ns: S, ..spec }
}

/// One flow at 1 Gbit/s over a path with a BDP of `bdp_packets`. Without HyStart, so that it fills the
/// path at once.
fn long_path(bdp_packets: u64) -> RunSpec {
    let rtt_ns = bdp_packets * 8 * 1_514;
    let only = FlowSpec { slow_start: Some(algorithm("standard")), ..cubic("only", rtt_ns) };
    dumbbell(GBPS, rtt_ns, 40 * S, vec![only])
}

/// `flows` flows that share a link of `rate_bps`, and come one after the other within 100 ms.
fn crowd(flows: u64, rate_bps: u64, duration_ns: u64) -> RunSpec {
    let flow =
        |i| FlowSpec { start_ns: i * 100 * MS / flows, ..cubic(&format!("flow {i}"), 40 * MS) };
    dumbbell(rate_bps, 40 * MS, duration_ns, (0..flows).map(flow).collect())
}

fn ends(spec: &RunSpec) -> u64 {
    match jostle_sim::run(spec, &mut NullSink, &|| false) {
        Ok(counts) => counts.link_packets,
        Err(error) => panic!("{error}"),
    }
}

fn silently(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, spec: &RunSpec) {
    group.throughput(Throughput::Elements(ends(spec)));
    group.bench_function(name, |b| b.iter(|| ends(spec)));
}

fn recorded(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, spec: &RunSpec) {
    group.throughput(Throughput::Elements(ends(spec)));
    group.bench_function(name, |b| {
        b.iter(|| {
            let mut recorder = Recorder::new(spec);
            let counts = jostle_sim::run(spec, &mut recorder, &|| false);
            (counts, recorder.finish())
        });
    });
}

fn group<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    group
}

fn cases(c: &mut Criterion) {
    let mut group = group(c, "case");
    silently(&mut group, "a_100_mbit_40_ms", &access());
    recorded(&mut group, "a_100_mbit_40_ms_recorded", &access());
    silently(&mut group, "c_144_mbit_600_ms", &satellite());
}

fn windows(c: &mut Criterion) {
    let mut group = group(c, "bdp_packets");
    for bdp_packets in [300, 80_000] {
        silently(&mut group, &bdp_packets.to_string(), &long_path(bdp_packets));
    }
}

fn flows(c: &mut Criterion) {
    let mut group = group(c, "flows");
    silently(&mut group, "2_of_10_mbit", &crowd(2, 20 * MBPS, 60 * S));
    silently(&mut group, "2_of_10_mbit_at_first", &crowd(2, 20 * MBPS, S / 4));
    silently(&mut group, "100_of_10_mbit", &crowd(100, GBPS, S / 4));
    silently(&mut group, "10000_of_10_mbit", &crowd(10_000, 100 * GBPS, S / 4));
    silently(&mut group, "2_of_1_mbit", &crowd(2, 2 * MBPS, 300 * S));
    silently(&mut group, "2_of_1_mbit_at_first", &crowd(2, 2 * MBPS, S));
    silently(&mut group, "100_of_1_mbit", &crowd(100, 100 * MBPS, S));
    silently(&mut group, "10000_of_1_mbit", &crowd(10_000, 10 * GBPS, S));
}

criterion_group!(benches, cases, windows, flows);
criterion_main!(benches);
