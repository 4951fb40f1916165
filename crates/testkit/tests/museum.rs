//! Published faults of congestion control and loss recovery as unit tests of quinn-proto. Each test
//! names the stack that had the fault, and asserts a criterion that an observer can measure. Where
//! quinn-proto 0.11.19 or noq-proto 1.4.0 does not meet the criterion, the test asserts the criterion's
//! opposite, so that it fails when the stack is repaired. The test that takes more than a few seconds
//! is ignored: `cargo test -p jostle-testkit -- --ignored`.

use std::time::Duration;

use jostle_testkit::{
    CLIENT, FramesSpec, HostId, Link, Network, PacketLimit, Quantile, Rate, SERVER, Side,
    Simulation, Span, Time, UdpHost,
};
use quinn_proto::TransportConfig;

use crate::quinn_stack::host::{QuicEndpoint, transport};

const WITHOUT_END: u64 = 1 << 40;

/// A client that sends to a server.
struct Connection {
    simulation: Simulation<UdpHost<QuicEndpoint>>,
    client: HostId,
    server: HostId,
}

/// A window of the congestion controller over time.
type Windows = Vec<(Time, u64)>;

const fn at(ms: u64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

/// A link with half of the RTT, and a queue of `bdp_percent`.
fn link(mbps: u64, rtt_ms: u64, bdp_percent: u64) -> Link {
    let rate = Rate::from_mbps(mbps);
    let rtt = Span::from_ms(rtt_ms);
    let queue_bytes = rate.bytes_in(rtt) * bdp_percent / 100;
    Link::new(rate, Span::from_ns(rtt.as_ns() / 2)).queue(PacketLimit::Bytes(queue_bytes))
}

/// An outage of both directions.
fn with_outage(link: Link, from_ms: u64, to_ms: u64) -> Link {
    link.loss_steps([(Span::from_ms(from_ms), 1.0), (Span::from_ms(to_ms), 0.0)])
}

impl Connection {
    fn new(forward: Link, reverse: Link, seed: u64, config: impl Fn(&mut TransportConfig)) -> Self {
        let mut simulation = Simulation::new(&Network::new(&[forward], &[reverse]), seed).unwrap();
        let configured = || {
            let mut transport = transport();
            transport.send_window(8 << 20).max_idle_timeout(None);
            config(&mut transport);
            transport
        };
        let client = QuicEndpoint::client(seed, configured(), SERVER);
        let client = simulation.add(Side::Left, UdpHost::new(CLIENT, client));
        let server = QuicEndpoint::server(seed, configured());
        let server = simulation.add(Side::Right, UdpHost::new(SERVER, server));
        Self { simulation, client, server }
    }

    fn symmetric(link: Link, seed: u64) -> Self {
        Self::new(link.clone(), link, seed, |_| {})
    }

    fn send(&mut self, bytes: u64) {
        self.simulation[self.client].send(bytes);
    }

    fn run_to(&mut self, time: Time) {
        self.simulation.run_to(time).unwrap();
    }

    /// Runs to a time and returns each value of the window.
    fn windows_to(&mut self, time: Time) -> Windows {
        let mut windows = vec![(self.simulation.now(), self.window())];
        let client = self.client;
        let end = self.simulation.run_until(time, |simulation| {
            let window = simulation.peek_mut(client).connection().stats().path.cwnd;
            if windows.last().is_none_or(|(_, last)| *last != window) {
                windows.push((simulation.now(), window));
            }
            false
        });
        assert!(end.is_err());
        assert!(self.simulation[client].lost.is_none(), "{:?}", self.simulation[client].lost);
        windows
    }

    /// Runs until the server has received this many messages.
    fn until_received(&mut self, messages: usize, limit: Time) -> Time {
        let server = self.server;
        let is_complete =
            |it: &mut Simulation<UdpHost<QuicEndpoint>>| it[server].received.len() >= messages;
        self.simulation.run_until(limit, is_complete).unwrap()
    }

    fn window(&mut self) -> u64 {
        self.path().cwnd
    }

    /// Window in full-sized packets.
    fn packets(&mut self) -> f64 {
        let path = self.path();
        path.cwnd as f64 / f64::from(path.current_mtu)
    }

    fn path(&mut self) -> quinn_proto::PathStats {
        self.simulation.peek_mut(self.client).connection().stats().path
    }
}

/// A reduction of the window: its time and the window after it ÷ the window before it.
fn reductions(windows: &[(Time, u64)]) -> Vec<(Time, f64)> {
    let pairs = windows.windows(2).filter(|pair| pair[1].1 < pair[0].1);
    pairs.map(|pair| (pair[1].0, pair[1].1 as f64 / pair[0].1 as f64)).collect()
}

fn lost_share(before: &quinn_proto::PathStats, after: &quinn_proto::PathStats) -> f64 {
    let sent = after.sent_packets - before.sent_packets;
    (after.lost_packets - before.lost_packets) as f64 / sent as f64
}

fn smallest(windows: &[(Time, u64)]) -> u64 {
    windows.iter().map(|(_, window)| *window).min().unwrap()
}

fn largest(windows: &[(Time, u64)]) -> u64 {
    windows.iter().map(|(_, window)| *window).max().unwrap()
}

/// Linux before 4.3: CUBIC's epoch runs while the application is silent (RFC 9438 §4.2).
///
/// Fault of quinn-proto: the window doubles within 5 RTTs after a pause of 30 s.
#[test]
fn m03_cubic_jumps_after_a_pause() {
    let mut flow = Connection::symmetric(link(100, 100, 100).lose([600]), 1);
    flow.send(WITHOUT_END);
    flow.run_to(at(20_000));
    let client = flow.client;
    flow.simulation[client].stop();
    flow.run_to(at(50_000));
    let (window, before) = (flow.window(), flow.path());
    flow.send(WITHOUT_END);
    let windows = flow.windows_to(at(50_500));
    let growth = largest(&windows) as f64 / window as f64;
    let lost = lost_share(&before, &flow.path());
    println!("M03: growth {growth:.2} (criterion: at most 1.1), lost {lost:.3} (at most 0.01)");
    assert!(growth > 2.0);
    assert!(lost > 0.1);
}

/// quiche before 0.26.1: with two packets in flight, an ACK is taken for the end of an idle period.
#[test]
fn m04_growth_resumes_after_heavy_loss() {
    let seeds = 100;
    let (mut ends, mut small) = (Vec::new(), 0);
    for seed in 0..seeds {
        let heavy = link(100, 10, 100).loss_steps([(Span::ZERO, 0.3), (Span::from_secs(2), 0.0)]);
        let mut flow = Connection::symmetric(heavy, seed);
        flow.send(10_000_000);
        flow.run_to(at(3_000));
        small += u64::from(flow.packets() < 10.0);
        ends.push(flow.until_received(1, at(60_000)).as_secs_f64());
    }
    ends.sort_by(f64::total_cmp);
    let p95 = ends[ends.len() * 95 / 100 - 1];
    println!("M04: p95 {p95:.2} s (criterion: at most 6), {small} windows below 10 packets");
    assert!(p95 <= 6.0);
    // A connection whose PTO has backed off before the loss ends.
    assert!(small <= seeds / 20);
}

/// quinn before 0.7.0: of a batch of ACKs, only the first one grew the window.
#[test]
fn m06_batches_of_acks_do_not_slow_the_start() {
    let mut reverse = link(100, 100, 200);
    let wait = |probability| Quantile { probability, value_ns: 5_000_000 };
    let contention = vec![wait(0.0), wait(1.0)];
    reverse.spec().frames = Some(FramesSpec { packets: 1_024, bytes: 1 << 24, contention });
    let mut flow = Connection::new(link(100, 100, 200), reverse, 1, |_| {});
    flow.send(1_000_000);
    let end = flow.until_received(1, at(10_000));
    println!("M06: {} s (criterion: at most 9 RTTs of 105 ms)", end.as_secs_f64());
    assert!(end <= at(9 * 105));
}

/// neqo before 0.29.0: if the window exceeds the BDP, every round counts as application-limited.
#[test]
fn m07a_a_paced_flow_uses_the_link() {
    let mut flow = Connection::symmetric(link(50, 50, 200), 1);
    flow.send(WITHOUT_END);
    flow.run_to(at(5_000));
    let windows = flow.windows_to(at(60_000));
    let (least, most) = (smallest(&windows), largest(&windows));
    let throughput = flow.simulation.measures().forward.throughput_bps;
    println!("M07a: window {least} to {most}, {throughput} bit/s (criterion: 10 %, 45 Mbit/s)");
    assert!(most as f64 >= 1.1 * least as f64);
    assert!(throughput >= 45e6);
}

/// neqo 0.29.0: a small write counts as pacing-limited, and the window grows without use.
#[test]
fn m07b_small_writes_do_not_grow_the_window() {
    let mut flow = Connection::symmetric(link(50, 50, 200), 1);
    let initial = flow.window();
    for round in 1..600 {
        flow.run_to(at(100 * round));
        flow.send(3_600);
    }
    let window = flow.window();
    println!("M07b: window {initial}, then {window} (criterion: at most twice)");
    assert!(window <= 2 * initial);
}

/// mvfst before 2023: CUBIC grows although the window is never used.
#[test]
fn m08_media_do_not_grow_the_window_for_a_burst() {
    let mut flow = Connection::symmetric(link(100, 50, 50), 1);
    let initial = flow.window();
    for frame in 50..3_000 {
        flow.run_to(at(20 * frame));
        flow.send(2_500);
    }
    flow.run_to(at(60_200));
    let (window, before) = (flow.window(), flow.path());
    flow.send(20_000_000);
    let server = flow.server;
    let messages = flow.simulation[server].received.len() + 1;
    flow.until_received(messages, at(100_000));
    let lost = lost_share(&before, &flow.path());
    println!("M08: window {initial}, then {window} (criterion: at most twice), lost {lost:.3}");
    assert!(window <= 2 * initial);
    // The slow start of a flow with this window overshoots: not the fault of the entry, but above its
    // limit of 5 %.
    assert!((0.05..0.08).contains(&lost));
}

/// quinn before May 2026: at a second loss below the old maximum, β applied to the reduced maximum.
#[test]
fn m11_fast_convergence_reduces_the_window_once() {
    let path = link(50, 100, 400);
    let mut flow = Connection::new(path.clone().lose([600, 12_000]), path, 1, |_| {});
    flow.send(WITHOUT_END);
    let windows = flow.windows_to(at(6_000));
    let reductions = reductions(&windows);
    println!("M11: {reductions:?} (criterion: 0.70 ± 0.02)");
    assert_eq!(reductions.len(), 2);
    assert!(reductions.iter().all(|(_, ratio)| (ratio - 0.7).abs() < 0.02));
}

/// quinn before 0.8.0: the minimum window in bytes was multiplied by the packet size.
#[test]
fn m13_the_minimum_window_is_two_packets() {
    let path = with_outage(link(2, 50, 100), 20_000, 25_000);
    let mut flow = Connection::symmetric(path, 1);
    flow.send(WITHOUT_END);
    flow.run_to(at(25_000));
    let windows = flow.windows_to(at(60_000));
    let least = smallest(&windows) as f64 / f64::from(flow.path().current_mtu);
    let path = flow.path();
    let lost = path.lost_packets as f64 / path.sent_packets as f64;
    println!("M13: window {least:.1} packets (criterion: at most 4), lost {lost:.3} (0.05)");
    assert!(least <= 4.0);
    assert!(lost <= 0.05);
}

/// neqo before 0.6.6: every loss of one round reduces the window.
#[test]
fn m14_five_losses_of_a_window_are_one_reduction() {
    let path = link(50, 100, 400);
    let losses = (0..5).map(|i| 12_000 + 40 * i);
    let lossy = path.clone().lose([600]).lose(losses);
    let mut flow = Connection::new(lossy, path, 1, |_| {});
    flow.send(WITHOUT_END);
    let windows = flow.windows_to(at(6_000));
    let reductions = reductions(&windows);
    println!("M14: {reductions:?} (criterion: one of at least 0.65 for the five losses)");
    assert_eq!(flow.path().lost_packets, 6);
    assert_eq!(reductions.len(), 2);
    assert!(reductions[1].1 >= 0.65);
}

/// msquic before 2.0.0: persistent congestion reduces ssthresh twice (RFC 9002 §7.6.2). Only data are
/// lost: the first ACK after an outage of both directions would also grow the window.
///
/// Fault of quinn-proto: β applies to the window that the loss has already reduced.
#[test]
fn m15_persistent_congestion_reduces_ssthresh_twice() {
    let path = link(20, 50, 100);
    let mut flow = Connection::new(with_outage(path.clone(), 10_000, 14_000), path, 1, |_| {});
    flow.send(WITHOUT_END);
    flow.run_to(at(10_200));
    let window = flow.window();
    let windows = flow.windows_to(at(30_000));
    let (collapse, _) = *windows.iter().find(|(_, it)| *it < 5_000).unwrap();
    let is_back = |(time, it): &&(Time, u64)| *time > collapse && *it as f64 >= 0.6 * window as f64;
    let (back, _) = *windows.iter().find(is_back).unwrap();
    let rtts = back.since(collapse).as_secs_f64() / 0.05;
    // log2(0.6 × 165 / 2) + 3: slow start from two packets.
    println!("M15: 0.6 of the window after {rtts:.0} RTTs (criterion: at most 8.6)");
    assert!(rtts > 20.0);
}

/// neqo 0.13.1: a PTO declares two packets lost, and the other lost packets wait for more PTOs. An
/// outage of 300 ms, as in the entry, would be persistent congestion (RFC 9002 §7.6).
#[test]
fn m40_a_lost_flight_is_recovered_at_the_first_ack() {
    let path = with_outage(link(100, 50, 200), 2_000, 2_200);
    let mut flow = Connection::symmetric(path, 1);
    flow.send(1_000_000);
    flow.run_to(at(2_000));
    assert!(flow.packets() >= 200.0);
    flow.send(240_000);
    flow.run_to(at(2_200));
    let (client, packets) = (flow.client, flow.simulation.counts(flow.client).received.packets);
    let first_ack = flow
        .simulation
        .run_until(at(20_000), |it| it.counts(client).received.packets > packets)
        .unwrap();
    let end = flow.until_received(2, at(20_000));
    println!(
        "M40: first ACK {:.3} s, end {:.3} s after the outage (criterion: 4 RTTs of 50 ms between)",
        first_ack.since(at(2_200)).as_secs_f64(),
        end.since(at(2_200)).as_secs_f64()
    );
    // The PTO of 100 ms has backed off once.
    assert!(first_ack <= at(2_200) + Span::from_ms(250));
    assert!(end <= first_ack + Span::from_ms(200));
}

/// neqo, quiche, s2n-quic: the back-off of the PTO overflows in a long outage.
#[test]
fn m42_a_long_outage_is_survived() {
    let path = with_outage(link(20, 50, 100), 10_000, 610_000);
    let idle = |transport: &mut TransportConfig| {
        transport.max_idle_timeout(Some(Duration::from_secs(1_800).try_into().unwrap()));
    };
    let mut flow = Connection::new(path.clone(), path, 1, idle);
    flow.send(WITHOUT_END);
    flow.run_to(at(10_050));
    let sent = flow.simulation.counts(flow.client).sent.packets;
    flow.run_to(at(610_000));
    let during = flow.simulation.counts(flow.client).sent.packets - sent;
    let (server, bytes) = (flow.server, flow.simulation[flow.server].received_bytes);
    let end = flow
        .simulation
        .run_until(at(1_220_000), |it| it[server].received_bytes > bytes + 1_000_000)
        .unwrap();
    let after = end.since(at(610_000)).as_secs_f64();
    println!(
        "M42: {during} packets in the outage (criterion: at most 40), back after {after:.0} s"
    );
    assert!(during <= 40);
}

/// mvfst, neqo, s2n-quic: a client without packets in flight arms no timer in the handshake.
#[test]
fn m43_handshakes_survive_loss() {
    let mut times = Vec::new();
    for seed in 0..500 {
        let mut flow = Connection::symmetric(link(10, 50, 400).loss(0.3), seed);
        let client = flow.client;
        let end = flow.simulation.run_until(at(60_000), |it| it[client].connected_at.is_some());
        times.push(end.unwrap().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    // Three PTOs: 1, 2 and 4 s.
    let late = times.iter().filter(|time| **time > 7.0).count();
    println!("M43: p95 {:.1} s, maximum {:.1} s, {late} of 500 above 7 s", times[474], times[499]);
    assert!(times[474] <= 7.0);
}

macro_rules! m44 {
    ($name:ident, $stack:ident, $check:expr) => {
        /// noq before March 2026: the back-off of the PTO has no limit after an outage.
        #[test]
        fn $name() {
            use crate::$stack::host::{QuicEndpoint, transport};
            let configured = || {
                let mut transport = transport();
                transport.max_idle_timeout(None).send_window(8 << 20);
                transport
            };
            let path = with_outage(link(20, 50, 100), 10_000, 70_000);
            let mut simulation = Simulation::new(&Network::symmetric(&path), 1).unwrap();
            let mut client = QuicEndpoint::client(1, configured(), SERVER);
            client.send(WITHOUT_END);
            let client = UdpHost::new(CLIENT, client);
            let client = simulation.add(Side::Left, client);
            let server = QuicEndpoint::server(1, configured());
            let server = simulation.add(Side::Right, UdpHost::new(SERVER, server));
            simulation.run_to(at(10_200)).unwrap();
            let packets = simulation.counts(server).received.packets;
            let (mut sent, mut probes) = (simulation.counts(client).sent.packets, Vec::new());
            let end = simulation
                .run_until(at(200_000), |it| {
                    if it.counts(client).sent.packets > sent {
                        sent = it.counts(client).sent.packets;
                        probes.push(it.now());
                    }
                    it.counts(server).received.packets > packets
                })
                .unwrap();
            let gap = |pair: &[Time]| pair[1].since(pair[0]).as_secs_f64();
            let gaps: Vec<_> = probes.windows(2).map(gap).collect();
            let silence = end.since(at(70_000)).as_secs_f64();
            println!(
                "M44 {}: {silence:.1} s after the outage, probes {gaps:.1?}",
                stringify!($stack)
            );
            let check: fn(f64, &[f64]) = $check;
            check(silence, &gaps);
        }
    };
}

// Without a cap, the silence is at most as long as the outage.
m44!(m44_quinn_backs_off_without_a_cap, quinn_stack, |silence, gaps| {
    assert!(silence <= 60.0);
    assert!(gaps.iter().any(|gap| *gap > 10.0));
});

// Fault of noq-proto: the cap of 2 s applies to the growth of the interval, not to the interval.
m44!(m44_noq_grows_the_interval_by_its_cap, noq_stack, |silence, gaps| {
    assert!(silence > 2.5 && gaps.iter().any(|gap| *gap > 8.0));
});

/// RFC 9002, erratum 7539: an RTT sample of an ACK whose largest packet is not newly acknowledged.
#[test]
fn m45_lost_acks_do_not_inflate_the_rtt() {
    let path = link(20, 50, 100);
    let mut flow = Connection::new(path.clone(), path.loss(0.2), 1, |_| {});
    flow.send(WITHOUT_END);
    flow.run_to(at(10_000));
    let rtt = Span::from_ns(flow.path().rtt.as_nanos() as u64);
    let queued = flow.simulation.measures().link("forward0").queue_delay_p95_s.unwrap();
    let limit = Span::from_ms(50 + 25 + 5) + Span::from_secs_f64(queued);
    println!("M45: smoothed RTT {rtt:?} (criterion: at most {limit:?})");
    assert!(rtt <= limit);
}

/// Found with the kit: a slow start that overshoots a queue of 4 BDP loses every second of some 5,000
/// packets, and the receiver closes the connection because its stream has too many gaps.
#[test]
fn quinn_closes_a_connection_with_many_gaps() {
    let mut flow = Connection::symmetric(link(50, 100, 400), 1);
    flow.send(WITHOUT_END);
    flow.run_to(at(6_000));
    let reason = format!("{:?}", flow.simulation[flow.server].lost);
    assert!(reason.contains("too many gaps in stream buffer"), "{reason}");
}
