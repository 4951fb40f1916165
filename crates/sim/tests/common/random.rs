//! RunSpecs at random: whatever a spec can say, in runs of some thousand packets.

use jostle_controllers::registry::{CONTROLLERS, MEMORIES, SLOW_STARTS};
use jostle_link::registry::queues;
use jostle_registry::ParameterType;
use jostle_run_spec::*;
use jostle_units::{FlowId, LinkId};
use proptest::option;
use proptest::prelude::*;

use crate::common::*;

/// Packets that the slowest link of a run may carry during it.
const PACKETS: u64 = 2_000;
/// Bits of a full packet.
const PACKET_BITS: u64 = 8 * 1_514;

/// Between `from` and `to`, every factor of two as likely as any other.
fn log_uniform(from: u64, to: u64) -> impl Strategy<Value = u64> {
    (0..=(to / from).ilog2(), 1_000..2_000u64)
        .prop_map(move |(doublings, mantissa)| ((from << doublings) * mantissa / 1_000).min(to))
}

fn queue_limit(bdp_bytes: u64) -> impl Strategy<Value = QueueLimit> {
    // From two packets to twice the bandwidth-delay product.
    (log_uniform(2, (2 * bdp_bytes / 1_514).clamp(4, 4_000)), any::<bool>()).prop_map(
        |(packets, in_bytes)| {
            if in_bytes { QueueLimit::Bytes(packets * 1_514) } else { QueueLimit::Packets(packets) }
        },
    )
}

/// Any queue of the registry, with the defaults of what is no limit, threshold, switch or choice.
fn queue(bdp_bytes: u64) -> impl Strategy<Value = LinkPart> {
    let rows = queues::<()>();
    (queue_limit(bdp_bytes), 0..rows.len(), any::<bool>()).prop_map(
        move |(limit, index, switch)| {
            let entry = rows[index].entry;
            let mut thresholds_bytes = (1..).map(|n| (limit.full_bytes() * n / 4) as i64);
            let value = |kind: ParameterType| match kind {
                ParameterType::Limit { .. } => Some(ParameterValue::Limit(limit)),
                ParameterType::Packets { min, max, .. } => Some(ParameterValue::Integer(
                    ((limit.full_bytes() / 1_514) as i64).clamp(min, max),
                )),
                ParameterType::Size { default_bytes: None, .. } => {
                    thresholds_bytes.next().map(ParameterValue::Integer)
                }
                ParameterType::Bool { .. } => Some(ParameterValue::Bool(switch)),
                ParameterType::Choice { choices, .. } => {
                    Some(ParameterValue::Text(choices[usize::from(switch)].to_owned()))
                }
                _ => kind.default_value(),
            };
            let values = entry.parameters.iter().map(|it| it.kind).map_while(value);
            let names = entry.parameters.iter().map(|it| it.name.to_owned());
            LinkPart { kind: entry.name.to_owned(), parameters: names.zip(values).collect() }
        },
    )
}

/// MTUs from the smallest to one of which the tightest queue or bucket on the way holds four packets: one
/// that holds none would keep a flow from ever ending. Half of the flows have Ethernet's.
fn mtu(links: &[LinkSpec]) -> impl Strategy<Value = u32> + use<> {
    let limits_bytes = links.iter().filter_map(|link| match link.queue.parameters.get("limit") {
        Some(ParameterValue::Limit(limit)) => Some(limit.full_bytes()),
        _ => None,
    });
    // What a bucket cannot hold never passes.
    let bursts_bytes = links.iter().filter_map(|link| match link.queue.parameters.get("burst") {
        Some(ParameterValue::Integer(bytes)) => u64::try_from(*bytes).ok(),
        _ => None,
    });
    let limits_bytes = limits_bytes.chain(bursts_bytes);
    let most = limits_bytes.min().map_or(1_500, |bytes| (bytes / 4).clamp(1_500, 65_535));
    prop_oneof![Just(1_500), log_uniform(576, most).prop_map(|bytes| bytes as u32)]
}

fn capacity(rate_bps: u64) -> impl Strategy<Value = CapacitySpec> {
    let halved = move |at_ns| CapacitySpec::Steps {
        steps: vec![
            RateStep { at_ns: 0, rate_bps },
            RateStep { at_ns, rate_bps: 0 },
            RateStep { at_ns: 2 * at_ns, rate_bps: rate_bps / 2 },
        ],
    };
    // Opportunities of a fortieth of a second's worth, so that traces stay short.
    let opportunity_bytes = (rate_bps / 8 / 1_000).clamp(1_514, 1 << 20) as u32;
    let per_s = (rate_bps / 8 / u64::from(opportunity_bytes)).max(1);
    let opportunities_ms = (1..=per_s.min(1_000)).map(|i| (i * 1_000 / per_s.min(1_000)) as u32);
    let trace =
        CapacitySpec::Trace { opportunities_ms: opportunities_ms.collect(), opportunity_bytes };
    prop_oneof![
        4 => Just(CapacitySpec::Constant { rate_bps }),
        1 => (100 * MS..S).prop_map(halved),
        1 => Just(trace),
        1 => (MS..S, MS..10 * S).prop_map(move |(step_ns, correlation_ns)| {
            CapacitySpec::Autoregressive(AutoregressiveSpec {
                mean_bps: rate_bps,
                deviation_bps: rate_bps / 2,
                correlation_ns,
                step_ns,
                min_bps: rate_bps.div_ceil(10).max(8_000),
                max_bps: rate_bps.max(4_000) * 2,
            })
        }),
    ]
}

fn quantiles(most_ns: u64) -> Vec<Quantile> {
    [(0.0, 0), (0.9, most_ns / 10), (1.0, most_ns)]
        .map(|(probability, value_ns)| Quantile { probability, value_ns })
        .to_vec()
}

fn delay(delay_ns: u64) -> impl Strategy<Value = DelaySpec> {
    let jitter = (10 * US..20 * MS, 0..50 * MS, any::<bool>()).prop_map(
        |(most_ns, correlation_ns, reorder)| JitterSpec {
            quantiles: quantiles(most_ns),
            correlation_ns,
            reorder,
        },
    );
    (option::weighted(0.3, jitter), option::weighted(0.2, 50 * MS..500 * MS)).prop_map(
        move |(jitter, step_ns)| {
            let mut steps = vec![DelayStep { at_ns: 0, delay_ns }];
            steps.extend(step_ns.map(|at_ns| DelayStep { at_ns, delay_ns: delay_ns / 2 }));
            DelaySpec { steps, jitter }
        },
    )
}

fn loss() -> impl Strategy<Value = Option<LinkPart>> {
    prop_oneof![
        2 => Just(None),
        // Few losses leave long runs of packets behind a hole.
        1 => (0.0..1.0).prop_map(|it: f64| lost(0.05 * it * it)),
        1 => (0.001..0.05, 0.2..1.0, 0.0..0.01, 0.3..1.0).prop_map(
            |(good_to_bad, bad_to_good, loss_good, loss_bad)| Some(part("gilbert_elliott", json!({
                "good_to_bad": good_to_bad, "bad_to_good": bad_to_good,
                "loss_good": loss_good, "loss_bad": loss_bad,
            })))
        ),
    ]
}

fn outages() -> impl Strategy<Value = Option<OutageSpec>> {
    let outages = (200 * MS..5 * S, MS..500 * MS).prop_map(|(mean_interval_ns, most_ns)| {
        OutageSpec { mean_interval_ns, durations: quantiles(most_ns) }
    });
    option::weighted(0.15, outages)
}

fn frames() -> impl Strategy<Value = Option<FramesSpec>> {
    let frames =
        (1..65u32, log_uniform(1, 100_000), 0..5 * MS).prop_map(|(packets, bytes, most_ns)| {
            FramesSpec { packets, bytes, contention: quantiles(most_ns) }
        });
    option::weighted(0.15, frames)
}

fn faults() -> impl Strategy<Value = Option<FaultsSpec>> {
    let event = || {
        (0.0..0.1, 0.0..1.0).prop_map(|(probability, correlation): (f64, f64)| OccurrenceSpec {
            probability,
            correlation,
        })
    };
    let reorder = (event(), 1..50u64, option::of(1..20 * MS))
        .prop_map(|(occurrence, gap, late_ns)| ReorderingSpec { occurrence, gap, late_ns });
    let number = (1..300u64, 0..5u8, 1..50 * MS).prop_map(|(number, kind, by_ns)| {
        let kinds = [FaultSpec::Lose, FaultSpec::Mark, FaultSpec::Corrupt, FaultSpec::Duplicate];
        let late = FaultSpec::Late { by_ns };
        (number, *kinds.get(usize::from(kind)).unwrap_or(&late))
    });
    let numbers = prop::collection::btree_map(1..300u64, number, 0..10).prop_map(|numbers| {
        let fault = |(number, (_, fault))| NumberedFaultSpec { number, fault };
        let faults = numbers.into_iter().map(fault).collect();
        vec![NumberedFaultsSpec { flow: None, class: Some(PacketClassSpec::Data), faults }]
    });
    let faults = (option::of(event()), option::of(event()), option::of(reorder), numbers).prop_map(
        |(duplicate, corrupt, reorder, packets)| FaultsSpec {
            duplicate,
            corrupt,
            reorder,
            packets,
        },
    );
    option::weighted(0.2, faults)
}

fn netem() -> impl Strategy<Value = Option<NetemSpec>> {
    let netem = (20..2_000u64, any::<bool>(), any::<bool>()).prop_map(
        |(limit, limit_includes_queue, jitter_per_batch)| NetemSpec {
            limit_packets: Some(limit),
            limit_includes_queue,
            jitter_per_batch,
        },
    );
    option::weighted(0.1, netem)
}

fn framing() -> impl Strategy<Value = Option<FramingSpec>> {
    let cells = prop_oneof![Just(CellsSpec::None), Just(CellsSpec::Atm), Just(CellsSpec::Ptm)];
    let framing = (-64..=256, 0..=256u32, cells).prop_map(|(overhead_bytes, mpu_bytes, cells)| {
        FramingSpec { overhead_bytes, mpu_bytes, cells }
    });
    option::weighted(0.2, framing)
}

/// Capacity on demand of which half is constant, so that queues drain.
fn grants(rate_bps: u64) -> impl Strategy<Value = Option<GrantsSpec>> {
    let grants = (5..60u64, 0..700u64, any::<bool>(), any::<bool>(), 0.0..0.1).prop_map(
        move |(superframe_ms, latency_ms, volume_based, spread, request_loss)| GrantsSpec {
            superframe_ns: superframe_ms * MS,
            latency_ns: latency_ms * MS,
            request_interval_ns: 100 * MS,
            constant_bps: rate_bps / 2,
            rate_based: (!volume_based).then_some(RateBasedSpec {
                over_per_mille: 1_100,
                gain_per_mille: 1_000,
                persistence_ns: 500 * MS,
            }),
            volume_based,
            free_bps: rate_bps / 10,
            quantum_bps: 1,
            contention: None,
            request_loss,
            spread,
        },
    );
    option::weighted(0.1, grants)
}

fn any_link(name: &'static str, rate_bps: u64, rtt_ns: u64) -> impl Strategy<Value = LinkSpec> {
    let bdp = bdp_bytes(rate_bps, rtt_ns);
    let extras = (faults(), netem(), grants(rate_bps), framing());
    (capacity(rate_bps), queue(bdp), delay(rtt_ns / 8), loss(), outages(), frames(), extras)
        .prop_map(move |(capacity, queue, delay, loss, outages, frames, extras)| LinkSpec {
            grants: match capacity {
                CapacitySpec::Constant { rate_bps } if frames.is_none() && extras.3.is_none() => {
                    extras.2.filter(|it| it.constant_bps <= rate_bps)
                }
                _ => None,
            },
            name: name.to_owned(),
            capacity,
            queue,
            classes: None,
            delay,
            loss,
            outages,
            frames,
            framing: extras.3,
            faults: extras.0,
            netem: extras.1,
            ack_thinning: rate_bps.is_multiple_of(3).then_some(AckThinningSpec {
                most: 1 + (rate_bps % 20) as u32,
                hold_ns: 1 + rate_bps % (20 * MS),
            }),
            loss_steps: Vec::new(),
            quick_start: rate_bps
                .is_multiple_of(2)
                .then_some(QuickStartSpec { allowance_bps: rate_bps, interval_ns: 100 * MS }),
        })
}

/// A time that is constant, or the mean of exponential ones.
fn time(ns: u64, drawn: bool) -> Quantity {
    let exponential = Distribution::of(DistributionKind::Exponential { mean: ns.max(1) as f64 });
    if drawn { Quantity::Drawn(exponential) } else { ns.into() }
}

/// `least` and `most` bytes, where there is one transfer.
fn source(finite: bool, (least, most): (u64, u64)) -> BoxedStrategy<SourceSpec> {
    let fixed =
        log_uniform(least, most).prop_map(|bytes| SourceSpec::Fixed { bytes: bytes.into() });
    let responses = (log_uniform(1, 100_000), 0..500 * MS, any::<bool>(), 1..5u64).prop_map(
        |(bytes, think_ns, drawn, count)| SourceSpec::RequestResponse {
            bytes: bytes.into(),
            think_ns: time(think_ns, drawn),
            count: Some(count.into()),
        },
    );
    if finite {
        return prop_oneof![fixed, responses].boxed();
    }
    let on_off = (MS..500 * MS, MS..500 * MS, any::<bool>()).prop_map(|(on_ns, off_ns, drawn)| {
        SourceSpec::OnOff { on_ns: time(on_ns, drawn), off_ns: time(off_ns, drawn) }
    });
    prop_oneof![3 => Just(SourceSpec::Bulk), 1 => fixed, 1 => responses, 1 => on_off].boxed()
}

/// A spec that shows itself as the JSON that repeats the run.
#[derive(Clone)]
pub struct Case(pub RunSpec);

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).map_err(|_| std::fmt::Error)?)
    }
}

#[derive(Clone, Debug)]
struct Network {
    links: Vec<LinkSpec>,
    two_links: bool,
    reverse_link: bool,
    rtt_ns: u64,
    duration_ns: u64,
    /// What the host remembers, if anything, so that its flows find what others have left.
    memory: Option<usize>,
    /// All flows are repetitions of one, each of which begins when the one before has completed.
    repeated: bool,
}

/// Beside the sizes of windows: what depends on none of them.
#[derive(Clone, Copy, Debug)]
struct Traits {
    initial_pacing: bool,
    autotuning: bool,
    gro: bool,
    old: bool,
    remembers: bool,
}

fn any_traits() -> impl Strategy<Value = Traits> {
    let traits = (any::<bool>(), any::<bool>(), any::<bool>(), 0..5u32, 0..4u32);
    traits.prop_map(|(initial_pacing, autotuning, gro, old, remembers)| Traits {
        initial_pacing,
        autotuning,
        gro,
        old: old == 0,
        remembers: remembers > 0,
    })
}

/// Changes of a flow's route: its data cross the links before `back`, if any, in any order. The
/// ledger tells data from ACKs by their links.
fn routes(network: &Network, duration_ns: u64) -> impl Strategy<Value = Vec<RouteSpec>> + use<> {
    let all = || (0..1 + u32::from(network.two_links)).map(LinkId).collect::<Vec<_>>();
    let back = vec![LinkId(1 + u32::from(network.two_links)); usize::from(network.reverse_link)];
    let most = back.len();
    let path = prop::sample::subsequence(all(), 1..=all().len()).prop_shuffle();
    let change = (path, prop::sample::subsequence(back, 0..=most));
    let changes = prop::collection::btree_map(1..duration_ns, change, 1..4).prop_map(|changes| {
        let route = |(at_ns, (path, reverse_path))| RouteSpec { at_ns, path, reverse_path };
        changes.into_iter().map(route).collect()
    });
    option::weighted(0.3, changes).prop_map(Option::unwrap_or_default)
}

/// Applications that read slowly, with reads of several sizes and pauses.
fn reader() -> impl Strategy<Value = Option<ReaderSpec>> {
    let pause =
        (0..2 * S, MS..500 * MS, any::<bool>()).prop_map(|(at_ns, duration_ns, repeats)| {
            PauseSpec { at_ns, duration_ns, every_ns: repeats.then_some(duration_ns + 200 * MS) }
        });
    let reader =
        (option::of(log_uniform(MBPS, GBPS)), log_uniform(1_000, 1 << 20), option::of(pause))
            .prop_map(|(rate_bps, read_bytes, pause)| ReaderSpec {
                rate_bps,
                read_bytes,
                pauses: pause.into_iter().collect(),
            });
    option::weighted(0.25, reader)
}

fn timers() -> impl Strategy<Value = Option<TimersSpec>> {
    let hz = option::of(prop::sample::select(vec![100u32, 250, 300, 1_000]));
    let timers = (hz, 0..100 * US, prop_oneof![Just(0), 1..20 * MS])
        .prop_map(|(hz, slack_ns, resolution_ns)| TimersSpec { hz, slack_ns, resolution_ns });
    option::weighted(0.25, timers)
}

fn any_flow(
    index: usize,
    network: &Network,
    finite: bool,
) -> impl Strategy<Value = FlowSpec> + use<> {
    let Network { two_links, reverse_link, rtt_ns, duration_ns, memory, .. } = *network;
    // What is remembered shows in transfers of more than a round trip.
    let bytes = if network.repeated { (100_000, 2_000_000) } else { (1, 400_000) };
    let windows = (1..40u32, prop_oneof![Just(60_000_000), log_uniform(1_448, 500_000)]);
    let times = (0..duration_ns.min(2 * S) / 2, option::weighted(0.2, 1..duration_ns));
    let nic = option::weighted(0.3, log_uniform(MBPS, 10 * GBPS));
    (
        prop::sample::select(CONTROLLERS.iter().map(|row| row.entry.name).collect::<Vec<_>>()),
        source(finite, bytes),
        (any::<bool>(), any::<bool>(), reader(), timers()),
        (windows, any_traits(), mtu(&network.links)),
        times,
        nic,
        (0..=rtt_ns, any::<bool>()),
        routes(network, duration_ns.min(10 * S)),
    )
        .prop_map(
            move |(
                controller,
                source,
                (pacing, ecn, reader, timers),
                (windows, traits, mtu_bytes),
                (start_ns, length_ns),
                nic,
                (delay, long),
                routes,
            )| {
                // Room for a segment at least.
                let receive_window_bytes = u64::max(windows.1, u64::from(mtu_bytes));
                FlowSpec {
                    mtu_bytes,
                    dscp: [None, Some(1), Some(34), Some(46)][start_ns as usize % 4],
                    path: if two_links && long {
                        vec![LinkId(0), LinkId(1)]
                    } else {
                        vec![LinkId(0)]
                    },
                    reverse_path: if reverse_link {
                        vec![LinkId(1 + u32::from(two_links))]
                    } else {
                        vec![]
                    },
                    routes,
                    start_ns,
                    stop_ns: length_ns.filter(|_| !finite).map(|length_ns| start_ns + length_ns),
                    source,
                    slow_start: any_slow_start(controller, windows.0),
                    memory: memory.filter(|_| traits.remembers).map(memory_named),
                    pacing,
                    ecn,
                    reader,
                    timers,
                    initial_window_packets: windows.0,
                    initial_pacing: traits.initial_pacing,
                    receive_window_bytes,
                    initial_receive_window_bytes: receive_window_bytes.min(65_535),
                    receive_window_autotuning: traits.autotuning,
                    gro: traits.gro,
                    linux: if traits.old { LinuxRelease::V4_15 } else { LinuxRelease::V6_1 },
                    nic_rate_bps: nic,
                    ..flow(&format!("flow {index}"), controller, delay)
                }
            },
        )
}

/// One of all slow starts, for a controller that is composed with one.
fn any_slow_start(controller: &str, draw: u32) -> Option<Algorithm> {
    let row = &SLOW_STARTS[draw as usize % SLOW_STARTS.len()];
    slow_start(controller).map(|_| algorithm(row.entry.name))
}

/// Makes all flows the first one again, each after the one before it.
fn repeat(flows: &mut [FlowSpec], memory: Option<usize>) {
    flows[0].memory = memory.map(memory_named);
    // So that all are done in time.
    flows[0].receive_window_bytes =
        flows[0].receive_window_bytes.max(20 * u64::from(flows[0].mtu_bytes));
    let first = flows[0].clone();
    for (i, flow) in (0..).zip(flows).skip(1) {
        *flow = FlowSpec { name: flow.name.clone(), after: Some(FlowId(i - 1)), ..first.clone() };
    }
}

/// A memory of the peer that all flows have, by its position.
fn memory_named(position: usize) -> Algorithm {
    algorithm(MEMORIES[position].entry.name)
}

/// One to four flows over one or two links, and perhaps a congested way back. `finite`: every flow
/// has so much to send and no more, and 1000 s to do it; otherwise the run ends with packets on
/// their way.
pub fn any_run(finite: bool) -> impl Strategy<Value = Case> {
    let shape = (
        log_uniform(MBPS, GBPS),
        log_uniform(MBPS, GBPS),
        log_uniform(MS, 600 * MS),
        any::<bool>(),
        option::weighted(0.4, log_uniform(64_000, 100 * MBPS)),
        (option::weighted(0.8, 0..MEMORIES.len()), any::<bool>()),
    );
    shape
        .prop_flat_map(move |(rate_bps, second_bps, rtt_ns, two_links, reverse_bps, host)| {
            let slowest_bps = if two_links { rate_bps.min(second_bps) } else { rate_bps };
            let busy_ns = PACKETS * PACKET_BITS * S / slowest_bps;
            let duration_ns = if finite { 1_000 * S } else { busy_ns.max(4 * rtt_ns) };
            (
                any_link("first", rate_bps, rtt_ns),
                any_link("second", second_bps, rtt_ns),
                any_link("back", reverse_bps.unwrap_or(MBPS), rtt_ns),
            )
                .prop_map(move |(first, second, back)| {
                    let mut links = vec![first];
                    links.extend(two_links.then_some(second));
                    links.extend(reverse_bps.map(|_| back));
                    let reverse_link = reverse_bps.is_some();
                    let (memory, repeated) = host;
                    Network {
                        links,
                        two_links,
                        reverse_link,
                        rtt_ns,
                        duration_ns,
                        memory,
                        repeated,
                    }
                })
        })
        .prop_flat_map(move |network| {
            let flows: Vec<_> = (0..4).map(|i| any_flow(i, &network, finite)).collect();
            (Just(network), flows, 1..=4usize, any::<u64>())
        })
        .prop_map(move |(network, mut flows, count, seed)| {
            flows.truncate(count);
            if network.repeated && finite {
                repeat(&mut flows, network.memory);
            }
            let interval_ns = if finite { 10 * S } else { 100 * MS };
            Case(RunSpec { seed, interval_ns, ..run(network.duration_ns, network.links, flows) })
        })
}
