use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

use jostle_units::{FlowId, LinkId};

use super::*;
use jostle_run_spec::{Algorithm, LinuxRelease, SourceSpec, Transport};

const FULL: u16 = mss_of(1_500) as u16;

fn framer() -> FrameBuilder {
    let flow = FlowSpec {
        name: "one".to_owned(),
        group: None,
        transport: Transport::Tcp,
        tcp: None,
        quic: None,
        controller: Algorithm { name: "reno".to_owned(), parameters: Default::default() },
        slow_start: None,
        path: vec![LinkId(0)],
        reverse_path: Vec::new(),
        routes: Vec::new(),
        base_delay_ns: 0,
        start_ns: 0,
        stop_ns: None,
        source: SourceSpec::Bulk,
        arrivals: None,
        pacing: false,
        ecn: true,
        mtu_bytes: 1_500,
        initial_window_packets: 10,
        initial_pacing: false,
        linux: LinuxRelease::V6_1,
        memory: None,
        dscp: Some(46),
        peer: 0,
        sender_host: None,
        receiver_host: None,
        connection_of: None,
        after: None,
        initial_receive_window_bytes: 65_535,
        receive_window_autotuning: false,
        receiver: None,
        reader: None,
        timers: None,
        gro: false,
        receive_window_bytes: 6 << 20,
        nic_rate_bps: None,
    };
    FrameBuilder::new(FlowId(251), &flow)
}

fn header(kind: HeaderKind) -> SegmentHeader {
    SegmentHeader {
        kind,
        number: 0,
        payload_bytes: 0,
        ecn: Ecn::NotCapable,
        ecn_flag: false,
        accecn: None,
        tsval_ms: 7,
        tsecr_ms: 5,
        window_packets: 0,
        blocks: [(0, 0); 3],
        block_count: 0,
    }
}

fn data(number: u32, payload_bytes: u16) -> SegmentHeader {
    SegmentHeader { number, payload_bytes, ..header(HeaderKind::Data) }
}

/// What a frame says, as etherparse reads it, and its size on the wire; checksums are right.
fn read(framed: (&[u8], u32)) -> (Ipv4Header, TcpHeader, u32) {
    let (frame, size_bytes) = framed;
    let sliced = LaxSlicedPacket::from_ethernet(frame).unwrap();
    let Some(LaxNetSlice::Ipv4(ip)) = &sliced.net else { panic!("no IPv4: {sliced:?}") };
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("no TCP: {sliced:?}") };
    let (ip, tcp) = (ip.header().to_header(), tcp.to_header());
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    let payload = &ZEROS[..usize::from(ip.total_len) - 20 - tcp.header_len()];
    assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, payload).unwrap());
    assert_eq!(size_bytes, 14 + u32::from(ip.total_len));
    (ip, tcp, size_bytes)
}

fn options(tcp: &TcpHeader) -> Vec<TcpOptionElement> {
    tcp.options_iterator().map(Result::unwrap).filter(|o| *o != TcpOptionElement::Noop).collect()
}

#[test]
fn a_handshake_offers_what_linux_offers() {
    let mut framer = framer();
    let syn = SegmentHeader { ecn_flag: true, tsecr_ms: 0, ..header(HeaderKind::Syn) };
    let (ip, tcp, size_bytes) = read(framer.frame(EndpointRole::Sender, &syn).unwrap());
    assert_eq!((ip.source, ip.destination), ([10, 1, 1, 2], [10, 2, 1, 2]));
    assert_eq!((tcp.syn, tcp.ack, tcp.ece, tcp.cwr), (true, false, true, true));
    assert_eq!((tcp.sequence_number, size_bytes), (0, 74));
    let offered = [
        TcpOptionElement::MaximumSegmentSize(1460),
        TcpOptionElement::SelectiveAcknowledgementPermitted,
        TcpOptionElement::Timestamp(7, 0),
        TcpOptionElement::WindowScale(7),
    ];
    assert_eq!(options(&tcp), offered);

    let answer = SegmentHeader { ecn_flag: true, window_packets: 45, ..header(HeaderKind::SynAck) };
    let (ip, tcp, _) = read(framer.frame(EndpointRole::Sender, &answer).unwrap());
    assert_eq!((ip.source, ip.destination), ([10, 2, 1, 2], [10, 1, 1, 2]));
    assert_eq!((tcp.syn, tcp.ack, tcp.ece, tcp.cwr), (true, true, true, false));
    assert_eq!((tcp.acknowledgment_number, tcp.window_size), (1, 65_160));
}

#[test]
fn data_are_numbered_in_bytes() {
    let mut framer = framer();
    let mut sent = |number, payload| {
        let framed = framer.frame(EndpointRole::Sender, &data(number, payload)).unwrap();
        let (_, tcp, size_bytes) = read(framed);
        (tcp.sequence_number, tcp.psh, size_bytes)
    };
    assert_eq!(sent(0, FULL), (1, false, 1514));
    assert_eq!(sent(1, 100), (1449, true, 166));
    assert_eq!(sent(2, FULL), (1549, false, 1514));
    assert_eq!(sent(3, 1), (2997, true, 67));
    assert_eq!(sent(4, FULL), (2998, false, 1514));
    // Again, which numbers nothing anew.
    assert_eq!(sent(2, FULL), (1549, false, 1514));
    assert_eq!(sent(5, FULL), (4446, false, 1514));

    let ack = SegmentHeader { number: 2, window_packets: 1000, ..header(HeaderKind::Ack) };
    let (_, tcp, size_bytes) = read(framer.frame(EndpointRole::Receiver, &ack).unwrap());
    assert_eq!((tcp.acknowledgment_number, size_bytes), (1549, 66));
    // 6 MiB fit into 16 bits if scaled by 2⁷.
    assert_eq!(u32::from(tcp.window_size), 1_448_000 >> 7);
    assert_eq!(options(&tcp), [TcpOptionElement::Timestamp(7, 5)]);
}

#[test]
fn ends_of_many_messages_are_counted_without_being_kept() {
    let mut framer = framer();
    let messages = 10_000;
    for number in 0..messages {
        framer.frame(EndpointRole::Sender, &data(number, 48)).unwrap();
    }
    assert_eq!(framer.numbering.sequence(messages), 1 + 48 * messages);
    assert_eq!(framer.numbering.sequence(messages - 10), 1 + 48 * (messages - 10));
    assert!(framer.numbering.short.len() <= SHORT_SEGMENTS_MAX);
}

#[test]
fn sequence_numbers_wrap() {
    let mut framer = framer();
    let number = 3_000_000;
    let (_, tcp, _) = read(framer.frame(EndpointRole::Sender, &data(number, FULL)).unwrap());
    assert_eq!(u64::from(tcp.sequence_number), (1 + 3_000_000 * 1448) % (1 << 32));
}

#[test]
fn acknowledgements_carry_blocks_and_marks() {
    let mut framer = framer();
    let mut ack = SegmentHeader { number: 3, ecn_flag: true, ..header(HeaderKind::Ack) };
    ack.blocks = [(5, 7), (9, 10), (12, 20)];
    for count in 1..=3 {
        ack.block_count = count;
        let (_, tcp, size_bytes) = read(framer.frame(EndpointRole::Receiver, &ack).unwrap());
        assert!(tcp.ece);
        // 2 + 8·n bytes and two of padding.
        assert_eq!(size_bytes, 66 + 4 + 8 * u32::from(count));
        let at = |number: u32| 1 + 1448 * number;
        let rest = [Some((at(9), at(10))), Some((at(12), at(20))), None];
        let rest = std::array::from_fn(|i| rest[i].filter(|_| i + 1 < usize::from(count)));
        let sack = TcpOptionElement::SelectiveAcknowledgement((at(5), at(7)), rest);
        assert_eq!(options(&tcp)[1], sack);
    }
    for (ecn, shown) in [
        (Ecn::NotCapable, IpEcn::NotEct),
        (Ecn::Capable, IpEcn::Ect0),
        (Ecn::L4s, IpEcn::Ect1),
        (Ecn::Marked, IpEcn::CongestionExperienced),
    ] {
        let marked = SegmentHeader { ecn, ecn_flag: true, ..data(0, FULL) };
        let (ip, tcp, _) = read(framer.frame(EndpointRole::Receiver, &marked).unwrap());
        assert_eq!((ip.dscp.value(), ip.ecn, tcp.cwr), (46, shown, true));
    }
}

/// RFC 9768 §3.2: 21 marks and the initial value of 5 are 26, 2 modulo 8; the option counts their
/// bytes from 0. The frame has the size of the packet on the wire.
#[test]
fn accecn_feedback_is_in_the_header_and_its_option() {
    let mut framer = framer();
    for (block_count, option, size_bytes) in
        [(0, None, 66), (0, Some(21), 78), (1, Some(21), 90), (2, Some(21), 94), (3, None, 94)]
    {
        let blocks = [(3, 4), (7, 8), (9, 12)];
        let ack = SegmentHeader {
            ecn: Ecn::L4s,
            accecn: Some((5, option)),
            blocks,
            block_count,
            ..header(HeaderKind::Ack)
        };
        let (frame, size) = framer.frame(EndpointRole::Receiver, &ack).unwrap();
        assert_eq!((frame.len(), size), (size_bytes, size_bytes as u32));
        let sliced = LaxSlicedPacket::from_ethernet(frame).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("{sliced:?}") };
        assert_eq!((tcp.ns(), tcp.cwr(), tcp.ece()), (false, true, false));
        let marked_bytes = (21 * u32::from(FULL)).to_be_bytes();
        let expected = [&[172, 8, 0, 0, 1][..], &marked_bytes[1..]].concat();
        let carried = tcp.options().windows(8).any(|words| words == expected);
        assert_eq!(carried, option.is_some());
    }
}
