//! Measures of a link in an interval.

use jostle_link::DropReason;

use crate::interval_stats::{LinkIntervalStats, ratio};

super::definition::measures! {
    /// The measures of a link in a phase.
    LinkPhase, rows ROWS, Link in Phases;
    of LinkIntervalStats, at |all, at| &all.links[at];

    /// Bytes sent ÷ bytes that the service rate allowed: the lower of the link's capacity and its
    /// shaper or policer. Absent if the rate was zero. A packet that crosses the end of the interval
    /// is split as if it was sent at a constant rate. The value is limited to 1, because this split
    /// is not exact if the rate changes meanwhile, and because the burst of a token bucket is no
    /// part of the rate.
    utilisation: Option<f64>, "utilisation", "utilisation", PERCENT, any, "utilisation";
    |link, _| ratio(link.sent_bytes, link.service_bytes).map(|share| share.min(1.0));

    /// Time-weighted mean of the bytes in the queue, without the packet in transmission.
    queue_length_mean_bytes: f64, "queue_length", "queue length", SIZE, any, "queue_length_mean_bytes";
    |link, _| ratio(link.queue_bytes_ns, link.length_ns);

    /// 95th percentile over time of the bytes in the queue, with an error below 1.6 %.
    queue_length_p95_bytes: f64, "queue_length_p95", "p95 queue length", SIZE, phase;
    |link, _| link.queue_length_p95_bytes;

    /// Estimated queueing delay: mean queue length ÷ mean rate at which the queue empties. That is
    /// the service rate, plus the packets that the discipline drops from the queue; behind a
    /// policer it is the capacity. If the queue serves some flows first, or waits for grants, the
    /// measured delay of packets (`queueing_delay`) differs.
    queue_delay_estimate_mean_s: Option<f64>, "queue_delay_estimate", "estimated queueing delay", ROUND_TRIP, any, "queue_delay_estimate_mean_s";
    |link, _| ratio(link.queue_bytes_ns, link.drain_bytes).map(|ns| ns / 1e9);

    /// 95th percentile of the queue length ÷ mean rate at which the queue empties.
    queue_delay_estimate_p95_s: Option<f64>, "queue_delay_estimate_p95", "p95 estimated queueing delay", ROUND_TRIP,
        phase;
    |link, _| ratio(link.queue_length_p95_bytes? * link.length_ns, link.drain_bytes).map(|ns| ns / 1e9);

    /// Mean time that sent packets waited until they left the queue. On the kernel it is estimated
    /// for all packets that left between two samples: the time since as many bytes had come to the
    /// queue, which includes packets that the discipline dropped from it.
    queueing_delay_mean_s: Option<f64>, "queueing_delay", "queueing delay", ROUND_TRIP, any,
        "queueing_delay_mean_s";
    |link, _| link.queueing_delay_mean_s;

    /// Median of the queueing delays of packets, with an error below 1.6 %; on the kernel an
    /// estimate, like the mean.
    queueing_delay_p50_s: Option<f64>, "queueing_delay_p50", "median queueing delay", ROUND_TRIP,
        phase;
    |link, _| link.waited_p50_s;

    /// 95th percentile of the queueing delays of packets, with an error below 1.6 %; on the kernel an
    /// estimate, like the mean.
    queueing_delay_p95_s: Option<f64>, "queueing_delay_p95", "p95 queueing delay",
        ROUND_TRIP, phase;
    |link, _| link.waited_p95_s;

    /// 99th percentile of the queueing delays of packets, with an error below 1.6 %; on the kernel an
    /// estimate, like the mean.
    queueing_delay_p99_s: Option<f64>, "queueing_delay_p99", "p99 queueing delay",
        ROUND_TRIP, phase;
    |link, _| link.waited_p99_s;

    /// Packets dropped for any reason.
    dropped_packets: u64, "dropped", "packets dropped", PACKETS, any;
    |link, _| Some(link.dropped.iter().sum());

    /// Packets dropped because they did not fit into the queue.
    dropped_overflow_packets: u64, "dropped_overflow", "dropped: overflow", PACKETS, any,
        "dropped_overflow";
    |link, _| Some(link.dropped[DropReason::Overflow as usize]);

    /// Packets dropped by `occupancy_drop` because the queue length exceeded its threshold.
    dropped_occupancy_packets: u64, "dropped_occupancy", "dropped: occupancy", PACKETS, any,
        "dropped_occupancy";
    |link, _| Some(link.dropped[DropReason::Occupancy as usize]);

    /// Packets dropped by RED.
    dropped_red_packets: u64, "dropped_red", "dropped: RED", PACKETS, any, "dropped_red";
    |link, _| Some(link.dropped[DropReason::Red as usize]);

    /// Packets dropped by CoDel, alone or in FQ-CoDel.
    dropped_codel_packets: u64, "dropped_codel", "dropped: CoDel", PACKETS, any, "dropped_codel";
    |link, _| Some(link.dropped[DropReason::Codel as usize]);

    /// Packets dropped by CAKE's COBALT.
    dropped_cobalt_packets: u64, "dropped_cobalt", "dropped: COBALT", PACKETS, any, "dropped_cobalt";
    |link, _| Some(link.dropped[DropReason::Cobalt as usize]);

    /// Packets dropped by PIE, alone or in FQ-PIE.
    dropped_pie_packets: u64, "dropped_pie", "dropped: PIE", PACKETS, any, "dropped_pie";
    |link, _| Some(link.dropped[DropReason::Pie as usize]);

    /// Packets dropped by DualPI2.
    dropped_pi2_packets: u64, "dropped_pi2", "dropped: DualPI2", PACKETS, any, "dropped_pi2";
    |link, _| Some(link.dropped[DropReason::Pi2 as usize]);

    /// Packets dropped by a policer without tokens.
    dropped_policer_packets: u64, "dropped_policer", "dropped: policer", PACKETS, any, "dropped_policer";
    |link, _| Some(link.dropped[DropReason::Policer as usize]);

    /// ACKs removed by an ACK filter or by ACK thinning, because a later ACK confirms the same data
    /// and more.
    dropped_ack_filter_packets: u64, "dropped_ack_filter", "dropped: ACK filter", PACKETS, any, "dropped_ack_filter";
    |link, _| Some(link.dropped[DropReason::AckFilter as usize]);

    /// Packets lost at random after sending, or in a tunnel with the packets that carried them.
    dropped_loss_packets: u64, "dropped_loss", "dropped: random loss", PACKETS, any, "dropped_loss";
    |link, _| Some(link.dropped[DropReason::Loss as usize]);

    /// Packets lost in an outage.
    dropped_outage_packets: u64, "dropped_outage", "dropped: outage", PACKETS, any, "dropped_outage";
    |link, _| Some(link.dropped[DropReason::Outage as usize]);

    /// Packets corrupted on the link, which their receivers drop.
    dropped_corruption_packets: u64, "dropped_corruption", "dropped: corruption", PACKETS, any, "dropped_corruption";
    |link, _| Some(link.dropped[DropReason::Corruption as usize]);

    /// Packets dropped because netem's delay held as many packets as its limit.
    dropped_delay_queue_packets: u64, "dropped_delay_queue", "dropped: delay queue", PACKETS, any, "dropped_delay_queue";
    |link, _| Some(link.dropped[DropReason::DelayQueue as usize]);

    /// Copies of packets that the link made.
    duplicated_packets: u64, "duplicated", "packets duplicated", PACKETS, phase;
    |link, _| link.duplicated;

    /// Packets marked with CE (Congestion Experienced).
    marked_packets: u64, "marked", "packets marked", PACKETS, any;
    |link, _| Some(link.marked.iter().sum());

    /// Packets marked by RED.
    marked_red_packets: u64, "marked_red", "marked: RED", PACKETS, any, "marked_red";
    |link, _| Some(link.marked[DropReason::Red as usize]);

    /// Packets marked by CoDel, alone or in FQ-CoDel.
    marked_codel_packets: u64, "marked_codel", "marked: CoDel", PACKETS, any, "marked_codel";
    |link, _| Some(link.marked[DropReason::Codel as usize]);

    /// Packets marked by CAKE's COBALT.
    marked_cobalt_packets: u64, "marked_cobalt", "marked: COBALT", PACKETS, any, "marked_cobalt";
    |link, _| Some(link.marked[DropReason::Cobalt as usize]);

    /// Packets marked by PIE, alone or in FQ-PIE.
    marked_pie_packets: u64, "marked_pie", "marked: PIE", PACKETS, any, "marked_pie";
    |link, _| Some(link.marked[DropReason::Pie as usize]);

    /// Packets marked because their queueing delay exceeded the threshold of a step.
    marked_step_packets: u64, "marked_step", "marked: step", PACKETS, any, "marked_step";
    |link, _| Some(link.marked[DropReason::Step as usize]);

    /// Packets marked by the PI2 controller of DualPI2.
    marked_pi2_packets: u64, "marked_pi2", "marked: DualPI2", PACKETS, any, "marked_pi2";
    |link, _| Some(link.marked[DropReason::Pi2 as usize]);

    /// Packets marked because of their number.
    marked_fault_packets: u64, "marked_fault", "marked: fault", PACKETS, any, "marked_fault";
    |link, _| Some(link.marked[DropReason::Fault as usize]);
}
