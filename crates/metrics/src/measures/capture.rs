//! Measures of a captured flow over a complete capture.

use super::definition::measures_of_a_run;
use crate::capture_counters::CaptureCounters;
use crate::interval_stats::ratio;

measures_of_a_run! {
    /// Summary of a captured flow over the complete capture.
    pub CapturedSummary, of CaptureCounters by Captured;
    /// Capture: time from the first SYN until the ACK that completes the handshake. This is one RTT
    /// at any capture point of the path.
    handshake_s: Option<f64>, "handshake", "handshake", ROUND_TRIP; |seen| seen.handshake_s;
    /// Capture: RTT between the capture point and the sender, in the handshake. RTTs from ACKs lack
    /// it.
    sender_side_rtt_s: Option<f64>, "sender_side_rtt", "RTT between capture point and sender",
        ROUND_TRIP; |seen| seen.sender_side_s;
    /// Capture: smallest RTT of full-sized data packets. Smaller packets need less time on every
    /// link; they count in the smallest RTT of all packets.
    full_rtt_min_s: Option<f64>, "full_rtt_min", "smallest RTT of a full packet", ROUND_TRIP;
        |seen| seen.full_rtt_min_s;
    /// Capture near the sender: data packets sent before the first ACK of data arrived.
    initial_window_packets: Option<u64>, "initial_window", "initial window", PACKETS;
        |seen| seen.initial_window_packets.map(count);
    /// Capture near the sender: packets retransmitted after SACKs of later data or three duplicate
    /// ACKs.
    fast_retransmissions: Option<u64>, "fast_retransmissions", "fast retransmissions", PACKETS;
        |seen| seen.fast.map(count);
    /// Capture near the sender: packets retransmitted after a timeout, without SACKs or duplicate
    /// ACKs.
    rto_retransmissions: Option<u64>, "rto_retransmissions", "RTO retransmissions",
        PACKETS; |seen| seen.timeout.map(count);
    /// Capture near the sender: first retransmissions of the last packet without SACKs or duplicate
    /// ACKs: tail loss probes (RFC 8985 §7).
    tlp_retransmissions: Option<u64>, "tlp_retransmissions", "TLP retransmissions", PACKETS;
        |seen| seen.probe.map(count);
    /// Capture: packets retransmitted although the original had arrived. Near the sender, D-SACKs
    /// (RFC 2883), at most the number of retransmissions; near the receiver, packets that arrived
    /// twice.
    spurious_retransmissions: Option<u64>, "spurious_retransmissions", "spurious retransmissions",
        PACKETS; |seen| seen.spurious.map(count);
    /// Capture: reordered packets, that is, data packets that fill a hole and are no
    /// retransmissions. The packet after the hole has the same or a newer timestamp.
    /// Without timestamps, they arrive within half a handshake (3 ms if unknown) after it.
    reordered_packets: Option<u64>, "reordered", "reordered packets", PACKETS;
        |seen| seen.out_of_order.map(count);
    /// Capture: groups of consecutive packets that were retransmitted because of a loss.
    loss_bursts: Option<u64>, "loss_bursts", "loss bursts", NUMBER; |seen| seen.loss_bursts.map(count);
    /// Capture: mean number of packets in a loss burst.
    loss_burst_mean_packets: Option<f64>, "loss_burst", "packets of a loss burst", PACKETS;
        |seen| ratio(count(seen.lost_packets), count(seen.loss_bursts?));
    /// Capture: data packets with a CE mark ÷ ECN-capable data packets (RFC 3168). 0 in a capture
    /// at the sender, because no queue has marked yet.
    marked_share: Option<f64>, "marked_share", "marked", PERCENT;
        |seen| ratio(count(seen.marked), count(seen.capable));
    /// Capture of an ECN-capable flow: ACKs with ECN-Echo.
    congestion_echoes: Option<u64>, "congestion_echoes", "ECN-Echo ACKs", PACKETS;
        |seen| (seen.capable > 0).then(|| count(seen.echoes));
    /// Capture: number of times that the receiver closed its window.
    zero_windows: Option<u64>, "zero_windows", "zero windows", NUMBER;
        |seen| Some(count(seen.zero_windows));
    /// Capture: segments whose TCP options the snap length cut ÷ segments. Without these options
    /// there are fewer RTT samples, and data that arrived beyond a gap is known late.
    cut_options: Option<f64>, "cut_options", "cut TCP options", PERCENT;
        |seen| ratio(count(seen.cut_segments), count(seen.segments));
    /// Capture: segments with time stamps (RFC 7323) ÷ segments.
    timestamped_share: Option<f64>, "timestamped_share", "segments with time stamps", PERCENT;
        |seen| ratio(count(seen.stamped_segments), count(seen.segments));
    /// Capture: ACKs with SACK blocks (RFC 2018).
    sack_acks: Option<u64>, "sack_acks", "ACKs with SACK blocks", PACKETS;
        |seen| Some(count(seen.sack_acks));
    /// Capture at both ends: data packets that left the sender and did not arrive ÷ data packets
    /// that left the sender. Packets that the capture near the receiver could not see do not count:
    /// it was not yet running, or had ended when they arrived.
    path_loss: Option<f64>, "path_loss", "path loss rate", PERCENT;
        |seen| {
            let (sent, received) = seen.both_ends?;
            ratio(count(sent.saturating_sub(received)), count(sent))
        };
}

fn count(packets: u64) -> f64 {
    packets as f64
}
