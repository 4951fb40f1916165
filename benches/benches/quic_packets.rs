//! Cost per packet: both ends of a connection and the congestion state, over a minimal link.
#![allow(clippy::unwrap_used, reason = "a bench may panic")]
#![allow(missing_docs, reason = "criterion makes the functions")]

#[path = "../../crates/quic/tests/common/mod.rs"]
mod common;

use common::{Link, World, ours};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jostle_quic::{Congestion, Settings, StackController};
use jostle_units::{Rate, Span};

/// One second at 100 Mbit/s and 40 ms: about 8,200 data packets and half as many ACKs.
fn second(congestion: Congestion) -> u64 {
    let settings =
        Settings { datagram_bytes: 1472, discover_up_to_bytes: None, ..Settings::default() };
    let link = Link::new(Rate::from_mbps(100), Span::from_ms(40), 1.0);
    let mut world = World::new(&settings, congestion, link);
    world.start(None);
    world.run_for(Span::from_secs(1));
    world.sent + world.acks
}

fn packets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packets");
    for name in ["reno", "cubic", "bbr", "bbr3"] {
        group.throughput(Throughput::Elements(second(ours(name))));
        group.bench_function(name, |bench| bench.iter(|| second(ours(name))));
    }
    group.throughput(Throughput::Elements(second(Congestion::Stack(StackController::Cubic))));
    group.bench_function("noq:cubic", |bench| {
        bench.iter(|| second(Congestion::Stack(StackController::Cubic)));
    });
    group.finish();
}

criterion_group!(benches, packets);
criterion_main!(benches);
