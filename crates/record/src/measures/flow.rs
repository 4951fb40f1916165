//! Measures of a flow in a stretch of time.

use crate::e_model;
use crate::stretch::{FlowStretch, bits_per_s, known, ratio};

super::row::measures! {
    /// The measures of a flow in a phase.
    FlowPhase, rows ROWS, Flow in Phases;
    of FlowStretch, at |all, at| &all.flows[at];

    /// Bits of data packets that the sender put on the wire per second, link headers and
    /// retransmissions included.
    sending_rate_bps: f64, "sending_rate", "sending rate", RATE, any, "sending_rate_bps";
    |flow, _| Some(bits_per_s(flow.sent_bytes, flow.length_ns));

    /// Bits of data packets that reached the receiver per second, link headers included.
    throughput_bps: f64, "throughput", "throughput", RATE, any, "throughput_bps";
    |flow, _| Some(bits_per_s(flow.received_bytes, flow.length_ns));

    /// Bits of payload that reached the application in order, per second; absent (NaN, null in the
    /// summary's document) where a program of somebody else's does not show what it has got.
    goodput_bps: f64, "goodput", "goodput", RATE, any, "goodput_bps";
    |flow, _| Some(bits_per_s(flow.delivered_bytes, flow.length_ns));

    /// Useful data ÷ all data transmitted: goodput ÷ sending rate. Data sent in one phase may be
    /// delivered in the next, so it can pass 1 in a short phase; nothing caps it.
    goodput_ratio: Option<f64>, "goodput_ratio", "goodput ratio", PERCENT, any;
    |flow, _| ratio(flow.delivered_bytes, flow.sent_bytes);

    /// Mean of the RTT samples, one per ACK that gave one, or per echo of a ping, in the phase in
    /// which it arrived.
    rtt_mean_s: Option<f64>, "rtt", "RTT", ROUND_TRIP, any, "rtt_mean_s";
    |flow, _| flow.rtt_mean_s;

    /// Smallest RTT sample.
    rtt_min_s: Option<f64>, "rtt_min", "smallest RTT", ROUND_TRIP, phase;
    |flow, _| flow.rtt_min_s;

    /// Median of the RTT samples, less than 1.6 % off.
    rtt_p50_s: Option<f64>, "rtt_p50", "median RTT", ROUND_TRIP, phase;
    |flow, _| flow.rtt_p50_s;

    /// 95th percentile of the RTT samples, less than 1.6 % off.
    rtt_p95_s: Option<f64>, "rtt_p95", "95th percentile of the RTT", ROUND_TRIP, phase;
    |flow, _| flow.rtt_p95_s;

    /// Standard deviation of the RTT samples (n − 1).
    rtt_sd_s: Option<f64>, "rtt_sd", "deviation of the RTT", ROUND_TRIP, phase;
    |flow, _| flow.rtt_sd_s;

    /// Mean of the time from the first transmission of the last segment that an ACK acknowledges to
    /// this ACK, for ACKs that say something new, as Wireshark's `tcp.analysis.ack_rtt` in a capture
    /// at the sender: recovery is part of it. Not known of the kernel, of which samples are told.
    ack_rtt_mean_s: Option<f64>, "ack_rtt", "RTT of the ACKs", ROUND_TRIP, any, "ack_rtt_mean_s";
    |flow, _| flow.ack_rtt_mean_s;

    /// Median of the same, less than 1.6 % off.
    ack_rtt_p50_s: Option<f64>, "ack_rtt_p50", "median RTT of the ACKs", ROUND_TRIP, phase;
    |flow, _| flow.ack_rtt_p50_s;

    /// 95th percentile of the same, less than 1.6 % off.
    ack_rtt_p95_s: Option<f64>, "ack_rtt_p95", "95th percentile of the RTT of the ACKs",
        ROUND_TRIP, phase;
    |flow, _| flow.ack_rtt_p95_s;

    /// Largest of the same.
    ack_rtt_max_s: Option<f64>, "ack_rtt_max", "largest RTT of the ACKs", ROUND_TRIP, phase;
    |flow, _| flow.ack_rtt_max_s;

    /// Mean over time of the congestion window while the flow lived: from its first ACK until it
    /// completed, or until the last ACK after its stop.
    cwnd_mean_bytes: Option<f64>, "cwnd", "cwnd", SIZE, any, "cwnd_bytes";
    |flow, _| flow.cwnd_mean_bytes;

    /// Data packets sent, retransmissions included.
    sent_packets: u64, "sent", "packets sent", PACKETS, any, "sent_packets";
    |flow, _| Some(flow.sent_packets);

    /// Data packets sent again, loss probes included; of a QUIC of somebody else's those that it found
    /// to be lost, if it says so.
    retransmitted_packets: Option<u64>, "retransmitted", "packets sent again", PACKETS, any,
        "retransmitted_packets";
    |flow, _| known(flow.retransmitted_packets);

    /// Packets sent again ÷ packets sent.
    retransmission_ratio: Option<f64>, "retransmission_ratio", "retransmitted", PERCENT, any,
        "retransmission_ratio";
    |flow, _| ratio(flow.retransmitted_packets, flow.sent_packets);

    /// Throughput ÷ mean RTT.
    power_bits: Option<f64>, "power", "power", POWER, any;
    |flow, _| ratio(bits_per_s(flow.received_bytes, flow.length_ns), flow.rtt_mean_s?);

    /// Throughput ÷ that of all flows together. Pings, which take what they ask for, have no share
    /// and lessen nobody's.
    share: Option<f64>, "share", "share", PERCENT, any;
    |flow, all| {
        let own_bps = bits_per_s(flow.received_bytes, flow.length_ns);
        if flow.competes { ratio(own_bps, all.throughput_bps()) } else { None }
    };

    /// Throughput less that of all other flows together, pings left out.
    lead_bps: f64, "lead", "lead", RATE, any;
    |flow, all| {
        let own_bps = bits_per_s(flow.received_bytes, flow.length_ns);
        let of_all_bps = if flow.competes { own_bps } else { 0.0 };
        Some(own_bps - (all.throughput_bps() - of_all_bps))
    };

    /// Mean one-way delay of packets of data: from leaving the sender's host for the first link until
    /// they reach the receiver. The kernel tells it of datagrams alone.
    one_way_delay_mean_s: Option<f64>, "one_way_delay", "one-way delay", ROUND_TRIP, any,
        "one_way_delay_mean_s";
    |flow, _| flow.delay_mean_s;

    /// Smallest one-way delay of a packet of data.
    one_way_delay_min_s: Option<f64>, "one_way_delay_min", "smallest one-way delay", ROUND_TRIP,
        phase;
    |flow, _| flow.delay_min_s;

    /// Median of the one-way delays; of what they have beyond propagation less than 1.6 % off.
    one_way_delay_p50_s: Option<f64>, "one_way_delay_p50", "median one-way delay", ROUND_TRIP, phase;
    |flow, _| flow.delay_p50_s;

    /// 95th percentile of the one-way delays; of what they have beyond propagation less than 1.6 %
    /// off.
    one_way_delay_p95_s: Option<f64>, "one_way_delay_p95", "95th percentile of the one-way delay",
        ROUND_TRIP, phase;
    |flow, _| flow.delay_p95_s;

    /// 99th percentile of the one-way delays; of what they have beyond propagation less than 1.6 %
    /// off.
    one_way_delay_p99_s: Option<f64>, "one_way_delay_p99", "99th percentile of the one-way delay",
        ROUND_TRIP, phase;
    |flow, _| flow.delay_p99_s;

    /// Mean packet delay variation (RFC 5481, PDV): the one-way delay of a packet less the smallest
    /// in the phase.
    delay_variation_mean_s: Option<f64>, "delay_variation", "delay variation", ROUND_TRIP, phase;
    |flow, _| Some(flow.delay_mean_s? - flow.delay_min_s?);

    /// 95th percentile of the packet delay variation (RFC 5481, PDV).
    delay_variation_p95_s: Option<f64>, "delay_variation_p95",
        "95th percentile of the delay variation", ROUND_TRIP, phase;
    |flow, _| Some(flow.delay_p95_s? - flow.delay_min_s?);

    /// 99th percentile of the packet delay variation (RFC 5481, PDV).
    delay_variation_p99_s: Option<f64>, "delay_variation_p99",
        "99th percentile of the delay variation", ROUND_TRIP, phase;
    |flow, _| Some(flow.delay_p99_s? - flow.delay_min_s?);

    /// Mean time that packets of data which reached the receiver had waited in the queues of their
    /// path. Absent on the kernel, which does not tell it.
    path_queueing_delay_mean_s: Option<f64>, "path_queueing_delay", "queueing delay of the path",
        ROUND_TRIP, any, "queueing_delay_mean_s";
    |flow, _| flow.waited_mean_s;

    /// Mean of the interarrival jitter (RFC 3550 §6.4.1) of datagrams that nobody answers, as it was
    /// after each that came: J grows by (|D| − J) ÷ 16, where D is by how much the one-way delays of
    /// two that came one after the other differ.
    jitter_mean_s: Option<f64>, "jitter", "jitter", ROUND_TRIP, phase;
    |flow, _| flow.jitter_mean_s;

    /// Datagrams that did not come ÷ all, of those that nobody answers: what a receiver knows (RFC 3550
    /// §A.3), by which one is lost as soon as a later one has come.
    lost_share: Option<f64>, "datagram_loss", "datagrams lost", PERCENT, phase;
    |flow, _| flow.lost_share;

    /// Time from mouth to ear of speech: the speech of a packet and what the codec looks ahead, the way,
    /// and the wait in a playout buffer, which plays all packets of the phase equally long after they
    /// were sent.
    mouth_to_ear_s: Option<f64>, "mouth_to_ear", "mouth to ear", ROUND_TRIP, phase;
    |flow, _| flow.mouth_to_ear_s;

    /// Transmission rating R of speech by the E-model (ITU-T G.107): 93.2 if nothing is wrong, 70 and
    /// less if many are dissatisfied. Packets that come after they should have been played are lost.
    /// Whatever is no delay, no loss and not of the codec has its default value; losses count as random
    /// ones (BurstR = 1).
    r_factor: Option<f64>, "r_factor", "R factor", NUMBER, phase;
    |flow, _| flow.rating;

    /// Mean opinion score of a conversation, 1 to 4.5, that R stands for (ITU-T G.107, Annex B).
    mos: Option<f64>, "mos", "MOS", NUMBER, phase;
    |flow, _| flow.rating.map(e_model::opinion);

    /// Mean of the frame delays: from the moment at which an application that writes by the clock (a
    /// media source, a trace) has a frame until all of it has reached the application of the receiver,
    /// in the phase in which it did.
    frame_delay_mean_s: Option<f64>, "frame_delay", "frame delay", ROUND_TRIP, phase;
    |flow, _| flow.frames?.mean_s;

    /// Median of the frame delays, less than 1.6 % off.
    frame_delay_p50_s: Option<f64>, "frame_delay_p50", "median frame delay", ROUND_TRIP, phase;
    |flow, _| flow.frames?.p50_s;

    /// 95th percentile of the frame delays, less than 1.6 % off.
    frame_delay_p95_s: Option<f64>, "frame_delay_p95", "95th percentile of the frame delay",
        ROUND_TRIP, phase;
    |flow, _| flow.frames?.p95_s;

    /// 99th percentile of the frame delays, less than 1.6 % off.
    frame_delay_p99_s: Option<f64>, "frame_delay_p99", "99th percentile of the frame delay",
        ROUND_TRIP, phase;
    |flow, _| flow.frames?.p99_s;

    /// Largest of the frame delays.
    frame_delay_max_s: Option<f64>, "frame_delay_max", "largest frame delay", ROUND_TRIP, phase;
    |flow, _| flow.frames?.max_s;

    /// Frames that took longer than their deadline ÷ all that were whole. Those that never were, though
    /// their deadline had come before the run's end, count as late in the phases that last until then.
    frames_late: Option<f64>, "frames_late", "frames late", PERCENT, phase;
    |flow, _| flow.frames?.late;

    /// Frames that reached the receiver whole.
    frames: Option<u64>, "frames", "frames", NUMBER, phase;
    |flow, _| Some(flow.frames?.frames);

    /// Mean of the response times: from the moment at which the sender is asked (for the first, at
    /// which the connection opens) until the last byte has reached the application of the receiver,
    /// in the phase in which it did. The request itself takes no time.
    response_mean_s: Option<f64>, "response", "response time", ROUND_TRIP, any, "response_mean_s";
    |flow, _| flow.response_mean_s;

    /// Median of the response times, less than 1.6 % off.
    response_p50_s: Option<f64>, "response_p50", "median response time", ROUND_TRIP, phase;
    |flow, _| flow.response_p50_s;

    /// 95th percentile of the response times, less than 1.6 % off.
    response_p95_s: Option<f64>, "response_p95", "95th percentile of the response time", ROUND_TRIP,
        phase;
    |flow, _| flow.response_p95_s;

    /// 99th percentile of the response times, less than 1.6 % off.
    response_p99_s: Option<f64>, "response_p99", "99th percentile of the response time", ROUND_TRIP,
        phase;
    |flow, _| flow.response_p99_s;

    /// Responses that reached the receiver whole; absent of flows that are not asked for any.
    responses: Option<u64>, "responses", "responses", NUMBER, any, "responses";
    |flow, _| flow.responds.then_some(flow.responses);
}

#[cfg(test)]
mod tests {
    use crate::measures::named;
    use crate::stretch::{FlowStretch, Rates, Stretch};
    use crate::tables::FlowTable;

    #[test]
    fn pings_neither_take_shares_nor_lessen_them() {
        let flow = |received_bytes, competes| FlowStretch {
            received_bytes,
            competes,
            length_ns: 8e9,
            ..FlowStretch::default()
        };
        let flows = vec![flow(300.0, true), flow(100.0, true), flow(50.0, false)];
        let table = FlowTable::default();
        let all = Stretch::new(flows, vec![], vec![], Rates::between(&table, 3, 0.0, 8.0));
        let of = |name| [0, 1, 2].map(|at| named(name).unwrap().over(&all, at));
        assert_eq!(of("share"), [Some(0.75), Some(0.25), None]);
        assert_eq!(of("lead"), [Some(200.0), Some(-200.0), Some(-350.0)]);
        assert_eq!(of("total"), [Some(400.0); 3]);
    }
}
