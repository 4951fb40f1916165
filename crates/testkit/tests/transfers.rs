//! Transfers between stacks that nobody here wrote.

use jostle_testkit::{Link, Outcome, Rate, SERVER, Span, Unfinished, for_each_seed, simulate};

const MEGABYTE: u64 = 1_000_000;

/// 10 Mbit/s and 20 ms.
fn link() -> Link {
    Link::new(Rate::from_mbps(10), Span::from_ms(20))
}

/// Defines tests of a QUIC stack.
macro_rules! transfers {
    ($name:ident, $stack:ident) => {
        mod $name {
            use super::*;
            use crate::$stack::host::{QuicEndpoint, transport};

            fn endpoints(seed: u64, bytes: u64) -> (QuicEndpoint, QuicEndpoint) {
                let mut client = QuicEndpoint::client(seed, transport(), SERVER);
                client.send(bytes);
                (client, QuicEndpoint::server(seed, transport()))
            }

            fn transfer(link: &Link, seed: u64) -> Outcome<QuicEndpoint, QuicEndpoint> {
                let is_complete = |_: &_, server: &QuicEndpoint| !server.received.is_empty();
                let limit = Span::from_secs(60);
                let run = simulate(link, seed, endpoints(seed, MEGABYTE), limit, is_complete);
                let run = run.unwrap();
                assert_eq!(run.server.received_bytes, MEGABYTE);
                run
            }

            #[test]
            fn a_megabyte_takes_the_time_of_the_link() {
                let run = transfer(&link(), 1);
                // 0.8 s of payload, 40 ms of handshake and a slow start of less than 8 RTTs.
                let end_s = run.end.as_secs_f64();
                assert!((0.84..1.2).contains(&end_s), "{end_s} {:#?}", run.measures);
                assert!(run.measures.forward.delay.unwrap().min() >= Span::from_ms(20));
                let arrived_packets = run.measures.forward.arrived_packets;
                assert_eq!(run.client_counts.sent.packets, arrived_packets);
                assert!(run.server_counts.received.packets <= arrived_packets);
            }

            #[test]
            fn a_megabyte_survives_loss() {
                for_each_seed(0..5, |seed| {
                    let run = transfer(&link().loss(0.02), seed);
                    assert!(run.measures.forward.dropped_packets > 5);
                    assert!((0.84..10.0).contains(&run.end.as_secs_f64()), "{:?}", run.end);
                });
            }

            #[test]
            fn a_seed_determines_the_run() {
                let link = link().loss(0.02).jitter(Span::from_ms(5), true);
                let run = |seed| {
                    let run = transfer(&link, seed);
                    (run.end, run.measures)
                };
                assert_eq!(run(3), run(3));
                assert_ne!(run(3).0, run(4).0);
            }

            #[test]
            fn a_silent_network_ends_with_the_idle_timeout() {
                let limit = Span::from_secs(1_000);
                let link = link().loss(1.0);
                let run = simulate(&link, 1, endpoints(1, 0), limit, |client, _| {
                    client.connected_at.is_some()
                });
                assert!(matches!(run, Err(Unfinished::Idle(_))));
                let is_lost = |client: &QuicEndpoint, _: &_| client.lost.is_some();
                let run = simulate(&link, 1, endpoints(1, 0), limit, is_lost).unwrap();
                assert!(run.client.connected_at.is_none());
            }
        }
    };
}

transfers!(quinn, quinn_stack);
transfers!(noq, noq_stack);
