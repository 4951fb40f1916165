//! Packets of a TUN device: whatever they hold, what is read lies inside, and a mark changes nothing
//! but the ECN field and IPv4's checksum.

#![no_main]

use jostle_forwarding::{Header, mark_congestion};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|packet: &[u8]| {
    let Some(before) = Header::read(packet) else { return };
    let mut marked = packet.to_vec();
    mark_congestion(&mut marked);
    let after = Header::read(&marked).expect("a marked packet is one still");
    assert_eq!(before.flow.number(), after.flow.number());
    let changed = packet.iter().zip(&marked).filter(|(a, b)| a != b).count();
    assert!(changed <= 3, "{changed} bytes differ");
});
