use jostle_units::FlowId;
use serde_json::json;

use super::*;

const START_NS: u64 = 1_700_000_000_500_000_000;

fn spec() -> RunSpec {
    serde_json::from_value(json!({
        "seed": 3, "duration_ns": 1_000_000_000, "interval_ns": 1_000_000_000, "record": "none",
        "capture": {"scenario": "a test"}, "phases": [], "links": [],
        "flows": [{
            "name": "one", "transport": "tcp", "controller": {"name": "reno", "parameters": {}},
            "slow_start": null, "path": [], "reverse_path": [], "base_delay_ns": 0,
            "start_ns": 0, "stop_ns": null, "source": {"kind": "bulk"}, "pacing": false,
            "ecn": false, "mtu_bytes": 1_500, "initial_window_packets": 10, "receive_window_bytes": 1_000_000,
            "nic_rate_bps": null, "memory": null, "peer": 0, "after": null,
            "initial_pacing": false, "linux": "6.1", "initial_receive_window_bytes": 65_535, "receive_window_autotuning": false, "gro": false,
        }],
    }))
    .unwrap()
}

fn ring() -> PacketRing<'static> {
    PacketRing {
        flow: FlowId(0),
        end: EndpointRole::Receiver,
        system: "Linux",
        start_ns: START_NS,
        received: 9,
        dropped: 2,
        secrets: "",
    }
}

/// A block as the kernel fills it: packets of `kept` bytes, at times of the run.
fn block(packets: &[(i64, &[u8])]) -> Vec<u8> {
    const MAC: usize = 82;
    let mut block = vec![0; BLOCK_HEADER_BYTES];
    for (i, (ns, kept)) in packets.iter().enumerate() {
        let time_ns = START_NS.strict_add_signed(*ns);
        let size = (MAC + kept.len()).next_multiple_of(8);
        let next = if i + 1 < packets.len() { size as u32 } else { 0 };
        let mut packet = Vec::new();
        let s = (time_ns / 1_000_000_000) as u32;
        for word in [next, s, (time_ns % 1_000_000_000) as u32, kept.len() as u32, 1514, 0] {
            packet.extend(word.to_ne_bytes());
        }
        packet.extend((MAC as u16).to_ne_bytes());
        packet.resize(MAC, 0xEE);
        packet.extend(*kept);
        packet.resize(size, 0xEE);
        block.extend(packet);
    }
    let size = block.len() as u32;
    for (at, value) in
        [(0, VERSION), (12, packets.len() as u32), (16, BLOCK_HEADER_BYTES as u32), (20, size)]
    {
        block[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    block
}

fn converted(blocks: &[u8]) -> io::Result<(u64, Vec<u8>)> {
    let mut out = Vec::new();
    let packets = from_ring(&spec(), &ring(), blocks, &mut out)?;
    Ok((packets, out))
}

#[test]
fn packets_of_the_run_are_kept_in_order() {
    let mut blocks = block(&[(-5, b"early"), (0, b"first"), (7, b"second!")]);
    blocks.extend(block(&[]));
    blocks.extend(block(&[(999_999_999, b"last"), (1_000_000_000, b"late")]));
    let (packets, file) = converted(&blocks).unwrap();
    assert_eq!(packets, 3);
    let place = |text: &[u8]| file.windows(text.len()).position(|window| window == text);
    let first = place(b"first").unwrap();
    let (second, last) = (place(b"second!").unwrap(), place(b"last").unwrap());
    assert!(first < second && second < last);
    assert_eq!((place(b"early"), place(b"late")), (None, None));
    // The words before the bytes: high and low half of the time, kept size, size on the wire.
    let words = |at: usize| {
        let words = file[at - 16..at].chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap()));
        words.collect::<Vec<_>>()
    };
    assert_eq!(words(first), [0, 0, 5, 1514]);
    assert_eq!(words(second), [0, 7, 7, 1514]);
    assert_eq!(words(last), [0, 999_999_999, 4, 1514]);
    let comment = "scenario: a test\nflow: one\ncontroller: reno\nend: receiver\nseed: 3\n";
    assert!(place(comment.as_bytes()).is_some());
    assert!(place(b"\nrun: ").is_some());
    assert!(place(b"one.receiver").is_some());
}

#[test]
fn damage_is_told() {
    let whole = block(&[(0, b"first"), (7, b"second")]);
    let refused = |blocks: &[u8]| converted(blocks).unwrap_err().to_string();
    assert!(refused(&whole[..30]).ends_with("it ends within a block"));
    assert!(refused(&whole[..whole.len() - 1]).ends_with("it ends within a block"));
    let mut other = whole.clone();
    other[0] = 9;
    assert!(refused(&other).contains("where a block should begin"));
    let mut outside = whole.clone();
    outside[16..20].copy_from_slice(&10_000u32.to_ne_bytes());
    assert!(refused(&outside).ends_with("outside its block"));
    let mut too_many = whole;
    too_many[12..16].copy_from_slice(&3u32.to_ne_bytes());
    assert!(refused(&too_many).ends_with("a packet without a successor is not the last"));
}
