//! Cost per packet of a link: one `push` and one `pop`, in a closed loop that keeps `depth` packets
//! in the link, half of them in the queue and half in flight.

use std::collections::BTreeMap;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use jostle_link::delay::{Jitter, Quantiles};
use jostle_link::queue::QueueLimit;
use jostle_link::{
    Delay, Ecn, Link, LinkObserver, Packet, QueueDiscipline, TransportHeader, capacity, delay,
    registry,
};
use jostle_registry::{Parameter, ParameterType, ParameterValue};
use jostle_units::{ConnectionId, FULL_PACKET_BYTES, RandomStream, Rate, Span, Time};

/// Body of the same size as the simulator's transport header.
#[derive(Clone, Copy)]
struct Body {
    _words: [u64; 5],
}

impl TransportHeader for Body {}

/// Minimal recorder of time series: it adds up sums.
#[derive(Default)]
struct Sums {
    waiting_byte_ns: u128,
    bytes: u64,
    since: Time,
    sent_bytes: u64,
}

impl LinkObserver<Body> for Sums {
    fn queue_changed(&mut self, now: Time, bytes: u64, _: u64) {
        self.waiting_byte_ns += u128::from(self.bytes) * u128::from(now.since(self.since).as_ns());
        (self.bytes, self.since) = (bytes, now);
    }

    fn sent(&mut self, _: Time, _: Time, _: Time, packet: &mut Packet<Body>) {
        self.sent_bytes += u64::from(packet.size_bytes);
    }
}

/// A closed loop: every packet that leaves the link enters it again, so no packet may be dropped.
struct Loop<P> {
    link: Link<Body>,
    probe: P,
}

const RATE: Rate = Rate::from_mbps(1_000);

fn sending(packets: u64) -> Span {
    RATE.time_for(packets * u64::from(FULL_PACKET_BYTES))
}

impl<P: LinkObserver<Body>> Loop<P> {
    fn new(
        queue: Box<dyn QueueDiscipline<Body>>,
        delay: Box<dyn Delay>,
        depth: u64,
        mut probe: P,
    ) -> Self {
        let mut link = Link::new(queue, Box::new(capacity::Constant::new(RATE)), delay, vec![]);
        for n in 0..depth {
            let packet = Packet {
                connection: ConnectionId((n % 16) as u32),
                size_bytes: FULL_PACKET_BYTES,
                queued_at: Time::ZERO,
                ecn: Ecn::Capable,
                hop: 0,
                is_corrupted: false,
                dscp: 0,
                transport: Body { _words: [n; 5] },
            };
            link.push(Time::ZERO, packet, &mut probe);
        }
        let mut this = Self { link, probe };
        (0..2 * depth).for_each(|_| this.turn());
        this
    }

    fn turn(&mut self) {
        let now = self.link.next_time();
        if let Some(packet) = self.link.pop(now, &mut self.probe) {
            self.link.push(now, packet, &mut self.probe);
        }
    }
}

fn constant(depth: u64) -> Box<dyn Delay> {
    Box::new(delay::Constant::new(sending(depth / 2)))
}

fn jitter(depth: u64) -> Box<dyn Delay> {
    let points = [(0.0, 0), (0.5, 10), (0.99, 100), (1.0, 1_000)];
    let points = points.map(|(p, us)| (p, Span::from_us(us))).to_vec();
    let base = delay::Steps::new(vec![(Time::ZERO, sending(depth / 2))]);
    let (Ok(base), Ok(table)) = (base, Quantiles::new(points)) else { return constant(depth) };
    Box::new(Jitter::new(base, table, Span::from_ms(50), false, RandomStream::new(1, "jitter")))
}

/// Queue disciplines with thresholds that allow the loop to run without drops, but with all
/// computations.
fn queue(name: &str) -> Option<Box<dyn QueueDiscipline<Body>>> {
    let row = registry::queue(name).ok()?;
    let second = ParameterValue::Integer(1_000_000_000);
    let quiet = BTreeMap::from([
        ("limit", ParameterValue::Limit(QueueLimit::Packets(1_000_000))),
        ("ecn", ParameterValue::Bool(true)),
        ("target", second.clone()),
        ("threshold", second),
        ("min", ParameterValue::Integer(100_000)),
        ("max", ParameterValue::Integer(200_000_000)),
        // Without weights the probability stays 0 and no packet is dropped.
        ("alpha", ParameterValue::Number(0.0)),
        ("beta", ParameterValue::Number(0.0)),
    ]);
    let value = |it: &Parameter| match it.kind {
        ParameterType::Packets { .. } => Some(ParameterValue::Integer(1_000_000)),
        _ => quiet.get(it.name).cloned(),
    };
    let given = row.entry.parameters.iter().filter_map(|it| Some((it.name.to_owned(), value(it)?)));
    row.create(&given.collect(), RandomStream::new(1, "queue")).ok()
}

fn way_through_a_link(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("push+pop");
    group.throughput(Throughput::Elements(1));
    for depth in [300u64, 80_000] {
        for name in ["drop_tail", "codel", "fq_codel", "red", "pie", "step_mark", "dualpi2"] {
            let Some(queue) = queue(name) else { continue };
            let mut closed = Loop::new(queue, constant(depth), depth, Sums::default());
            group.bench_function(BenchmarkId::new(name, depth), |b| b.iter(|| closed.turn()));
        }
        let Some(bare) = queue("drop_tail") else { continue };
        let mut closed = Loop::new(bare, constant(depth), depth, ());
        group.bench_function(BenchmarkId::new("drop_tail, not watched", depth), |b| {
            b.iter(|| closed.turn());
        });
        let Some(bare) = queue("drop_tail") else { continue };
        let mut closed = Loop::new(bare, jitter(depth), depth, Sums::default());
        group.bench_function(BenchmarkId::new("drop_tail, jitter", depth), |b| {
            b.iter(|| closed.turn());
        });
    }
    group.finish();
}

fn delays(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("delay");
    group.throughput(Throughput::Elements(1));
    let (mut jitter, mut now) = (jitter(300), Time::ZERO);
    group.bench_function("jitter", |b| {
        b.iter(|| {
            now += Span::from_us(12);
            jitter.delay(now)
        });
    });
    group.finish();
}

criterion_group!(benches, way_through_a_link, delays);
criterion_main!(benches);
