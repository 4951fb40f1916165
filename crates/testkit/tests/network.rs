//! What the network does to datagrams.

use std::net::{IpAddr, SocketAddr};

use jostle_testkit::{
    Datagram, Ecn, Endpoint, FaultSpec, HostId, Link, Network, NetworkError, PacketLimit,
    ParameterValue, Rate, Side, Simulation, Span, Time, Transmit, UdpHost, Unfinished,
};

use crate::files::SharedBuffer;

const LEFT: &str = "10.0.0.1:1000";
const RIGHT: &str = "10.0.1.1:1000";

/// Sends datagrams at given times, and records those that arrive.
#[derive(Default)]
struct Recorder {
    to_send: Vec<(Time, Transmit, Vec<u8>)>,
    arrived: Vec<(Time, SocketAddr, Ecn, Vec<u8>)>,
    /// A deadline that does not move.
    stuck_at: Option<Time>,
}

impl Recorder {
    fn send(&mut self, at: Time, transmit: Transmit, payload: &[u8]) {
        self.to_send.push((at, transmit, payload.to_vec()));
    }
}

impl Endpoint for Recorder {
    fn handle(&mut self, now: Time, datagram: &Datagram<'_>) {
        self.arrived.push((now, datagram.source, datagram.ecn, datagram.payload.to_vec()));
    }

    fn poll_transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Transmit> {
        let (at, ..) = self.to_send.first()?;
        if *at > now {
            return None;
        }
        let (_, transmit, bytes) = self.to_send.remove(0);
        payload.extend_from_slice(&bytes);
        Some(transmit)
    }

    fn deadline(&mut self) -> Option<Time> {
        self.to_send.first().map(|(at, ..)| *at).or(self.stuck_at)
    }
}

type Recorders = Simulation<UdpHost<Recorder>>;

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn right() -> Transmit {
    Transmit::to(RIGHT.parse().unwrap())
}

/// 10 Mbit/s and 10 ms.
fn link() -> Link {
    Link::new(Rate::from_mbps(10), Span::from_ms(10))
}

fn two_hosts(network: &Network) -> (Recorders, HostId, HostId) {
    let mut simulation = Simulation::new(network, 1).unwrap();
    let host = |address: &str| UdpHost::new(address.parse().unwrap(), Recorder::default());
    let left = simulation.add(Side::Left, host(LEFT));
    let right = simulation.add(Side::Right, host(RIGHT));
    (simulation, left, right)
}

/// Runs a network with this link from the left to the right side, over which 1,208-byte payloads
/// leave back to back: 1 ms each, with headers.
fn ten_packets(forward: Link) -> (Recorders, HostId) {
    let (mut simulation, left, right_host) = two_hosts(&Network::new(&[forward], &[link()]));
    for _ in 0..10 {
        let transmit = Transmit { ecn: Ecn::Capable, ..right() };
        simulation[left].send(Time::ZERO, transmit, &[7; 1_208]);
    }
    simulation.run_to(ms(1_000)).unwrap();
    (simulation, right_host)
}

fn arrivals(simulation: &Recorders, host: HostId) -> Vec<u64> {
    simulation[host].arrived.iter().map(|(at, ..)| at.as_ns() / 1_000_000).collect()
}

#[test]
fn packets_take_the_time_of_rate_and_delay() {
    let (mut simulation, right) = ten_packets(link());
    assert_eq!(arrivals(&simulation, right), (11..21).collect::<Vec<_>>());
    let forward = simulation.measures().forward;
    assert_eq!((forward.delivered_packets, forward.delivered_bytes), (10, 12_500));
    assert_eq!(forward.throughput_bps, 100_000.0);
    let delay = forward.delay.unwrap();
    assert_eq!((delay.min(), delay.max()), (Span::from_ms(11), Span::from_ms(20)));
    assert_eq!(forward.links[0].queue_max_bytes, 9 * 1_250);
}

#[test]
fn a_full_queue_drops() {
    let (mut simulation, right) = ten_packets(link().queue(PacketLimit::Packets(3)));
    assert_eq!(arrivals(&simulation, right), [11, 12, 13, 14]);
    let measures = simulation.measures();
    assert_eq!(measures.link("forward0").dropped["overflow"], 6);
    assert_eq!(measures.link("forward0").dropped_packets(), 6);
}

#[test]
fn faults_hit_the_packets_with_their_numbers() {
    let (mut simulation, right) = ten_packets(
        link()
            .lose([2, 3])
            .mark([5])
            .fault(FaultSpec::Duplicate, [7])
            .fault(FaultSpec::Corrupt, [8])
            .fault(FaultSpec::Late { by_ns: 5_500_000 }, [4]),
    );
    assert_eq!(arrivals(&simulation, right), [11, 15, 16, 17, 17, 19, 19, 20]);
    let ecn: Vec<_> = simulation[right].arrived.iter().map(|(_, _, ecn, _)| *ecn).collect();
    let marked = ecn.iter().filter(|it| **it == Ecn::Marked).count();
    assert_eq!((marked, ecn[1]), (1, Ecn::Marked));
    let measures = simulation.measures();
    assert_eq!(measures.link("forward0").marked_packets(), 1);
    assert_eq!(simulation.counts(right).corrupted.packets, 1);
    assert_eq!(simulation.counts(right).received.packets, 8);
}

#[test]
fn a_queue_discipline_marks_instead_of_dropping() {
    let marking = link()
        .discipline("codel", [("ecn", ParameterValue::Bool(true))])
        .rate_steps([(Span::ZERO, Rate::from_mbps(1))]);
    let (mut simulation, left, right_host) = two_hosts(&Network::new(&[marking], &[link()]));
    for i in 0..300 {
        let transmit = Transmit { ecn: Ecn::Capable, ..right() };
        simulation[left].send(ms(5 * i), transmit, &[7; 1_000]);
    }
    simulation.run_to(ms(10_000)).unwrap();
    let marked =
        simulation[right_host].arrived.iter().filter(|(_, _, ecn, _)| *ecn == Ecn::Marked).count();
    assert!(marked > 5);
    let link = simulation.measures().link("forward0").clone();
    assert_eq!((link.marked_packets(), link.dropped_packets()), (marked as u64, 0));
}

#[test]
fn segments_of_a_burst_are_packets() {
    let (mut simulation, left, right_host) = two_hosts(&Network::symmetric(&link()));
    let transmit = Transmit { segment_bytes: Some(4), ecn: Ecn::L4s, ..right() };
    simulation[left].send(ms(1), transmit, b"aaaabbbbcc");
    simulation[left].send(ms(1), right(), b"");
    simulation.run_to(ms(100)).unwrap();
    let payloads: Vec<_> =
        simulation[right_host].arrived.iter().map(|(_, _, ecn, it)| (*ecn, &it[..])).collect();
    let l4s = |payload| (Ecn::L4s, payload);
    let expected = [l4s(&b"aaaa"[..]), l4s(b"bbbb"), l4s(b"cc"), (Ecn::NotCapable, &b""[..])];
    assert_eq!(payloads, expected);
}

#[test]
fn large_and_unroutable_packets_are_dropped() {
    let (mut simulation, left, right_host) = two_hosts(&Network::symmetric(&link()).mtu(1_300));
    simulation[left].send(Time::ZERO, right(), &[7; 1_272]);
    simulation[left].send(Time::ZERO, right(), &[7; 1_273]);
    simulation[left].send(Time::ZERO, Transmit::to("10.0.2.1:1".parse().unwrap()), b"lost");
    simulation.run_to(ms(100)).unwrap();
    assert_eq!(simulation[right_host].arrived.len(), 1);
    let forward = simulation.measures().forward;
    assert_eq!((forward.too_large_packets, forward.unroutable_packets), (1, 1));
    assert_eq!(simulation.counts(left).sent.packets, 3);
}

#[test]
fn a_host_can_change_its_address() {
    let (mut simulation, left, right_host) = two_hosts(&Network::symmetric(&link()));
    let reply = Transmit::to(LEFT.parse().unwrap());
    simulation[right_host].send(Time::ZERO, reply, b"in transit");
    simulation.run_to(ms(5)).unwrap();
    simulation[left].address = "10.0.0.9:1000".parse().unwrap();
    simulation[left].send(ms(5), right(), b"from the new address");
    simulation.run_to(ms(100)).unwrap();
    assert!(simulation[left].arrived.is_empty());
    assert_eq!(simulation.measures().reverse.refused_packets, 1);
    assert_eq!(simulation[right_host].arrived[0].1, "10.0.0.9:1000".parse().unwrap());
}

#[test]
fn flows_share_a_bottleneck_and_links_follow_one_another() {
    let network = Network::new(&[link(), link()], &[link()]);
    let (mut simulation, left, right_host) = two_hosts(&network);
    let third = UdpHost::new("10.0.0.2:7".parse().unwrap(), Recorder::default());
    let third = simulation.add(Side::Left, third);
    simulation[left].send(Time::ZERO, right(), &[7; 1_208]);
    simulation[third].send(Time::ZERO, right(), &[7; 1_208]);
    simulation.run_to(ms(100)).unwrap();
    assert_eq!(arrivals(&simulation, right_host), [22, 23]);
}

#[test]
fn a_run_ends_with_a_reason() {
    let (mut simulation, left, right_host) = two_hosts(&Network::symmetric(&link()));
    let idle = simulation.run_until(ms(50), |_| false);
    assert_eq!(idle, Err(Unfinished::Idle(Time::ZERO)));
    simulation[left].send(ms(20), right(), b"payload");
    let late = simulation.run_until(ms(25), |it| !it[right_host].arrived.is_empty());
    assert_eq!(late, Err(Unfinished::TimeLimit(ms(25))));
    let end = simulation.run_until(ms(50), |it| !it[right_host].arrived.is_empty()).unwrap();
    assert!(end > ms(30) && end < ms(31));
    simulation[left].stuck_at = Some(ms(40));
    let stuck = simulation.run_to(ms(50));
    assert_eq!(stuck, Err(Unfinished::EndlessLoop { at: ms(40), host: left }));
    let text = format!("{:?}", stuck.unwrap_err());
    assert!(text.starts_with("host 0 was called 1000000 times at 0.04"), "{text}");
}

/// Runs with random loss and captures the packets of the right host.
fn captured(seed: u64) -> Vec<u8> {
    let network = Network::symmetric(&link().loss(0.5));
    let mut simulation = Simulation::new(&network, seed).unwrap();
    let host = |address: &str| UdpHost::new(address.parse().unwrap(), Recorder::default());
    let left = simulation.add(Side::Left, host(LEFT));
    let right_host = simulation.add(Side::Right, host(RIGHT));
    let file = SharedBuffer::default();
    let address: IpAddr = [10, 0, 1, 1].into();
    simulation.capture(right_host, "right", address, file.clone()).unwrap();
    simulation.add_secrets(right_host, "CLIENT_RANDOM 00 00\n").unwrap();
    for i in 0..20 {
        simulation[left].send(ms(i), right(), &[i as u8; 100]);
    }
    simulation.run_to(ms(100)).unwrap();
    simulation.finish_files().unwrap();
    file.0.take()
}

#[test]
fn captures_are_the_same_for_a_seed() {
    let bytes = captured(1);
    assert!(bytes == captured(1));
    assert!(bytes != captured(2));
    // Section Header Block, and the complete packet behind an Ethernet header.
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let packet = [&[8u8, 0][..], &[0x45, 0, 0, 128]].concat();
    assert!(bytes.windows(packet.len()).any(|window| window == packet));
}

#[test]
fn networks_are_read_from_json() {
    let network = Network::new(&[link().loss(0.1)], &[link().jitter(Span::from_ms(3), false)]);
    let json = serde_json::to_string(&network).unwrap();
    assert_eq!(Network::from_json(&json).unwrap(), network);
    let wrong = json.replace("independent", "indepndent");
    let error = Network::from_json(&wrong).unwrap_err();
    assert!(
        error.to_string().contains("`forward[0].loss.kind` cannot be \"indepndent\""),
        "{error}"
    );
    let small = Network::symmetric(&link()).mtu(100);
    assert!(matches!(Simulation::<UdpHost<Recorder>>::new(&small, 1), Err(NetworkError::Spec(_))));
}

#[test]
fn networks_are_those_of_a_flow_of_a_run() {
    let json = include_str!("../../../fuzz/one-flow.json");
    let error = Network::of_flow(json, "nobody").unwrap_err().to_string();
    assert!(error.starts_with("`flow` cannot be \"nobody\": expected one of "), "{error}");
    let name = error.rsplit(' ').next().unwrap();
    let network = Network::of_flow(json, name).unwrap();
    assert!(!network.forward.is_empty() && !network.reverse.is_empty());
    assert!(Simulation::<UdpHost<Recorder>>::new(&network, 1).is_ok());
}
