//! Runs that do little else than make up for time in which nobody called a link can be given up, and
//! specifications that nobody wrote are refused or run.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::*;
use crate::specs;
use jostle_metrics::Recorder;
use jostle_run_spec::{
    DelayStep, JitterSpec, OutageSpec, PhaseSpec, Quantile, RunSpec, SourceSpec, Transport,
};
use jostle_sim::{Error, run as simulate};
use jostle_units::RandomStream;
use serde_json::{Map, Value};

/// Runs `spec` until it has asked `looks` times whether to go on; how often it did.
fn looks_of(spec: &RunSpec, looks: u64) -> (u64, Result<jostle_sim::RunCounts, Error>) {
    let asked = Cell::new(0);
    let enough = || {
        asked.set(asked.get() + 1);
        asked.get() >= looks
    };
    let ran = simulate(spec, &mut Recorder::new(spec), &enough);
    (asked.get(), ran)
}

fn hour(links: Vec<jostle_run_spec::LinkSpec>, flows: Vec<jostle_run_spec::FlowSpec>) -> RunSpec {
    RunSpec { interval_ns: 3_600 * S, ..run(3_600 * S, links, flows) }
}

/// A datagram now and then, over a link that draws all the time.
fn rarely(every_ns: u64) -> jostle_run_spec::FlowSpec {
    jostle_run_spec::FlowSpec {
        transport: Transport::Udp,
        controller: algorithm("none"),
        slow_start: None,
        source: SourceSpec::Ping { bytes: 20, every_ns, timeout_ns: 10 * S },
        ..flow("p", "reno", 40 * MS)
    }
}

fn table(most_ns: u64) -> Vec<Quantile> {
    [(0.0, 0), (1.0, most_ns)]
        .map(|(probability, value_ns)| Quantile { probability, value_ns })
        .into()
}

/// Each would take seconds to minutes if it went on to its end; the first look ends it.
#[test]
fn whatever_is_drawn_a_run_looks_up() {
    let link = || link("bottleneck", MBPS, 50_000_000);
    let jitter = JitterSpec { quantiles: table(MS), correlation_ns: 6 * US, reorder: false };
    let mut jittery = link();
    jittery.delay.jitter = Some(jitter);
    // Nobody calls it before an hour is nearly over: 300,000 packets are due then.
    let mut late = jittery.clone();
    late.delay.steps = vec![DelayStep { at_ns: 0, delay_ns: 3_500 * S }];
    let mut broken = link();
    broken.outages = Some(OutageSpec { mean_interval_ns: 360 * US, durations: table(0) });
    let controlled = |kind: &str| {
        let mut link = link();
        link.capacity = jostle_run_spec::CapacitySpec::Constant { rate_bps: 1_000 };
        link.queue = part(kind, json!({"limit": {"packets": 1000}, "update": 4 * US}));
        link
    };
    let window = |bytes| jostle_run_spec::FlowSpec {
        receive_window_bytes: bytes,
        initial_window_packets: 100_000,
        ..flow("f", "reno", 40 * MS)
    };
    let narrow = RunSpec {
        interval_ns: 3_600 * S / 2_000_000,
        ..hour(vec![link()], vec![rarely(1_000 * S)])
    };
    let cases = [
        ("jitter between packets", hour(vec![jittery.clone()], vec![rarely(S)])),
        ("jitter of packets that are due", hour(vec![late], vec![window(1 << 30)])),
        ("jitter of a busy link", hour(vec![jittery], vec![window(1 << 30)])),
        ("outages", hour(vec![broken], vec![rarely(1_000 * S)])),
        ("updates of PIE", hour(vec![controlled("pie")], vec![window(1 << 20)])),
        ("updates of DualPI2", hour(vec![controlled("dualpi2")], vec![window(1 << 20)])),
        ("intervals without packets", narrow),
    ];
    for (what, spec) in cases {
        spec.validate().unwrap_or_else(|error| panic!("{what}: {error}"));
        let (looks, ran) = looks_of(&spec, 3);
        assert_eq!((looks, ran), (3, Err(Error::Cancelled)), "{what}");
    }
}

/// How often a run looks up does not change what it finds.
#[test]
fn looking_up_changes_nothing() {
    let mut jittery = link("bottleneck", 8 * MBPS, 50_000);
    let jitter = JitterSpec { quantiles: table(9 * MS), correlation_ns: 50 * MS, reorder: false };
    jittery.delay.jitter = Some(jitter);
    jittery.outages = Some(OutageSpec { mean_interval_ns: S, durations: table(300 * MS) });
    jittery.queue = part("pie", json!({"limit": {"packets": 40}}));
    // Phases cut the run at other instants, which make every link do what is due.
    let whole = run(20 * S, vec![jittery], vec![flow("f", "cubic", 40 * MS)]);
    let mut cut = whole.clone();
    cut.phases.extend((1..400).map(|i| PhaseSpec {
        name: format!("{i}"),
        from_ns: i * 49 * MS + 1,
        to_ns: i * 49 * MS + 2,
    }));
    let [whole, cut] = [whole, cut].map(|spec| {
        let mut recorder = Recorder::new(&spec);
        simulate(&spec, &mut recorder, &|| false).unwrap();
        // As text: what does not exist is NaN, which no other NaN equals.
        format!("{:?}", recorder.finish().flows)
    });
    assert!(whole == cut, "the series differ");
}

/// A number below `most`.
fn below(random: &mut RandomStream, most: usize) -> usize {
    ((random.uniform() * most as f64) as usize).min(most.saturating_sub(1))
}

/// Paths to everything in a document.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    for (step, value) in below {
        let at = format!("{at}/{step}");
        places(value, &at, found);
        found.push(at);
    }
}

/// Another number: none, one, neighbours, far ones, those at which types and floats end.
fn number(given: f64, random: &mut RandomStream) -> Value {
    const ENDS: [u64; 9] = [0, 1, 2, 999, 1_000, u32::MAX as u64, 1 << 53, 1 << 63, u64::MAX];
    match below(random, 5) {
        0 | 1 => json!(ENDS[below(random, ENDS.len())]),
        2 => json!(given * [-1.0, 0.5, 1.5, 1e-9, 1e300][below(random, 5)]),
        _ => {
            let scale = [1e-9, 1e-6, 1e-3, 0.1, 10.0, 1e3, 1e6, 1e9][below(random, 8)];
            json!((given * scale).clamp(0.0, 1e19) as u64)
        }
    }
}

fn mutate(spec: &mut Value, random: &mut RandomStream) {
    let mut found = Vec::new();
    places(spec, "", &mut found);
    let at = found[below(random, found.len())].clone();
    let other = spec.pointer(&found[below(random, found.len())]).unwrap().clone();
    let target = spec.pointer_mut(&at).unwrap();
    let changed = match (&*target, below(random, 8)) {
        (_, 0) => other,
        (Value::Array(list), 1..=3) if !list.is_empty() => {
            let one = list[below(random, list.len())].clone();
            Value::Array(vec![one; [0, 1, 2, 300][below(random, 4)]])
        }
        (Value::Object(map), 1) if !map.is_empty() => {
            let gone = map.keys().nth(below(random, map.len())).unwrap().clone();
            let kept = map.iter().filter(|(key, _)| **key != gone);
            Value::Object(
                kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>(),
            )
        }
        (Value::Number(given), _) => number(given.as_f64().unwrap_or(0.0), random),
        (Value::Bool(given), _) => json!(!given),
        (Value::String(given), 1) => json!(given.repeat(1_000)),
        (Value::String(_), 2) => json!(["", "..", "a/b", "none", "bbr", "cubic"][below(random, 6)]),
        (given, _) => given.clone(),
    };
    *target = changed;
}

/// A specification that nobody wrote is refused, or it runs; and it can be given up.
#[test]
fn mutated_specs_are_refused_or_run() {
    let count = std::env::var("JOSTLE_MUTATED_SPECS").map_or(1_000, |count| count.parse().unwrap());
    let first: u64 =
        std::env::var("PROPTEST_RNG_SEED").map_or(1, |seed| seed.parse().unwrap()) << 32;
    // Captures are of no use here, and few of what is mutated in a large specification runs.
    let mut everything = specs::everything();
    everything["capture"] = json!(null);
    let bases = [specs::dumbbell(), specs::pings(), everything];
    let mut ran = 0;
    for seed in first..first + count {
        let mut random = RandomStream::new(seed, "mutation");
        let mut spec = bases[below(&mut random, bases.len())].clone();
        for _ in 0..=below(&mut random, 3) {
            mutate(&mut spec, &mut random);
        }
        let text = spec.to_string();
        let Ok(spec) = RunSpec::from_json(&text) else { continue };
        ran += 1;
        let outcome = catch_unwind(AssertUnwindSafe(|| looks_of(&spec, 6)));
        let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed}: {text}")).1;
        assert!(outcome.is_ok() || outcome == Err(Error::Cancelled), "seed {seed}: {outcome:?}");
    }
    assert!(ran > count / 5, "{ran} of {count} ran");
}
