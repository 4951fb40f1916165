//! Measures of a flow that was captured, over the whole capture.

use super::row::measures_of_a_run;
use crate::captured::Captured;
use crate::stretch::ratio;

measures_of_a_run! {
    /// What the summary has of a captured flow, of the whole capture.
    pub CapturedSummary, of Captured by Captured;
    /// Of a capture: time from the first SYN until the ACK that ends the handshake, a round trip
    /// wherever on the path it is captured.
    handshake_s: Option<f64>, "handshake", "handshake", ROUND_TRIP; |seen| seen.handshake_s;
    /// Of a capture: shortest round trip of packets of data that are as large as the flow's can be. One of
    /// less takes less time on every link, and is in the smallest RTT of all.
    full_rtt_min_s: Option<f64>, "full_rtt_min", "smallest RTT of a full packet", ROUND_TRIP;
        |seen| seen.full_rtt_min_s;
    /// Of a capture near the sender: packets of data sent before the first ACK of data came.
    initial_window_packets: Option<u64>, "initial_window", "initial window", PACKETS;
        |seen| seen.initial_window_packets.map(count);
    /// Of a capture near the sender: packets sent again when SACKs of later data, or three duplicate
    /// ACKs, had told of a hole.
    fast_retransmissions: Option<u64>, "fast_retransmissions", "fast retransmissions", PACKETS;
        |seen| seen.fast.map(count);
    /// Of a capture near the sender: packets sent again without such news: after a timeout.
    timeout_retransmissions: Option<u64>, "timeout_retransmissions", "retransmissions by timeout",
        PACKETS; |seen| seen.timeout.map(count);
    /// Of a capture near the sender: last packets sent again without such news, for the first time: tail
    /// loss probes (RFC 8985 §7).
    probe_retransmissions: Option<u64>, "probe_retransmissions", "loss probes", PACKETS;
        |seen| seen.probe.map(count);
    /// Of a capture: packets sent again though they had arrived. Near the sender, by D-SACKs (RFC 2883),
    /// no more of them than packets sent again; near the receiver, those that came a second time.
    spurious_retransmissions: Option<u64>, "spurious_retransmissions", "spurious retransmissions",
        PACKETS; |seen| seen.spurious.map(count);
    /// Of a capture: packets of data that fill a hole and were not sent again. They bear a time stamp no
    /// newer than that of the packet behind the hole; without time stamps, they come within half a
    /// handshake (3 ms if that is not known) after it.
    out_of_order_packets: Option<u64>, "out_of_order", "packets out of order", PACKETS;
        |seen| seen.out_of_order.map(count);
    /// Of a capture: runs of neighbouring packets that were sent again for a loss, each of which begins
    /// where the one before it ends.
    loss_bursts: Option<u64>, "loss_bursts", "loss bursts", NUMBER; |seen| seen.loss_bursts.map(count);
    /// Of a capture: packets in such a run, on average.
    loss_burst_mean_packets: Option<f64>, "loss_burst", "packets of a loss burst", PACKETS;
        |seen| ratio(count(seen.lost_packets), count(seen.loss_bursts?));
    /// Of a capture: packets of data with the mark CE ÷ those whose sender understands marks
    /// (RFC 3168). At the sender none has one yet.
    marked_share: Option<f64>, "marked_share", "marked", PERCENT;
        |seen| ratio(count(seen.marked), count(seen.capable));
    /// Of a capture of a flow that understands marks: ACKs with the flag ECE.
    congestion_echoes: Option<u64>, "congestion_echoes", "ACKs that echo marks", PACKETS;
        |seen| (seen.capable > 0).then(|| count(seen.echoes));
    /// Of a capture near the sender: time during which the last packet was not full, the receiver's
    /// window had room for one more and nothing waited to be sent again ÷ the time from the first packet
    /// of data to the last one: the application had nothing to send.
    application_limited: Option<f64>, "application_limited", "limited by the application", PERCENT;
        |seen| ratio(seen.application_limited_s?, seen.lived_s);
    /// Of a capture near the sender: time during which the receiver's window had no room for one more
    /// full packet ÷ the same.
    receiver_limited: Option<f64>, "receiver_limited", "limited by the receiver", PERCENT;
        |seen| ratio(seen.receiver_limited_s?, seen.lived_s);
    /// Of a capture: how often the receiver closed its window.
    zero_windows: Option<u64>, "zero_windows", "closed windows", NUMBER;
        |seen| Some(count(seen.zero_windows));
    /// Of captures at both ends: packets of data that left the one and did not come to the other ÷ those
    /// that left.
    path_loss: Option<f64>, "path_loss", "lost between both ends", PERCENT;
        |seen| {
            let (sent, received) = seen.both_ends?;
            ratio(count(sent.saturating_sub(received)), count(sent))
        };
}

fn count(packets: u64) -> f64 {
    packets as f64
}
