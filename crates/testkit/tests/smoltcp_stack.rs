//! The TCP of smoltcp as a host: complete IP packets instead of datagrams.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use jostle_testkit::{
    Host, Link, Network, PacketLimit, Rate, Side, Simulation, Span, Time, for_each_seed,
};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PORT: u16 = 80;
const BUFFER_BYTES: usize = 256 * 1024;

/// Packets between smoltcp and the kit.
#[derive(Default)]
struct Queues {
    arrived: VecDeque<Vec<u8>>,
    to_send: VecDeque<Vec<u8>>,
}

struct Received(Vec<u8>);
struct Sent<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut packet = vec![0; length];
        let result = write(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Queues {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sent<'_>)> {
        Some((Received(self.arrived.pop_front()?), Sent(&mut self.to_send)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.to_send))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1_500;
        capabilities
    }
}

/// A host with one TCP socket, which sends or counts bytes.
struct TcpHost {
    address: Ipv4Addr,
    interface: Interface,
    queues: Queues,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    unsent_bytes: u64,
    received_bytes: u64,
    deadline: Option<Time>,
}

fn instant(now: Time) -> Instant {
    Instant::from_micros((now.as_ns() / 1_000) as i64)
}

impl TcpHost {
    fn new(address: Ipv4Addr, seed: u64, unsent_bytes: u64) -> Self {
        let mut queues = Queues::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut queues, Instant::ZERO);
        interface.update_ip_addrs(|list| {
            list.push(IpCidr::new(address.into(), 8)).unwrap();
        });
        let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(CongestionControl::Reno);
        if unsent_bytes > 0 {
            socket.connect(interface.context(), (SERVER, PORT), 40_000).unwrap();
        } else {
            socket.listen(PORT).unwrap();
        }
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        let (received_bytes, deadline) = (0, None);
        Self { address, interface, queues, sockets, socket, unsent_bytes, received_bytes, deadline }
    }

    fn poll(&mut self, now: Time) {
        let now = instant(now);
        self.interface.poll(now, &mut self.queues, &mut self.sockets);
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        while socket.can_recv() {
            let read = socket.recv(|bytes| (bytes.len(), bytes.len())).unwrap();
            self.received_bytes += read as u64;
        }
        while socket.can_send() && self.unsent_bytes > 0 {
            let most = self.unsent_bytes.min(1_460) as usize;
            self.unsent_bytes -= socket.send_slice(&[7; 1_460][..most]).unwrap() as u64;
        }
        self.interface.poll(now, &mut self.queues, &mut self.sockets);
        // smoltcp counts microseconds: the next one is the earliest time that it can tell from now.
        let delay = self.interface.poll_delay(now, &self.sockets);
        self.deadline = delay.map(|delay| {
            let micros = now.total_micros() as u64 + delay.total_micros().max(1);
            Time::ZERO + Span::from_us(micros)
        });
    }
}

impl Host for TcpHost {
    fn handle(&mut self, now: Time, packet: &[u8]) {
        self.queues.arrived.push_back(packet.to_vec());
        self.poll(now);
    }

    fn poll_transmit(&mut self, now: Time, packet: &mut Vec<u8>) -> bool {
        if self.queues.to_send.is_empty() {
            self.poll(now);
        }
        let next = self.queues.to_send.pop_front();
        packet.extend(next.iter().flatten());
        next.is_some()
    }

    fn deadline(&mut self) -> Option<Time> {
        self.deadline
    }

    fn has_address(&self, address: IpAddr) -> bool {
        address == self.address
    }
}

fn transfer(link: &Link, seed: u64) -> (Time, Simulation<TcpHost>, u64) {
    let mut simulation = Simulation::new(&Network::symmetric(link), seed).unwrap();
    simulation.add(Side::Left, TcpHost::new(CLIENT, seed, 1_000_000));
    let server = simulation.add(Side::Right, TcpHost::new(SERVER, seed, 0));
    let limit = Time::ZERO + Span::from_secs(300);
    let end = simulation.run_until(limit, |it| it[server].received_bytes == 1_000_000);
    let end = end.unwrap();
    let dropped = simulation.measures().forward.dropped_packets;
    (end, simulation, dropped)
}

#[test]
fn a_megabyte_takes_the_time_of_the_link() {
    let (end, ..) = transfer(
        &Link::new(Rate::from_mbps(10), Span::from_ms(10)).queue(PacketLimit::Packets(300)),
        1,
    );
    assert!((0.85..1.2).contains(&end.as_secs_f64()), "{end:?}");
}

#[test]
fn a_megabyte_survives_loss_and_corruption() {
    let link = Link::new(Rate::from_mbps(10), Span::from_ms(10)).loss(0.01).corrupt(0.01);
    for_each_seed(0..5, |seed| {
        let (end, mut simulation, dropped) = transfer(&link, seed);
        let corrupted = simulation.measures().forward.links[0].corrupted_packets;
        assert!(dropped > 0 && corrupted > 0);
        assert!(end < Time::ZERO + Span::from_secs(60), "{end:?}");
    });
}
