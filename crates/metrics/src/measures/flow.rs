//! Measures of a flow in an interval.

use crate::e_model;
use crate::interval_stats::{FlowIntervalStats, bits_per_s, known, ratio};
use SendLimit::{Application, Cwnd, CwndOrPacing, Other, Pacing, ReceiveWindow, SendBuffer};
use jostle_units::SendLimit;

super::definition::measures! {
    /// The measures of a flow in a phase.
    FlowPhase, rows ROWS, Flow in Phases;
    of FlowIntervalStats, at |all, at| &all.flows[at];

    /// Bits of data packets that the sender put on the wire per second, including link headers and
    /// retransmissions.
    sending_rate_bps: f64, "sending_rate", "sending rate", RATE, any, "sending_rate_bps";
    |flow, _| Some(bits_per_s(flow.sent_bytes, flow.length_ns));

    /// Bits of data packets that reached the receiver per second, including link headers.
    throughput_bps: f64, "throughput", "throughput", RATE, any, "throughput_bps";
    |flow, _| Some(bits_per_s(flow.received_bytes, flow.length_ns));

    /// Bits of payload that reached the application in order, per second. Absent (NaN; null in the
    /// summary's document) if a foreign program does not report the data that it received.
    goodput_bps: f64, "goodput", "goodput", RATE, any, "goodput_bps";
    |flow, _| Some(bits_per_s(flow.delivered_bytes, flow.length_ns));

    /// Goodput ÷ sending rate. Data sent in one phase may be delivered in the next one, so the
    /// ratio can exceed 1 in a short phase; it is not limited to 1.
    goodput_ratio: Option<f64>, "goodput_ratio", "goodput ratio", PERCENT, any;
    |flow, _| ratio(flow.delivered_bytes, flow.sent_bytes);

    /// Mean of the RTT samples that arrived in the phase: one per ACK that gave a sample, or per
    /// ping reply.
    rtt_mean_s: Option<f64>, "rtt", "RTT", ROUND_TRIP, any, "rtt_mean_s";
    |flow, _| flow.rtt_mean_s;

    /// Smallest RTT sample.
    rtt_min_s: Option<f64>, "rtt_min", "min RTT", ROUND_TRIP, phase;
    |flow, _| flow.rtt_min_s;

    /// Median of the RTT samples, with an error below 1.6 %.
    rtt_p50_s: Option<f64>, "rtt_p50", "median RTT", ROUND_TRIP, phase;
    |flow, _| flow.rtt_p50_s;

    /// 95th percentile of the RTT samples, with an error below 1.6 %.
    rtt_p95_s: Option<f64>, "rtt_p95", "p95 RTT", ROUND_TRIP, phase;
    |flow, _| flow.rtt_p95_s;

    /// Standard deviation of the RTT samples (n − 1).
    rtt_sd_s: Option<f64>, "rtt_sd", "RTT std dev", ROUND_TRIP, phase;
    |flow, _| flow.rtt_sd_s;

    /// Mean time from the first transmission of the last segment that an ACK acknowledges until
    /// this ACK, for ACKs of new data. Includes loss recovery. Equal to Wireshark's
    /// `tcp.analysis.ack_rtt` in a capture at the sender. Unknown on the kernel, which reports
    /// samples only.
    segment_rtt_mean_s: Option<f64>, "segment_rtt", "segment RTT", ROUND_TRIP, any, "segment_rtt_mean_s";
    |flow, _| flow.segment_rtt_mean_s;

    /// Median of the RTT of ACKs of new data, with an error below 1.6 %.
    segment_rtt_p50_s: Option<f64>, "segment_rtt_p50", "median segment RTT", ROUND_TRIP, phase;
    |flow, _| flow.segment_rtt_p50_s;

    /// 95th percentile of the RTT of ACKs of new data, with an error below 1.6 %.
    segment_rtt_p95_s: Option<f64>, "segment_rtt_p95", "p95 segment RTT",
        ROUND_TRIP, phase;
    |flow, _| flow.segment_rtt_p95_s;

    /// Largest RTT of ACKs of new data.
    segment_rtt_max_s: Option<f64>, "segment_rtt_max", "largest segment RTT", ROUND_TRIP, phase;
    |flow, _| flow.segment_rtt_max_s;

    /// Time-weighted mean of the congestion window during the flow's lifetime: from its first ACK
    /// until it completed, or until the last ACK after its stop.
    cwnd_mean_bytes: Option<f64>, "cwnd", "cwnd", SIZE, any, "cwnd_bytes";
    |flow, _| flow.cwnd_mean_bytes;

    /// Share of the time in which the application had no unsent data and no lost packet waited for
    /// its retransmission. The time counts from the end of the handshake until the flow completed
    /// or stopped. Kernel: the time in which the connection was not busy (nothing unsent or
    /// unacknowledged), and the busy time at whose samples nothing was unsent. Capture near the
    /// sender: the last packet was not full-sized, the receive window had room for a packet and no
    /// retransmission was due; the time counts from the first to the last data packet.
    application_limited: Option<f64>, "application_limited", "application-limited", PERCENT, phase;
    |flow, _| flow.limited(&[Application], &[]);

    /// Share of the time in which cwnd had no room for the next packet, including the wait for the
    /// detection of a loss or a timeout. Pacing is checked first, as in Linux. Unknown on the kernel
    /// and in captures.
    cwnd_limited: Option<f64>, "cwnd_limited", "cwnd-limited", PERCENT, phase;
    |flow, _| flow.limited(&[Cwnd], &[CwndOrPacing, Other]);

    /// Share of the time in which cwnd had room and the receive window, or flow control of QUIC, had
    /// none (`tcpi_rwnd_limited` of Linux). Capture near the sender: the receive window had no room
    /// for a full-sized packet.
    receive_window_limited: Option<f64>, "receive_window_limited", "receive-window-limited", PERCENT,
        phase;
    |flow, _| flow.limited(&[ReceiveWindow], &[]);

    /// Share of the time in which all data in the send buffer were sent, and the buffer was full of
    /// unacknowledged data (`tcpi_sndbuf_limited` of Linux). Simulated TCP has no such limit. Unknown
    /// in captures.
    send_buffer_limited: Option<f64>, "send_buffer_limited", "send-buffer-limited", PERCENT, phase;
    |flow, _| flow.limited(&[SendBuffer], &[Other]);

    /// Share of the time in which the next packet waited for its departure time under pacing, or for
    /// space in the host's own queue (TCP small queues). Unknown on the kernel and in captures.
    pacing_limited: Option<f64>, "pacing_limited", "pacing-limited", PERCENT, phase;
    |flow, _| flow.limited(&[Pacing], &[CwndOrPacing, Other]);

    /// Share of the time in which cwnd or pacing limited the sender. Kernel: busy, and not limited
    /// by the receive window, the send buffer or the application. Unknown in captures.
    cwnd_or_pacing_limited: Option<f64>, "cwnd_or_pacing_limited", "limited by cwnd or pacing", PERCENT,
        phase;
    |flow, _| flow.limited(&[Cwnd, Pacing, CwndOrPacing], &[Other]);

    /// Data packets sent, including retransmissions.
    sent_packets: u64, "sent", "packets sent", PACKETS, any, "sent_packets";
    |flow, _| Some(flow.sent_packets);

    /// Data packets retransmitted, including loss probes. For a foreign QUIC implementation, the
    /// packets that it declared lost, if it reports them.
    retransmitted_packets: Option<u64>, "retransmitted", "retransmitted packets", PACKETS, any,
        "retransmitted_packets";
    |flow, _| known(flow.retransmitted_packets);

    /// Packets retransmitted ÷ packets sent.
    retransmission_ratio: Option<f64>, "retransmission_ratio", "retransmission rate", PERCENT, any,
        "retransmission_ratio";
    |flow, _| ratio(flow.retransmitted_packets, flow.sent_packets);

    /// Throughput ÷ mean RTT.
    power_bits: Option<f64>, "power", "power", POWER, any;
    |flow, _| ratio(bits_per_s(flow.received_bytes, flow.length_ns), flow.rtt_mean_s?);

    /// Throughput ÷ mean RTT of ACKs of new data, as computed from a capture at the sender.
    segment_power_bits: Option<f64>, "segment_power", "power by segment RTT", POWER, any;
    |flow, _| ratio(bits_per_s(flow.received_bytes, flow.length_ns), flow.segment_rtt_mean_s?);

    /// Throughput ÷ throughput of all competing flows: those whose data cross a common link in the
    /// interval, directly or through other flows. A flow in the opposite direction does not count. Flows of datagrams
    /// (pings, constant bit rate) have no share and do not reduce the share of other flows, because
    /// their rate is fixed.
    share: Option<f64>, "share", "share", PERCENT, any;
    |flow, all| {
        let own_bps = bits_per_s(flow.received_bytes, flow.length_ns);
        if flow.counts_for_share { ratio(own_bps, all.contest_bps(flow)) } else { None }
    };

    /// Throughput minus the throughput of all other flows that compete for its links (see `share`)
    /// together, without flows of datagrams.
    lead_bps: f64, "lead", "throughput lead", RATE, any;
    |flow, all| {
        let own_bps = bits_per_s(flow.received_bytes, flow.length_ns);
        let of_all_bps = if flow.counts_for_share { own_bps } else { 0.0 };
        Some(own_bps - (all.contest_bps(flow) - of_all_bps))
    };

    /// Mean one-way delay of data packets, from leaving the sender's host for the first link until
    /// arrival at the receiver. The kernel reports it for datagrams only.
    one_way_delay_mean_s: Option<f64>, "one_way_delay", "one-way delay", ROUND_TRIP, any,
        "one_way_delay_mean_s";
    |flow, _| flow.delay_mean_s;

    /// Smallest one-way delay of a data packet.
    one_way_delay_min_s: Option<f64>, "one_way_delay_min", "smallest one-way delay", ROUND_TRIP,
        phase;
    |flow, _| flow.delay_min_s;

    /// Median of the one-way delays. The part above the propagation delay has an error below 1.6 %.
    one_way_delay_p50_s: Option<f64>, "one_way_delay_p50", "median one-way delay", ROUND_TRIP, phase;
    |flow, _| flow.delay_p50_s;

    /// 95th percentile of the one-way delays. The part above the propagation delay has an error
    /// below 1.6 %.
    one_way_delay_p95_s: Option<f64>, "one_way_delay_p95", "p95 one-way delay",
        ROUND_TRIP, phase;
    |flow, _| flow.delay_p95_s;

    /// 99th percentile of the one-way delays. The part above the propagation delay has an error
    /// below 1.6 %.
    one_way_delay_p99_s: Option<f64>, "one_way_delay_p99", "p99 one-way delay",
        ROUND_TRIP, phase;
    |flow, _| flow.delay_p99_s;

    /// Mean packet delay variation (RFC 5481, PDV): one-way delay of a packet minus the smallest
    /// one-way delay in the phase.
    delay_variation_mean_s: Option<f64>, "delay_variation", "delay variation", ROUND_TRIP, phase;
    |flow, _| excess(flow.delay_mean_s, flow.delay_min_s);

    /// 95th percentile of the packet delay variation (RFC 5481, PDV).
    delay_variation_p95_s: Option<f64>, "delay_variation_p95",
        "p95 delay variation", ROUND_TRIP, phase;
    |flow, _| excess(flow.delay_p95_s, flow.delay_min_s);

    /// 99th percentile of the packet delay variation (RFC 5481, PDV).
    delay_variation_p99_s: Option<f64>, "delay_variation_p99",
        "p99 delay variation", ROUND_TRIP, phase;
    |flow, _| excess(flow.delay_p99_s, flow.delay_min_s);

    /// Mean time that data packets which reached the receiver waited in the queues of their path,
    /// and of a tunnel's connection. Absent on the kernel, which does not report it.
    path_queueing_delay_mean_s: Option<f64>, "path_queueing_delay", "queueing delay of the path",
        ROUND_TRIP, any, "queueing_delay_mean_s";
    |flow, _| flow.queueing_delay_mean_s;

    /// Mean of the interarrival jitter (RFC 3550 §6.4.1) after each received one-way datagram: J
    /// grows by (|D| − J) ÷ 16, where D is the difference of the one-way delays of two successive
    /// arrivals.
    jitter_mean_s: Option<f64>, "jitter", "jitter", ROUND_TRIP, phase;
    |flow, _| flow.jitter_mean_s;

    /// One-way datagrams sent in the phase that are lost ÷ those that arrived or are lost. A missing
    /// datagram is lost if a later one has arrived (RFC 3550 §A.3), or if it was sent more than twice
    /// the flow's largest one-way delay before the end of the run. If no datagram of the flow arrived,
    /// the propagation delay replaces this delay. Unknown in captures.
    lost_share: Option<f64>, "datagram_loss", "datagram loss", PERCENT, phase;
    |flow, _| flow.lost_share;

    /// Mouth-to-ear delay of speech: duration of speech in a packet, look-ahead of the codec,
    /// one-way delay, and wait in the playout buffer. The buffer plays all packets sent in the phase
    /// at the same delay after they were sent. Absent if none of them arrived.
    mouth_to_ear_s: Option<f64>, "mouth_to_ear", "mouth-to-ear delay", ROUND_TRIP, phase;
    |flow, _| flow.mouth_to_ear_s;

    /// Transmission rating R of speech in the E-model (ITU-T G.107): 93.2 without impairment; many
    /// users are dissatisfied at 70 and below. It rates the packets sent in the phase. Packets that
    /// miss their playout time are lost, in addition to `datagram_loss`. If no packet arrived, the
    /// delay is the codec's plus the propagation delay. Delay, loss and codec parameters are set; all
    /// others have their default values. Losses count as random (BurstR = 1).
    r_factor: Option<f64>, "r_factor", "R factor", NUMBER, phase;
    |flow, _| flow.rating;

    /// Mean opinion score of a conversation, 1 to 4.5, derived from R (ITU-T G.107, Annex B).
    mos: Option<f64>, "mos", "MOS", NUMBER, phase;
    |flow, _| flow.rating.map(e_model::opinion);

    /// Mean of the frame delays in the phase in which the frames were complete: from the moment at
    /// which the application (a media source or a trace) writes a frame until all of it has reached
    /// the application of the receiver.
    frame_delay_mean_s: Option<f64>, "frame_delay", "frame delay", ROUND_TRIP, phase;
    |flow, _| flow.frames?.mean_s;

    /// Median of the frame delays, with an error below 1.6 %.
    frame_delay_p50_s: Option<f64>, "frame_delay_p50", "median frame delay", ROUND_TRIP, phase;
    |flow, _| flow.frames?.p50_s;

    /// 95th percentile of the frame delays, with an error below 1.6 %.
    frame_delay_p95_s: Option<f64>, "frame_delay_p95", "p95 frame delay",
        ROUND_TRIP, phase;
    |flow, _| flow.frames?.p95_s;

    /// 99th percentile of the frame delays, with an error below 1.6 %.
    frame_delay_p99_s: Option<f64>, "frame_delay_p99", "p99 frame delay",
        ROUND_TRIP, phase;
    |flow, _| flow.frames?.p99_s;

    /// Largest frame delay.
    frame_delay_max_s: Option<f64>, "frame_delay_max", "largest frame delay", ROUND_TRIP, phase;
    |flow, _| flow.frames?.max_s;

    /// Frames that took longer than their deadline ÷ all complete frames. Frames that never
    /// completed, although their deadline passed before the end of the run, count as late in the
    /// phases that last until the end.
    late_frames: Option<f64>, "late_frames", "late frames", PERCENT, phase;
    |flow, _| flow.frames?.late;

    /// Complete frames at the receiver.
    frames: Option<u64>, "frames", "frames", NUMBER, phase;
    |flow, _| Some(flow.frames?.frames);

    /// Mean of the response times in the phase in which the responses were complete: from the
    /// request at the sender (for the first response, from the opening of the connection) until the
    /// last byte has reached the application of the receiver. The request itself takes no time.
    response_time_mean_s: Option<f64>, "response_time", "response time", ROUND_TRIP, any, "response_time_mean_s";
    |flow, _| flow.response_time_mean_s;

    /// Median of the response times, with an error below 1.6 %.
    response_time_p50_s: Option<f64>, "response_time_p50", "median response time", ROUND_TRIP, phase;
    |flow, _| flow.response_time_p50_s;

    /// 95th percentile of the response times, with an error below 1.6 %.
    response_time_p95_s: Option<f64>, "response_time_p95", "p95 response time", ROUND_TRIP,
        phase;
    |flow, _| flow.response_time_p95_s;

    /// 99th percentile of the response times, with an error below 1.6 %.
    response_time_p99_s: Option<f64>, "response_time_p99", "p99 response time", ROUND_TRIP,
        phase;
    |flow, _| flow.response_time_p99_s;

    /// Complete responses at the receiver; absent for flows without requests.
    responses: Option<u64>, "responses", "responses", NUMBER, any, "responses";
    |flow, _| flow.responds.then_some(flow.responses);
}

/// Returns by how much a delay exceeds the smallest one. Floating-point errors of a mean are no
/// excess.
fn excess(delay_s: Option<f64>, least_s: Option<f64>) -> Option<f64> {
    Some((delay_s? - least_s?).max(0.0))
}

#[cfg(test)]
mod tests {
    use crate::fair_bins::FairBins;
    use crate::interval_stats::{FlowIntervalStats, IntervalStats};
    use crate::measures::named;

    #[test]
    fn pings_neither_take_shares_nor_lessen_them() {
        let flow = |received_bytes, competes| FlowIntervalStats {
            received_bytes,
            counts_for_share: competes,
            length_ns: 8e9,
            ..FlowIntervalStats::default()
        };
        let flows = vec![flow(300.0, true), flow(100.0, true), flow(50.0, false)];
        let all = IntervalStats::new(flows, vec![], vec![], FairBins::default());
        let of = |name| [0, 1, 2].map(|at| named(name).unwrap().over(&all, at));
        assert_eq!(of("share"), [Some(0.75), Some(0.25), None]);
        assert_eq!(of("lead"), [Some(200.0), Some(-200.0), Some(-350.0)]);
        assert_eq!(of("total_throughput"), [Some(400.0); 3]);
    }

    #[test]
    fn constant_delays_do_not_vary() {
        let flow = |mean_s| FlowIntervalStats {
            delay_mean_s: Some(mean_s),
            delay_min_s: Some(0.02),
            ..FlowIntervalStats::default()
        };
        let flows = vec![flow(0.02_f64.next_down()), flow(0.02), flow(0.03)];
        let all = IntervalStats::new(flows, vec![], vec![], FairBins::default());
        let of = [0, 1, 2].map(|at| named("delay_variation").unwrap().over(&all, at).unwrap());
        assert_eq!(of[..2], [0.0, 0.0]);
        assert!((of[2] - 0.01).abs() < 1e-15, "{of:?}");
    }

    #[test]
    fn flows_in_other_contests_have_their_own_shares() {
        let flow = |received_bytes, contest| FlowIntervalStats {
            received_bytes,
            contest,
            counts_for_share: true,
            length_ns: 8e9,
            ..FlowIntervalStats::default()
        };
        let flows = vec![flow(300.0, 0), flow(50.0, 4), flow(100.0, 0)];
        let all = IntervalStats::new(flows, vec![], vec![], FairBins::default());
        let of = |name| [0, 1, 2].map(|at| named(name).unwrap().over(&all, at));
        assert_eq!(of("share"), [Some(0.75), Some(1.0), Some(0.25)]);
        assert_eq!(of("lead"), [Some(200.0), Some(50.0), Some(-200.0)]);
        assert_eq!(of("total_throughput"), [Some(450.0); 3]);
    }
}
