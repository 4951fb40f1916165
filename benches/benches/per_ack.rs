//! What an ACK costs each controller of the registry, in time. `instructions` counts the same
//! ACKs without the noise of a busy machine.

mod acks;

use std::hint::black_box;

use acks::{ACKS_PER_LOSS, Case, Connection, Phase};
use criterion::{Criterion, criterion_group, criterion_main};

fn per_ack(criterion: &mut Criterion) {
    measure(criterion, "per_ack", acks::controllers());
    measure(criterion, "per_ack_of_reno_under", acks::memories());
    measure(criterion, "per_ack_of_reno_with", acks::slow_starts());
}

fn measure(criterion: &mut Criterion, group: &str, cases: Vec<Case>) {
    let mut group = criterion.benchmark_group(group);
    for case in cases {
        let mut connection = Connection::open((case.create)(), Phase::Steady);
        for _ in 0..10 * ACKS_PER_LOSS {
            connection.acknowledge();
        }
        group.bench_function(case.name, |bencher| {
            bencher.iter(|| {
                connection.acknowledge();
                black_box(&connection);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, per_ack);
criterion_main!(benches);
