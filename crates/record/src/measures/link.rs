//! Measures of a link in a stretch of time.

use jostle_path::Reason;

use crate::stretch::{LinkStretch, ratio};

super::row::measures! {
    /// The measures of a link in a phase.
    LinkPhase, rows ROWS, Link in Phases;
    of LinkStretch, at |all, at| &all.links[at];

    /// Bytes sent ÷ bytes that the capacity could have carried; absent while that is none. A packet
    /// counts where its bytes leave, as if at one rate; what that is off where the capacity changes
    /// meanwhile is cut at 1.
    utilisation: Option<f64>, "utilisation", "utilisation", PERCENT, any, "utilisation";
    |link, _| ratio(link.sent_bytes, link.offered_bytes).map(|share| share.min(1.0));

    /// Mean over time of the bytes waiting; the packet being sent does not wait.
    queue_mean_bytes: f64, "queue", "queue", SIZE, any, "queue_mean_bytes";
    |link, _| ratio(link.queue_bytes_ns, link.length_ns);

    /// Bytes that the queue holds at most during 95 % of the time, less than 1.6 % off.
    queue_p95_bytes: f64, "queue_p95", "95th percentile of the queue", SIZE, phase;
    |link, _| link.queue_p95_bytes;

    /// The mean queue as time: in how long the link sends it at its mean capacity. Packets of one flow
    /// may be let through before others; what they wait is `queueing_delay`.
    queue_mean_s: Option<f64>, "queue_time", "queue as time", ROUND_TRIP, any, "queue_mean_s";
    |link, _| ratio(link.queue_bytes_ns, link.offered_bytes).map(|ns| ns / 1e9);

    /// The 95th percentile of the queue as time, at the link's mean capacity.
    queue_p95_s: Option<f64>, "queue_time_p95", "95th percentile of the queue as time", ROUND_TRIP,
        phase;
    |link, _| ratio(link.queue_p95_bytes? * link.length_ns, link.offered_bytes).map(|ns| ns / 1e9);

    /// Mean time that packets had waited in the queue when their sending began. On the kernel that of
    /// a packet is taken to be the time in which what waits at a sample is sent at the rate since
    /// the one before.
    queueing_delay_mean_s: Option<f64>, "queueing_delay", "queueing delay", ROUND_TRIP, any,
        "queueing_delay_mean_s";
    |link, _| link.waited_mean_s;

    /// Median of the times that packets had waited in the queue, less than 1.6 % off.
    queueing_delay_p50_s: Option<f64>, "queueing_delay_p50", "median queueing delay", ROUND_TRIP,
        phase;
    |link, _| link.waited_p50_s;

    /// 95th percentile of the times that packets had waited in the queue, less than 1.6 % off.
    queueing_delay_p95_s: Option<f64>, "queueing_delay_p95", "95th percentile of the queueing delay",
        ROUND_TRIP, phase;
    |link, _| link.waited_p95_s;

    /// 99th percentile of the times that packets had waited in the queue, less than 1.6 % off.
    queueing_delay_p99_s: Option<f64>, "queueing_delay_p99", "99th percentile of the queueing delay",
        ROUND_TRIP, phase;
    |link, _| link.waited_p99_s;

    /// Packets dropped, for whatever reason.
    dropped_packets: u64, "dropped", "packets dropped", PACKETS, any;
    |link, _| Some(link.dropped.iter().sum());

    /// Packets dropped because they did not fit into the queue.
    dropped_overflow_packets: u64, "dropped_overflow", "dropped: overflow", PACKETS, any,
        "dropped_overflow";
    |link, _| Some(link.dropped[Reason::Overflow as usize]);

    /// Packets dropped by `occupancy_drop` because the queue was above its threshold.
    dropped_occupancy_packets: u64, "dropped_occupancy", "dropped: occupancy", PACKETS, any,
        "dropped_occupancy";
    |link, _| Some(link.dropped[Reason::Occupancy as usize]);

    /// Packets dropped by RED.
    dropped_red_packets: u64, "dropped_red", "dropped: RED", PACKETS, any, "dropped_red";
    |link, _| Some(link.dropped[Reason::Red as usize]);

    /// Packets dropped by CoDel, alone or in FQ-CoDel.
    dropped_codel_packets: u64, "dropped_codel", "dropped: CoDel", PACKETS, any, "dropped_codel";
    |link, _| Some(link.dropped[Reason::Codel as usize]);

    /// Packets dropped by CAKE's COBALT.
    dropped_cobalt_packets: u64, "dropped_cobalt", "dropped: COBALT", PACKETS, any, "dropped_cobalt";
    |link, _| Some(link.dropped[Reason::Cobalt as usize]);

    /// Packets dropped by PIE, alone or in FQ-PIE.
    dropped_pie_packets: u64, "dropped_pie", "dropped: PIE", PACKETS, any, "dropped_pie";
    |link, _| Some(link.dropped[Reason::Pie as usize]);

    /// Packets dropped by DualPI2.
    dropped_pi2_packets: u64, "dropped_pi2", "dropped: DualPI2", PACKETS, any, "dropped_pi2";
    |link, _| Some(link.dropped[Reason::Pi2 as usize]);

    /// Packets dropped by a policer that had no tokens for them.
    dropped_policer_packets: u64, "dropped_policer", "dropped: policer", PACKETS, any, "dropped_policer";
    |link, _| Some(link.dropped[Reason::Policer as usize]);

    /// ACKs that were filtered or thinned out because a later one said the same and more.
    dropped_ack_filter_packets: u64, "dropped_ack_filter", "dropped: ACK filter", PACKETS, any, "dropped_ack_filter";
    |link, _| Some(link.dropped[Reason::AckFilter as usize]);

    /// Packets lost at random after sending.
    dropped_loss_packets: u64, "dropped_loss", "dropped: random loss", PACKETS, any, "dropped_loss";
    |link, _| Some(link.dropped[Reason::Loss as usize]);

    /// Packets lost in an outage.
    dropped_outage_packets: u64, "dropped_outage", "dropped: outage", PACKETS, any, "dropped_outage";
    |link, _| Some(link.dropped[Reason::Outage as usize]);

    /// Packets marked with congestion experienced.
    marked_packets: u64, "marked", "packets marked", PACKETS, any;
    |link, _| Some(link.marked.iter().sum());

    /// Packets marked by RED.
    marked_red_packets: u64, "marked_red", "marked: RED", PACKETS, any, "marked_red";
    |link, _| Some(link.marked[Reason::Red as usize]);

    /// Packets marked by CoDel, alone or in FQ-CoDel.
    marked_codel_packets: u64, "marked_codel", "marked: CoDel", PACKETS, any, "marked_codel";
    |link, _| Some(link.marked[Reason::Codel as usize]);

    /// Packets marked by CAKE's COBALT.
    marked_cobalt_packets: u64, "marked_cobalt", "marked: COBALT", PACKETS, any, "marked_cobalt";
    |link, _| Some(link.marked[Reason::Cobalt as usize]);

    /// Packets marked by PIE, alone or in FQ-PIE.
    marked_pie_packets: u64, "marked_pie", "marked: PIE", PACKETS, any, "marked_pie";
    |link, _| Some(link.marked[Reason::Pie as usize]);

    /// Packets marked because they had waited for longer than a step's threshold.
    marked_step_packets: u64, "marked_step", "marked: step", PACKETS, any, "marked_step";
    |link, _| Some(link.marked[Reason::Step as usize]);

    /// Packets marked by DualPI2's controller.
    marked_pi2_packets: u64, "marked_pi2", "marked: DualPI2", PACKETS, any, "marked_pi2";
    |link, _| Some(link.marked[Reason::Pi2 as usize]);
}
