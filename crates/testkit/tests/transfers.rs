//! Transfers between stacks that nobody here wrote.

use jostle_testkit::{
    Link, Network, Rate, Side, Simulation, Span, Time, UdpHost, Unfinished, for_each_seed,
};

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "10.0.1.1:443";
const MEGABYTE: u64 = 1_000_000;

/// Defines tests of a QUIC stack.
macro_rules! transfers {
    ($name:ident, $stack:ident) => {
        mod $name {
            use super::*;
            use crate::$stack::host::{QuicEndpoint, transport};

            fn transfer(network: &Network, seed: u64) -> (Time, Simulation<UdpHost<QuicEndpoint>>) {
                let mut simulation = Simulation::new(network, seed).unwrap();
                let mut client = QuicEndpoint::client(seed, transport(), SERVER);
                client.send(MEGABYTE);
                let client = UdpHost::new(CLIENT.parse().unwrap(), client);
                simulation.add(Side::Left, client);
                let server = QuicEndpoint::server(seed, transport());
                let server =
                    simulation.add(Side::Right, UdpHost::new(SERVER.parse().unwrap(), server));
                let limit = Time::ZERO + Span::from_secs(60);
                let end = simulation
                    .run_until(limit, |simulation| !simulation[server].received.is_empty())
                    .unwrap();
                assert_eq!(simulation[server].received_bytes, MEGABYTE);
                (end, simulation)
            }

            #[test]
            fn a_megabyte_takes_the_time_of_the_link() {
                let network =
                    Network::symmetric(&Link::new(Rate::from_mbps(10), Span::from_ms(20)));
                let (end, mut simulation) = transfer(&network, 1);
                let measures = simulation.measures();
                // 0.8 s of payload, 40 ms of handshake and a slow start of less than 8 RTTs.
                assert!((0.84..1.2).contains(&end.as_secs_f64()), "{end:?} {measures:#?}");
                assert!(measures.forward.delay.unwrap().min() >= Span::from_ms(20));
            }

            #[test]
            fn a_megabyte_survives_loss() {
                let link = Link::new(Rate::from_mbps(10), Span::from_ms(20)).loss(0.02);
                for_each_seed(0..5, |seed| {
                    let (end, mut simulation) = transfer(&Network::symmetric(&link), seed);
                    let measures = simulation.measures();
                    assert!(measures.forward.dropped_packets > 5);
                    assert!((0.84..10.0).contains(&end.as_secs_f64()), "{end:?}");
                });
            }

            #[test]
            fn a_seed_determines_the_run() {
                let link = Link::new(Rate::from_mbps(10), Span::from_ms(20))
                    .loss(0.02)
                    .jitter(Span::from_ms(5), true);
                let run = |seed| {
                    let (end, mut simulation) = transfer(&Network::symmetric(&link), seed);
                    (end, simulation.measures())
                };
                assert_eq!(run(3), run(3));
                assert_ne!(run(3).0, run(4).0);
            }

            #[test]
            fn a_silent_network_ends_with_the_idle_timeout() {
                let network = Network::symmetric(
                    &Link::new(Rate::from_mbps(10), Span::from_ms(20)).loss(1.0),
                );
                let mut simulation = Simulation::new(&network, 1).unwrap();
                let client = QuicEndpoint::client(1, transport(), SERVER);
                let client = UdpHost::new(CLIENT.parse().unwrap(), client);
                let client = simulation.add(Side::Left, client);
                let server = QuicEndpoint::server(1, transport());
                simulation.add(Side::Right, UdpHost::new(SERVER.parse().unwrap(), server));
                let limit = Time::ZERO + Span::from_secs(1_000);
                let end = simulation.run_until(limit, |it| it[client].connected_at.is_some());
                assert!(matches!(end, Err(Unfinished::Idle(_))), "{end:?}");
                assert!(simulation[client].lost.is_some());
            }
        }
    };
}

transfers!(quinn, quinn_stack);
transfers!(noq, noq_stack);
