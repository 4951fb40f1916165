//! Cost per packet: both ends of a connection and the congestion state, over a minimal link.
#![allow(clippy::unwrap_used, reason = "a bench may panic")]
#![allow(missing_docs, reason = "criterion makes the functions")]

#[path = "../../crates/quic/tests/common/mod.rs"]
mod common;

use common::{Link, World, ours};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jostle_quic::{Congestion, Settings, StackController};
use jostle_units::{Rate, Span};

/// Sends over a link for some time; returns the number of data packets and ACKs.
fn send(congestion: Congestion, link: Link, span: Span) -> u64 {
    let settings =
        Settings { datagram_bytes: 1472, discover_up_to_bytes: None, ..Settings::default() };
    let mut world = World::new(&settings, congestion, link);
    world.start(None);
    world.run_for(span);
    world.sent + world.acks
}

/// One second at 100 Mbit/s and 40 ms: about 8,200 data packets and half as many ACKs.
fn second(congestion: Congestion) -> u64 {
    let link = Link::new(Rate::from_mbps(100), Span::from_ms(40), 1.0);
    send(congestion, link, Span::from_secs(1))
}

/// A satellite link with up to 15,000 packets in flight: the cost of a long send buffer.
fn satellite() -> u64 {
    let link = Link::new(Rate::from_mbps(300), Span::from_ms(600), 1.0);
    send(ours("cubic"), link, Span::from_secs(10))
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
    group.throughput(Throughput::Elements(satellite()));
    group.bench_function("cubic_satellite", |bench| bench.iter(satellite));
    group.finish();
}

criterion_group!(benches, packets);
criterion_main!(benches);
