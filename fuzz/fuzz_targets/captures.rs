//! Files of packets: as they come, or with packets that get past the headers.

#![no_main]

use jostle_pcap_analysis::{AnalysisOptions, TimeSequenceOptions, extract_flow_packets, look};
use libfuzzer_sys::fuzz_target;

/// Starts of other containers: pcapng, snoop and Kuznetzov's pcap.
const CONTAINERS: [&[u8]; 3] = [
    &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0],
    b"snoop\0\0\0\0\0\0\x02\0\0\0\x04",
    &[0x34, 0xcd, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0],
];
/// Link types: loopback, Ethernet, PPP, Cisco HDLC, raw IP, LINUX_SLL, MPLS.
const LINK_TYPES: [u8; 7] = [0, 1, 9, 104, 101, 113, 219];
/// Bytes of each frame of other link types.
const FRAME_BYTES: usize = 120;

/// pcap, little-endian, with microseconds, of Ethernet.
const HEADER: [u8; 24] =
    [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];

fuzz_target!(|data: &[u8]| {
    // A day in intervals of an hour: what is looked for is not how long a series can be.
    let options = AnalysisOptions { flows: 4, interval_ns: 3_600_000_000_000 };
    let _ = look(data, &options);
    for start in CONTAINERS {
        let _ = look(&[start, data].concat(), &options);
    }
    if let Some((&first, rest)) = data.split_first() {
        let mut file = HEADER.to_vec();
        file[20] = LINK_TYPES[usize::from(first) % LINK_TYPES.len()];
        for (at, frame) in rest.chunks(FRAME_BYTES).enumerate() {
            let kept = frame.len() as u32;
            for number in [(at / 2) as u32, u32::from(first), kept, 1_500] {
                file.extend(number.to_le_bytes());
            }
            file.extend(frame);
        }
        let _ = look(&file, &options);
    }
    let mut file = HEADER.to_vec();
    for (at, drawn) in data.chunks(40).enumerate() {
        packet(&mut file, at, drawn);
    }
    let _ = look(&file, &options);
    let wanted = TimeSequenceOptions { flow: None, from_ns: 0, to_ns: u64::MAX, rows: 50 };
    let _ = extract_flow_packets(&file, &options, &wanted);
});

/// A segment whose header is what was drawn, but for the ports and where it ends.
fn packet(file: &mut Vec<u8>, at: usize, drawn: &[u8]) {
    let byte = |position: usize| drawn.get(position).copied().unwrap_or(0);
    let options = drawn.get(12..).unwrap_or_default();
    let padded = options.len().min(40).next_multiple_of(4);
    let payload = u16::from(byte(0)) * 6;
    let total = 20 + 20 + padded as u16 + payload;
    let up = byte(1) & 1;
    let mut bytes = vec![0; 12];
    bytes.extend([0x08, 0x00, 0x45, byte(1) >> 6]);
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend([10, 0, 0, up, 10, 0, 0, 1 - up]);
    bytes.extend([0, 80 + up, 0, 81 - up]);
    bytes.extend([0, 0, byte(2), byte(3), 0, 0, byte(4), byte(5)]);
    bytes.extend([(5 + (padded / 4) as u8) << 4, byte(6), byte(7), byte(8), 0, 0, 0, 0]);
    bytes.extend(options.iter().take(40));
    bytes.resize(14 + 20 + 20 + padded, 0);
    file.extend((at as u32).to_le_bytes());
    file.extend((u32::from(byte(9)) * 3_000).to_le_bytes());
    file.extend((bytes.len() as u32).to_le_bytes());
    file.extend((14 + u32::from(total)).to_le_bytes());
    file.extend(bytes);
}
