//! Measures of a link in a stretch of time.

use crate::stretch::{LinkStretch, ratio};

super::row::measures! {
    /// The measures of a link in a phase.
    LinkPhase, rows ROWS, Link in Phases;
    of LinkStretch, at |all, at| &all.links[at];

    /// Bytes sent ÷ bytes that the capacity could have carried; absent while that is none.
    utilisation: Option<f64>, "utilisation", "utilisation", PERCENT, any, "utilisation";
    |link, _| ratio(link.sent_bytes, link.offered_bytes);

    /// Mean over time of the bytes waiting; the packet being sent does not wait.
    queue_mean_bytes: f64, "queue", "queue", SIZE, any, "queue_mean_bytes";
    |link, _| ratio(link.queue_bytes_ns, link.length_ns);

    /// Bytes that the queue holds at most during 95 % of the time, less than 1.6 % off.
    queue_p95_bytes: f64, "queue_p95", "95th percentile of the queue", SIZE, phase;
    |link, _| link.queue_p95_bytes;

    /// Packets dropped, for whatever reason.
    dropped_packets: u64, "dropped", "packets dropped", PACKETS, any;
    |link, _| Some(link.dropped_packets);

    /// Packets marked with congestion experienced.
    marked_packets: u64, "marked", "packets marked", PACKETS, any;
    |link, _| Some(link.marked_packets);
}
