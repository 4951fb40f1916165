"""Captures of other people, and whole classes of what makes them special."""

from __future__ import annotations

import gzip
import random
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import jostle
import pytest
import rewritten
from jostle.backends import SimBackend
from jostle.errors import InputError
from jostle.scenario import load_text
from rewritten import Frame
from test_capture_formats import SCENARIO

HERE = Path(__file__).parent / "captures"


def flows_of(results: jostle.ResultSet) -> dict[str, dict[str, Any]]:
    """Every flow by name, with the measures of its phase."""
    (result,) = results.results
    return {
        flow["name"]: {**flow["phases"]["overall"], **flow} for flow in result.run.summary["flows"]
    }


@pytest.fixture(scope="module")
def frames() -> list[Frame]:
    """Packets of a run, each with another time, so that they have one order."""
    record = SimBackend().run(load_text(SCENARIO).plan().runs[0].spec)
    every = rewritten.frames(record.captures["one.sender"])
    return [replace(frame, time_ns=frame.time_ns + at) for at, frame in enumerate(every)]


@pytest.fixture(scope="module")
def frames_by_family(frames) -> dict[str, list[Frame]]:
    return {"IPv4": frames, "IPv6": [rewritten.over_ipv6(frame) for frame in frames]}


def measured(path: Path, content: bytes) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Everything that is known of the only flow, but for its names, and the notes."""
    path.write_bytes(content)
    results = jostle.analyze(path)
    (flow,) = results.results[0].run.summary["flows"]
    return {k: v for k, v in flow.items() if k not in ("name", "group")}, results.notes


@pytest.fixture(scope="module")
def plain(frames_by_family, tmp_path_factory) -> dict[str, dict[str, Any]]:
    path = tmp_path_factory.mktemp("plain") / "plain.pcap"
    found = {
        family: measured(path, rewritten.pcap(every)) for family, every in frames_by_family.items()
    }
    assert all(notes == () for _, notes in found.values())
    return {family: flow for family, (flow, _) in found.items()}


# Segments and retransmissions are those of tshark 4.0.
SEGMENTS = {
    "6in4.pcap": ("[2001:db8::3]:53234 > [2001:db8::7]:443", 11, 2),
    "every-packet-thrice.pcap": ("192.0.2.2:20000 > 192.0.2.1:1080", 20, 0),
    "gre.pcap": ("192.0.2.1:44444 > 192.0.2.2:80", 20, 0),
    "kuznetzov.pcap": ("192.0.2.2:443 > 192.0.2.1:55523", 53, 0),
    "mpls-and-vlan.pcap": ("192.0.2.1:11001 > 192.0.2.2:23", 5, 0),
    "mss-of-the-other-end.pcap": ("192.0.2.2:80 > 192.0.2.1:39890", 51, 0),
    "ns3-ppp.pcap": ("192.0.2.1:49153 > 192.0.2.2:50002", 201, 0),
    "obsolete-packet-block.pcapng": ("192.0.2.2:443 > 192.0.2.1:55523", 53, 0),
    "pppoe.pcap": ("142.250.179.131:80 > 10.100.0.0:57013", 11, 0),
    "snoop.cap": ("192.0.2.2:443 > 192.0.2.1:55523", 53, 0),
}


@pytest.mark.parametrize("name", SEGMENTS)
def test_segments_and_retransmissions_are_those_of_tshark(name):
    flow, sent, retransmitted = SEGMENTS[name]
    found = flows_of(jostle.analyze(HERE / name))[flow]
    assert (found["sent_packets"], found["retransmitted_packets"]) == (sent, retransmitted)


NOTES = {
    "6in4.pcap": ("48 of 127 packets are not TCP or UDP over IP", "are inside IP in IP"),
    "every-packet-thrice.pcap": ("90 of 135 packets are copies of others",),
    "gre.pcap": ("10 of 20 packets are inside GRE: the inner packets are measured",),
    "ip-length-beyond-frame.pcap": ("1 of 8 packets are shorter than their IP header states",),
    "not-in-time-order.pcap": ("6 packets are not in time order: they are sorted",),
    "udp-fragments.pcap": ("4 SCTP", "packets are copies of others"),
}


@pytest.mark.parametrize("name", NOTES)
def test_notes_name_what_is_special(name):
    notes = "\n".join(jostle.analyze(HERE / name).notes)
    for words in NOTES[name]:
        assert words in notes


def test_parts_of_two_captures_are_sorted():
    flow = flows_of(jostle.analyze(HERE / "not-in-time-order.pcap"))
    assert flow["192.0.2.1:50059 > 192.0.2.4:443"]["rtt_mean_s"] == pytest.approx(0.033090)


def test_bytes_beyond_the_frame_do_not_count():
    flow = flows_of(jostle.analyze(HERE / "ip-length-beyond-frame.pcap"))
    assert flow["192.0.2.2:1550 > 192.0.2.1:23"]["sent_packets"] == 2


FORMS = {
    "PPP": (rewritten.ppp(), {"link": rewritten.PPP}),
    "PPP with address and control": (rewritten.ppp(b"\xff\x03"), {"link": rewritten.PPP}),
    "PPP, short protocol": (rewritten.ppp(is_short=True), {"link": rewritten.PPP_HDLC}),
    "Cisco HDLC": (rewritten.cisco_hdlc, {"link": rewritten.CISCO_HDLC}),
    "Cisco HDLC by its address": (rewritten.cisco_hdlc, {"link": rewritten.PPP_HDLC}),
    "PPPoE": (rewritten.pppoe, {}),
    "PPPoE in a VLAN": (lambda frame: rewritten.tagged(0x8100)(rewritten.pppoe(frame)), {}),
    "PPPoE without Ethernet": (
        lambda frame: rewritten.pppoe(frame).behind(b""),
        {"link": rewritten.PPP_ETHER},
    ),
    "MPLS": (rewritten.labelled(16), {}),
    "MPLS, five labels": (rewritten.labelled(16, 17, 18, 19, 20), {}),
    "MPLS without Ethernet": (rewritten.labelled(16, 17, alone=True), {"link": rewritten.MPLS}),
    "pseudowire": (rewritten.labelled(16, between=b""), {}),
    "pseudowire with control word": (rewritten.labelled(16, 17, between=bytes(4)), {}),
    "E-tag": (rewritten.inserted(0x893F, bytes(6)), {}),
    "SNAP": (rewritten.inserted(1492, b"\xaa\xaa\x03\0\0\0"), {}),
    "NSH": (lambda f: rewritten.nsh(1 if f.content[12:14] == b"\x08\0" else 2)(f), {}),
    "NSH with Ethernet": (rewritten.nsh(3), {}),
    "PPTP": (rewritten.pptp, {}),
    "MPLS in IP": (
        rewritten.in_ip(rewritten.MPLS_IN_IP, struct.pack(">I", 16 << 12 | 0x140)),
        {},
    ),
}
for outer in (4, 6):
    to = f" over IPv{outer}"
    v: dict[str, Any] = {"version": outer}
    frame_in: dict[str, Any] = {"version": outer, "has_ethernet": True}
    FORMS |= {
        f"IP in IP{to}": (rewritten.in_ip(None, **v), {}),
        f"GRE{to}": (rewritten.gre(**v), {}),
        f"GRE with every field{to}": (rewritten.gre(0xB000, bytes(12), **v), {}),
        f"GRE with Ethernet{to}": (rewritten.gre(kind=0x6558, **frame_in), {}),
        f"ERSPAN I{to}": (rewritten.gre(kind=0x88BE, **frame_in), {}),
        f"ERSPAN II{to}": (rewritten.gre(0x1000, bytes(12), kind=0x88BE, **frame_in), {}),
        f"ERSPAN III{to}": (rewritten.gre(0x1000, bytes(16), kind=0x22EB, **frame_in), {}),
        f"ERSPAN III with a subheader{to}": (
            rewritten.gre(0x1000, bytes(15) + b"\x01" + bytes(8), kind=0x22EB, **frame_in),
            {},
        ),
        f"VXLAN{to}": (rewritten.in_udp(4789, b"\x08" + bytes(7), **frame_in), {}),
        f"Geneve{to}": (
            rewritten.in_udp(6081, struct.pack(">BBH4x8x", 2, 0, 0x6558), **frame_in),
            {},
        ),
        f"GTP-U{to}": (rewritten.in_udp(2152, b"\x30\xff" + bytes(6), **v), {}),
        f"GTP-U with extension headers{to}": (
            rewritten.in_udp(
                2152,
                b"\x34\xff" + bytes(9) + b"\x85" + b"\x01\x10\x09\x85" + b"\x01\0\0\0",
                **v,
            ),
            {},
        ),
        f"GRE in VXLAN in a VLAN{to}": (
            lambda frame, v=v, frame_in=frame_in: rewritten.tagged(0x88A8, 0x8100)(
                rewritten.in_udp(8472, b"\x08" + bytes(7), **frame_in)(rewritten.gre(**v)(frame))
            ),
            {},
        ),
    }


@pytest.mark.parametrize("family", ["IPv4", "IPv6"])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_in_front_of_ip_changes_nothing(form, family, frames_by_family, plain, tmp_path):
    rewrite, options = FORMS[form]
    order = random.Random(form).choice("<>")
    content = rewritten.pcap(
        [rewrite(frame) for frame in frames_by_family[family]], order=order, **options
    )
    found, notes = measured(tmp_path / "other.pcap", content)
    assert found == plain[family]
    # A note says so if outer IP headers are left out.
    tunnels = ("IP in IP", "MPLS in IP", "GRE", "PPTP", "ERSPAN", "VXLAN", "Geneve", "GTP-U")
    assert bool(notes) == form.startswith(tunnels)


def test_the_kinds_of_packets_that_are_not_read_are_counted(frames, tmp_path):
    def ethernet(kind: int, content: bytes) -> Frame:
        return Frame(0, bytes(12) + struct.pack(">H", kind) + content, 60)

    icmp = b"\x45\0\0\x2e" + bytes(5) + b"\x01" + bytes(40)
    others = [ethernet(0x0806, bytes(46))] * 3 + [ethernet(0x0800, icmp)] * 2
    others += [rewritten.gre(kind=0x6003)(frames[0])]
    others += [ethernet(0x1234 + at, bytes(46)) for at in range(200)]
    path = tmp_path / "a.pcap"
    _, notes = measured(path, rewritten.pcap([*others, *frames]))
    total = len(frames) + 206
    expected = f"a.pcap: 206 of {total} packets are not TCP or UDP over IP: 3 ARP, 2 ICMP, "
    assert notes[0].startswith(expected)
    assert notes[0].endswith("of other kinds")
    with pytest.raises(InputError, match="no packet of TCP or UDP over IP: 1 GRE/EtherType 0x6003"):
        measured(path, rewritten.pcap(others[5:6]))


def test_endless_headers_are_refused(frames, tmp_path):
    def nested(frame: Frame) -> Frame:
        for _ in range(30):
            frame = rewritten.in_ip(None)(frame)
        return frame

    with pytest.raises(InputError, match="IP in IP/more than 24 headers"):
        measured(tmp_path / "a.pcap", rewritten.pcap([nested(frames[0])]))


@pytest.mark.parametrize("port", [4789, 8472, 6081, 2152])
def test_datagrams_on_the_port_of_a_tunnel_are_datagrams(port, tmp_path):
    content = bytes(20)
    udp = struct.pack(">HHHH", 40_000, port, 8 + len(content), 0)
    ip = struct.pack(">BBHHHBBH8B", 0x45, 0, 48, 1, 0, 64, 17, 0, *range(1, 9))
    frame = Frame(0, bytes(12) + b"\x08\0" + ip + udp + content, 62)
    found, notes = measured(tmp_path / "a.pcap", rewritten.pcap([frame]))
    assert found["phases"]["overall"]["sent_packets"] == 1
    assert notes == ()


@pytest.mark.parametrize("kind", [0, 43, 44, 51, 60, 135, 139, 140])
def test_extension_headers_that_are_cut_off(kind, frames_by_family, plain, tmp_path):
    """Whatever remains of them, the other packets are measured."""
    every = frames_by_family["IPv6"]
    chain = (
        bytes((kind, 1, 0, 1, *range(12))) + bytes((60, 0, *range(6))) + bytes((6, 9, *range(6)))
    )
    ip = struct.pack(">IHBB", 6 << 28, 1_000, kind, 64) + bytes(32)
    whole = bytes(12) + b"\x86\xdd" + ip + chain
    cut = [Frame(0, whole[:kept], 1_054) for kept in range(15, len(whole) + 1)]
    found, (note,) = measured(tmp_path / "a.pcap", rewritten.pcap([*cut, *every]))
    assert found == plain["IPv6"]
    assert f"{len(cut)} of {len(cut) + len(every)} packets are not TCP or UDP" in note


SIZES = (256, 544, 1_400)


@pytest.mark.parametrize("family", ["IPv4", "IPv6"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("order", ["in order", "reversed", "twice"])
def test_fragments_are_put_together(*, size, family, order, frames_by_family, plain, tmp_path):
    parts = []
    for number, frame in enumerate(frames_by_family[family], 1):
        split = rewritten.fragments(frame, size, number)
        parts += {"in order": split, "reversed": split[::-1], "twice": split + split[1:]}[order]
    found, notes = measured(tmp_path / "a.pcap", rewritten.pcap(parts))
    seen, before = found["phases"]["overall"], plain[family]["phases"]["overall"]
    for key in ("sent_packets", "retransmitted_packets", "goodput_bps", "rtt_mean_s"):
        assert seen[key] == before[key], key
    # Each fragment has its own headers.
    assert seen["sending_rate_bps"] > before["sending_rate_bps"]
    copies = len(parts) - sum(
        len(rewritten.fragments(frame, size)) for frame in frames_by_family[family]
    )
    expected = f"a.pcap: {copies} of {len(parts)} packets are copies of others"
    assert (notes == ()) if copies == 0 else notes[0].startswith(expected)


def test_missing_fragments_are_said(frames, tmp_path):
    parts = []
    cut = next(frame for frame in frames[40:] if len(rewritten.fragments(frame, 544)) > 1)
    for number, frame in enumerate(frames, 1):
        split = rewritten.fragments(frame, 544, number)
        parts += split[:-1] if frame is cut else split
    _, notes = measured(tmp_path / "a.pcap", rewritten.pcap(parts))
    assert notes == ("a.pcap: fragments of 1 datagrams are missing: these are not measured",)


def test_datagrams_of_a_real_capture_are_whole():
    flows = flows_of(jostle.analyze(HERE / "udp-fragments.pcap", interval="1 s"))
    found = flows["192.0.2.1:789 > 192.0.2.2:2049"]
    # tshark shows 108 first fragments of 65 datagrams, by their identifications.
    assert found["sent_packets"] == 65


@pytest.mark.parametrize("family", ["IPv4", "IPv6"])
@pytest.mark.parametrize("distance", [2, 50, 10_000])
def test_packets_are_sorted(distance, family, frames_by_family, plain, tmp_path):
    every = frames_by_family[family]
    draw = random.Random(distance)
    mixed = sorted(range(len(every)), key=lambda at: at + draw.uniform(0, distance))
    found, notes = measured(tmp_path / "a.pcap", rewritten.pcap([every[at] for at in mixed]))
    assert found == plain[family]
    (note,) = notes
    assert "not in time order: they are sorted" in note


def test_what_cannot_be_sorted_is_said(tmp_path):
    ip = struct.pack(">BBHHHBBH8B", 0x45, 0, 28, 0, 0, 64, 17, 0, *range(1, 9))
    content = bytes(12) + b"\x08\0" + ip + struct.pack(">HHHH", 1, 2, 8, 0) + bytes(18)
    every = [Frame(at * 1_000, content, 60) for at in range(66_000)]
    every += [replace(every[0], time_ns=0)]
    ip = ip[:2] + b"\0\x1d" + ip[4:]
    payload = bytes(12) + b"\x08\0" + ip + struct.pack(">HHHH", 1, 2, 9, 0) + bytes(18)
    every.append(Frame(66_000_000, payload, 60))
    _, (note,) = measured(tmp_path / "a.pcap", rewritten.pcap(every))
    assert "1 packets are up to 0.00046" in note
    assert "`reordercap` sorts the file" in note


@pytest.mark.parametrize("family", ["IPv4", "IPv6"])
@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("is_numbered", [False, True])
@pytest.mark.parametrize("later_us", [0, 5, 200])
def test_copies_count_once(
    *, times, family, is_numbered, later_us, frames_by_family, plain, tmp_path
):
    def numbered(at: int, frame: Frame) -> Frame:
        if not is_numbered or family == "IPv6":
            return frame
        content = frame.content
        identification = struct.pack(">H", at % 65_535 + 1)
        return replace(frame, content=content[:18] + identification + content[20:])

    every = [numbered(at, frame) for at, frame in enumerate(frames_by_family[family])]
    # The network card of one interface has another checksum, a router another TTL.
    copies = [
        replace(frame, time_ns=frame.time_ns + 1_000 * later_us * copy)
        for frame in every
        for copy in range(times)
    ]
    copies.sort(key=lambda frame: frame.time_ns)
    found, notes = measured(tmp_path / "a.pcap", rewritten.pcap(copies))
    assert found == plain[family]
    removed, total = (times - 1) * len(every), times * len(every)
    (note,) = notes
    assert note.startswith(f"a.pcap: {removed} of {total} packets are copies of others")


def test_equal_packets_are_not_always_copies(tmp_path):
    """A generator of load sends the same datagram again and again."""
    ip = struct.pack(">BBHHHBBH8B", 0x45, 0, 60, 1, 0, 64, 17, 0, *range(1, 9))
    content = bytes(12) + b"\x08\0" + ip + struct.pack(">HHHH", 1, 2, 40, 0) + b"x" * 32
    every = [Frame(at * 100_000, content, 74) for at in range(500)]
    found, notes = measured(tmp_path / "a.pcap", rewritten.pcap(every))
    assert found["phases"]["overall"]["sent_packets"] == 500
    assert notes == ()


@pytest.mark.parametrize("family", ["IPv4", "IPv6"])
def test_the_smaller_length_counts(family, frames_by_family, plain, tmp_path):
    def longer(frame: Frame) -> Frame:
        at = 16 if family == "IPv4" else 18
        length = int.from_bytes(frame.content[at : at + 2], "big") + 500
        content = frame.content[:at] + length.to_bytes(2, "big") + frame.content[at + 2 :]
        return replace(frame, content=content)

    every = [longer(frame) for frame in frames_by_family[family]]
    found, (note,) = measured(tmp_path / "a.pcap", rewritten.pcap(every))
    assert found == plain[family]
    assert f"{len(every)} of {len(every)} packets are shorter than their IP header states" in note


def with_mss(frames: list[Frame], *, client: int, server: int) -> list[Frame]:
    """Change the MSS option of both SYNs, which is the first option of each."""
    changed = list(frames)
    for at, mss in ((0, client), (1, server)):
        content = changed[at].content
        assert content[54:56] == b"\x02\x04", "the MSS option"
        content = content[:56] + mss.to_bytes(2, "big") + content[58:]
        changed[at] = replace(changed[at], content=content)
    return changed


@pytest.mark.parametrize(("client", "server"), [(536, 1460), (1460, 536), (9_000, 9_000)])
def test_a_frame_of_ethernet_is_one_packet(client, server, frames, plain, tmp_path):
    every = with_mss(frames, client=client, server=server)
    found, _ = measured(tmp_path / "a.pcap", rewritten.pcap(every))
    assert found == plain["IPv4"]


CONTAINERS = {
    "Kuznetzov": rewritten.kuznetzov,
    "Kuznetzov, big-endian": lambda every: rewritten.kuznetzov(every, ">"),
    "snoop": rewritten.snoop,
    "Network Monitor": rewritten.netmon,
    "Network Monitor 2.1": lambda every: rewritten.netmon(every, minor=1),
    "Network Monitor 2.3": lambda every: rewritten.netmon(every, minor=3),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_with_microseconds(container, frames, tmp_path):
    expected = measured(tmp_path / "a.pcap", rewritten.pcap(frames, per_second=10**6))
    whole = CONTAINERS[container](frames)
    assert measured(tmp_path / "a.pcap", whole) == expected
    cut, notes = measured(tmp_path / "a.pcap", whole[: len(whole) // 2 + 1])
    assert notes == ("a.pcap ends in the middle of a packet",)
    assert cut["phases"]["overall"]["sent_packets"] > 0
    # The length of the packet or, of snoop, of its record.
    damaged = bytearray(whole)
    at = whole.index(frames[100].content) - (4 if container.startswith("Network") else 16)
    damaged[at : at + 4] = b"\xff\xff\xff\xff"
    _, (note,) = measured(tmp_path / "a.pcap", bytes(damaged))
    assert "measured up to there, 100 packets" in note


# Magic number, and bytes in front of each packet.
PATCHED = {
    "Red Hat 6.1": (0xA1B2C3D4, 8),
    "Nokia": (0xA1B2C3D4, 4),
    "SuSE 6.3": (0xA1B2CD34, 12),
    "Kuznetzov": (0xA1B2CD34, 8),
}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("variant", PATCHED)
def test_patched_libpcaps(variant, order, frames, tmp_path):
    for count in (len(frames), 40):
        expected = measured(tmp_path / "a.pcap", rewritten.pcap(frames[:count], per_second=10**6))
        whole = rewritten.long_headers(frames[:count], *PATCHED[variant], order)
        assert measured(tmp_path / "a.pcap", whole) == expected
        packed = gzip.compress(whole)
        assert measured(tmp_path / "a.pcap", packed) == expected


def test_a_file_that_ends_within_a_header_says_so(frames, tmp_path):
    for write in CONTAINERS.values():
        whole = write(frames[:50])
        # The first bytes of the header of the last record, whatever its length.
        cut = whole[: whole.index(frames[49].content) - 5]
        _, notes = measured(tmp_path / "a.pcap", cut)
        assert notes == ("a.pcap ends in the middle of a packet",)


def test_milliseconds_of_network_monitor_1(frames, tmp_path):
    def rounded(frame: Frame) -> Frame:
        return replace(frame, time_ns=frame.time_ns // 10**6 * 10**6)

    expected = rewritten.pcap([rounded(frame) for frame in frames])
    expected_flow, _ = measured(tmp_path / "a.pcap", expected)
    found, notes = measured(tmp_path / "a.cap", rewritten.netmon(frames, version=1))
    assert found == expected_flow
    assert notes == ()


def test_network_types_and_missing_records_of_network_monitor_are_named(frames, tmp_path):
    path = tmp_path / "a.cap"
    raw = [rewritten.raw(frame) for frame in frames]
    expected, _ = measured(path, rewritten.pcap(raw, link=rewritten.RAW, per_second=10**6))
    found, _ = measured(path, rewritten.netmon(raw, minor=1, network=0xE000 + rewritten.RAW))
    assert found == expected
    with pytest.raises(InputError, match="network type 6 of Network Monitor"):
        measured(path, rewritten.netmon(frames, minor=1, network=6))
    lost = bytearray(rewritten.netmon(frames))
    lost[28:32] = struct.pack("<I", 4 * len(frames) - 40)
    _, (note,) = measured(path, bytes(lost))
    assert f"measured up to there, {len(frames) - 10} packets" in note


@pytest.mark.parametrize("order", ["<", ">"])
def test_obsolete_packet_blocks(order, frames, plain, tmp_path):
    found, notes = measured(tmp_path / "a.pcapng", rewritten.obsolete_pcapng(frames, order))
    assert found == plain["IPv4"]
    assert notes == ()


UNREAD = {
    b"XCP\0": "Sniffer .Windows., .*editcap -F pcapng",
    b"iptrace 2": "AIX iptrace, .*editcap -F pcapng",
    b"\xab\x01\x00\x1c": "IXIA software, .*editcap -F pcapng",
    b"\xfd7zXZ\0": "compressed by xz, .*decompress it first",
    b"\xaa\xaa\xaa\xaa ": "5Views, .*editcap -F pcapng",
    b"ObserverPktBuffer": "Observer, .*editcap -F pcapng",
    b"TR\0d": "nettl, .*editcap -F pcapng",
    b"+---------+----": "K12 .text., .*editcap -F pcapng",
    b"\x01\x10\x4c\0\x01\x05Trace": "LANalyzer, .*editcap -F pcapng",
    b"hello": "If Wireshark reads it, `editcap -F pcapng",
}


@pytest.mark.parametrize("start", UNREAD)
def test_other_containers_are_named(start, tmp_path):
    with pytest.raises(InputError, match=UNREAD[start]):
        measured(tmp_path / "a.pcap", start + bytes(200))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("per_second", [10**6, 10**9])
def test_a_file_damaged_in_the_middle(order, per_second, frames, tmp_path):
    half = len(frames) // 2
    path = tmp_path / "a.pcap"
    expected, _ = measured(path, rewritten.pcap(frames[:half], per_second=per_second, order=order))
    whole = bytearray(rewritten.pcap(frames, per_second=per_second, order=order))
    at = len(rewritten.pcap(frames[:half], per_second=per_second, order=order))
    whole[at : at + 16] = b"\xff" * 16
    found, notes = measured(path, bytes(whole))
    assert found == expected
    (note,) = notes
    assert "damaged" in note
    assert f"measured up to there, {half} packets" in note


def test_a_pcapng_damaged_in_the_middle(frames, tmp_path):
    half = len(frames) // 2
    whole = bytearray(rewritten.bigendian_pcapng(frames))
    at = len(rewritten.bigendian_pcapng(frames[:half]))
    path = tmp_path / "a.pcapng"
    expected, _ = measured(path, bytes(whole[:at]))
    whole[at : at + 12] = b"\xff" * 12
    found, (note,) = measured(path, bytes(whole))
    assert found == expected
    assert f"measured up to there, {half} packets" in note


SEEDS = [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 200))]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_wrong_number_without_a_note(seed, frames_by_family, plain, tmp_path):
    """A capture that is cut, reordered or has copies gives other numbers only with a note."""
    draw = random.Random(seed)
    family = draw.choice(list(frames_by_family))
    every = list(frames_by_family[family])
    for _ in range(draw.randint(0, 40)):
        at = draw.randrange(len(every))
        if draw.random() < 0.5:
            every.insert(draw.randrange(len(every)), every.pop(at))
        else:
            every.insert(at, every[at])
    snap = draw.randint(74, 110) if draw.random() < 0.3 else 65_535
    form = {"per_second": draw.choice([10**6, 10**9]), "order": draw.choice("<>"), "snap": snap}
    content = rewritten.pcap(every, **form)
    if draw.random() < 0.3:
        content = content[: draw.randrange(len(content) // 4, len(content))]
    found, notes = measured(tmp_path / "a.pcap", content)
    if form["per_second"] == 10**6:
        expected, _ = measured(
            tmp_path / "b.pcap", rewritten.pcap(frames_by_family[family], per_second=10**6)
        )
    else:
        expected = plain[family]
    assert notes or found == expected
