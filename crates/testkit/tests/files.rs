//! Logs.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use jostle_testkit::{
    CLIENT, HostId, Link, Network, Rate, SERVER, Side, Simulation, Span, Time, UdpHost,
};
use serde_json::Value;

use crate::quinn_stack::host::{QuicEndpoint, transport};

/// Headers of Ethernet, IPv4 and UDP.
const HEADER_BYTES: u64 = 42;

/// A buffer that a file and a test share.
#[derive(Clone, Default)]
pub struct SharedBuffer(pub Rc<RefCell<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Run {
    simulation: Simulation<UdpHost<QuicEndpoint>>,
    client: HostId,
    server: HostId,
}

impl Run {
    fn new(loss: f64) -> Self {
        let link = Link::new(Rate::from_mbps(10), Span::from_ms(10)).loss(loss);
        let mut simulation = Simulation::new(&Network::symmetric(&link), 1).unwrap();
        let mut client = QuicEndpoint::client(1, transport(), SERVER);
        client.send(100_000);
        let client = simulation.add(Side::Left, UdpHost::new(CLIENT, client));
        let server = QuicEndpoint::server(1, transport());
        let server = simulation.add(Side::Right, UdpHost::new(SERVER, server));
        Self { simulation, client, server }
    }

    /// Runs until the message has arrived, and returns the errors of files.
    fn run(&mut self) -> io::Result<()> {
        let (server, limit) = (self.server, Time::ZERO + Span::from_secs(20));
        self.simulation.run_until(limit, |it| !it[server].received.is_empty()).unwrap();
        self.simulation.finish_files()
    }
}

/// Events of a log: name and data.
fn events(file: &SharedBuffer) -> Vec<(String, Value)> {
    let text = String::from_utf8(file.0.take()).unwrap();
    let records = text.split_terminator('\n').map(|record| {
        let json = record.strip_prefix('\u{1e}').unwrap();
        serde_json::from_str::<Value>(json).unwrap()
    });
    let event = |mut it: Value| (it["name"].as_str().unwrap().to_owned(), it["data"].take());
    records.skip(1).map(event).collect()
}

#[test]
fn a_log_has_all_packets_and_the_window() {
    let (mut run, file) = (Run::new(0.05), SharedBuffer::default());
    run.simulation.qlog(run.client, "a \"test\"", file.clone()).unwrap();
    run.run().unwrap();
    let counts = run.simulation.counts(run.client);
    let window = run.simulation[run.client].connection().stats().path.cwnd;
    let events = events(&file);
    let of = |name: &str| -> Vec<&Value> {
        events.iter().filter(|(it, _)| it == name).map(|(_, data)| data).collect()
    };
    for (name, count) in
        [("transport:packet_sent", counts.sent), ("transport:packet_received", counts.received)]
    {
        let bytes: u64 = of(name).iter().map(|data| data["raw"]["length"].as_u64().unwrap()).sum();
        assert_eq!(bytes, count.bytes - count.packets * HEADER_BYTES, "{name}");
    }
    let sent = of("transport:packet_sent");
    let types: Vec<_> =
        sent.iter().map(|data| data["header"]["packet_type"].as_str().unwrap()).collect();
    assert_eq!(types[0], "initial");
    assert!(["handshake", "1RTT"].iter().all(|kind| types.contains(kind)));
    assert!(!types.contains(&"unknown"));
    let windows: Vec<_> = of("recovery:metrics_updated")
        .iter()
        .filter_map(|data| data["congestion_window"].as_u64())
        .collect();
    assert!(windows.len() > 5);
    assert_eq!(windows.last(), Some(&window));
    assert_eq!(of("connectivity:mtu_updated")[0]["new"], 1_200);
}

/// A file system that is full after the header.
struct FullDisk(u32);

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn errors_of_files_are_returned_at_the_end() {
    let mut run = Run::new(0.0);
    let empty = run.simulation.qlog(run.client, "log", FullDisk(0));
    assert_eq!(empty.unwrap_err().kind(), io::ErrorKind::StorageFull);
    run.simulation.qlog(run.client, "log", FullDisk(1)).unwrap();
    assert_eq!(run.run().unwrap_err().kind(), io::ErrorKind::StorageFull);
}
