//! The registry of what links are made of. To add a queue: write its file, add its row. The
//! scenario format and the documentation derive from these rows; parameters have the names that a
//! person writes, and Linux's defaults where Linux has one.
//!
//! Limits are written in bytes or in packets; their defaults are given here in bytes, at 1514 bytes
//! for a full packet. Lists (steps, traces, quantile tables) are no parameters of rows; a row whose
//! content is such a list has none, and its summary says what the list is.

use jostle_catalogue::{Entry, Kind, Parameter};
use jostle_units::FULL_PACKET_BYTES;

/// A queue discipline of the registry.
#[derive(Clone, Copy, Debug)]
pub struct QueueRow {
    /// Name, source, parameters.
    pub entry: Entry,
}

/// A kind of capacity.
#[derive(Clone, Copy, Debug)]
pub struct CapacityRow {
    /// Name, source, parameters.
    pub entry: Entry,
}

/// A kind of delay.
#[derive(Clone, Copy, Debug)]
pub struct DelayRow {
    /// Name, source, parameters.
    pub entry: Entry,
}

/// A kind of loss.
#[derive(Clone, Copy, Debug)]
pub struct LossRow {
    /// Name, source, parameters.
    pub entry: Entry,
}

const MS: i64 = 1_000_000;
const LONGEST_NS: i64 = 3_600_000 * MS;
const LARGEST_BYTES: i64 = 1 << 50;

const fn packets(n: i64) -> Option<i64> {
    Some(n * FULL_PACKET_BYTES as i64)
}

const fn size(name: &'static str, summary: &'static str, default_bytes: Option<i64>) -> Parameter {
    let kind = Kind::Size { default_bytes, min_bytes: 1, max_bytes: LARGEST_BYTES };
    Parameter { name, summary, kind }
}

const fn span(name: &'static str, summary: &'static str, default_ns: i64) -> Parameter {
    let kind = Kind::Span { default_ns, min_ns: 1, max_ns: LONGEST_NS };
    Parameter { name, summary, kind }
}

const fn number(
    name: &'static str,
    summary: &'static str,
    default: f64,
    (min, max): (f64, f64),
) -> Parameter {
    Parameter { name, summary, kind: Kind::Number { default, min, max } }
}

const fn ecn(default: bool) -> Parameter {
    Parameter {
        name: "ecn",
        summary: "mark ECN-capable packets instead of dropping them",
        kind: Kind::Bool { default },
    }
}

const LIMIT: &str = "most that it holds, in bytes or packets; the packet being sent does not count";
const TARGET: &str = "acceptable standing delay";
const INTERVAL: &str = "window in which the minimum delay must fall below the target";

const DROP_TAIL: Entry = Entry {
    name: "drop_tail",
    summary: "First in, first out; arrivals that do not fit are dropped",
    class: "passive",
    based_on: &[],
    source: "Linux net/sched/sch_fifo.c (bfifo, pfifo)",
    parameters: &[size("limit", LIMIT, None)],
};

const OCCUPANCY_DROP: Entry = Entry {
    name: "occupancy_drop",
    summary: "Drop-tail that also drops arrivals at random while the queue is long",
    class: "active",
    based_on: &["drop_tail"],
    source: "Claypool, Chung, Claypool: Comparison of TCP Congestion Control Performance over a \
             Satellite Network, PAM 2021",
    parameters: &[
        size("limit", LIMIT, None),
        size("threshold", "arrivals that find more than this are dropped at random", None),
        number("probability", "probability of such a drop", 0.25, (0.0, 1.0)),
    ],
};

const RED: Entry = Entry {
    name: "red",
    summary: "Random early detection: drops at random as the average queue grows",
    class: "active",
    based_on: &["drop_tail"],
    source: "Floyd, Jacobson: Random Early Detection Gateways for Congestion Avoidance, 1993; \
             Linux include/net/red.h, net/sched/sch_red.c",
    parameters: &[
        size("limit", LIMIT, None),
        size("min", "average queue below which nothing is dropped (tc: a third of max)", None),
        size("max", "average queue above which all is dropped (tc: a quarter of limit)", None),
        number("probability", "drop probability when the average reaches max", 0.02, (0.0, 1.0)),
        number("weight", "weight of a new sample in the average", 0.002, (1e-9, 1.0)),
        ecn(false),
    ],
};

const CODEL: Entry = Entry {
    name: "codel",
    summary: "Controlled delay: drops at the head while the delay stays above a target",
    class: "active",
    based_on: &["drop_tail"],
    source: "RFC 8289; Linux include/net/codel_impl.h, net/sched/sch_codel.c",
    parameters: &[
        size("limit", LIMIT, packets(1_000)),
        span("target", TARGET, 5 * MS),
        span("interval", INTERVAL, 100 * MS),
        ecn(false),
    ],
};

const FQ_CODEL: Entry = Entry {
    name: "fq_codel",
    summary: "Flows in queues of their own that take turns, each under CoDel",
    class: "fair",
    based_on: &["codel"],
    source: "RFC 8290; Linux net/sched/sch_fq_codel.c",
    parameters: &[
        size("limit", "most that all its queues hold together, in packets", packets(10_240)),
        Parameter {
            name: "queues",
            summary: "number of queues that flows are hashed to",
            kind: Kind::Integer { default: 1_024, min: 1, max: 65_536 },
        },
        Parameter {
            name: "quantum",
            summary: "bytes that a queue may send per round",
            kind: Kind::Size { default_bytes: packets(1), min_bytes: 256, max_bytes: 1 << 20 },
        },
        span("target", TARGET, 5 * MS),
        span("interval", INTERVAL, 100 * MS),
        ecn(true),
    ],
};

const PIE: Entry = Entry {
    name: "pie",
    summary: "Proportional integral controller: drops at random to hold a target delay",
    class: "active",
    based_on: &["drop_tail"],
    source: "RFC 8033; Linux net/sched/sch_pie.c",
    parameters: &[
        size("limit", LIMIT, packets(1_000)),
        span("target", "delay that it steers to", 15 * MS),
        span("update", "period of the probability's update", 15 * MS),
        number("alpha", "weight of the deviation from the target, per s", 0.125, (0.0, 1000.0)),
        number("beta", "weight of the delay's trend, per s", 1.25, (0.0, 1000.0)),
        ecn(false),
    ],
};

const STEP_MARK: Entry = Entry {
    name: "step_mark",
    summary: "Drop-tail that marks what has waited for longer than a threshold, as DCTCP wants it",
    class: "active",
    based_on: &["drop_tail"],
    source: "Alizadeh et al.: Data Center TCP (DCTCP), SIGCOMM 2010; RFC 8257; Linux \
             include/net/codel_impl.h (ce_threshold)",
    parameters: &[
        size("limit", LIMIT, packets(1_000)),
        span("threshold", "ECN-capable packets that have waited longer are marked", MS),
    ],
};

const DUALPI2: Entry = Entry {
    name: "dualpi2",
    summary: "Two queues, one for L4S, whose marks are coupled to the other's drops",
    class: "active",
    based_on: &["pie"],
    source: "RFC 9332; Linux 6.17 net/sched/sch_dualpi2.c",
    parameters: &[
        size("limit", "most that both queues hold together", packets(10_000)),
        span("target", "delay that the classic queue is steered to", 15 * MS),
        span("update", "period of the probability's update", 16 * MS),
        number("alpha", "weight of the deviation from the target, per s", 0.16, (0.0, 1000.0)),
        number("beta", "weight of the delay's trend, per s", 3.2, (0.0, 1000.0)),
        number("coupling", "L4S marks per square root of a classic drop", 2.0, (0.0, 100.0)),
        span("threshold", "L4S packets that have waited longer are marked", MS),
        Parameter {
            name: "ramp",
            summary: "delay above the threshold over which marks become certain; 0: a step",
            kind: Kind::Span { default_ns: 0, min_ns: 0, max_ns: LONGEST_NS },
        },
        Parameter {
            name: "scheduler",
            summary: "weighted turns, or whoever has waited longest with L4S ahead by time_shift",
            kind: Kind::Choice { default: "weighted", choices: &["weighted", "time_shifted"] },
        },
        number("classic_share", "weighted: the classic queue's share of turns", 0.1, (0.0, 1.0)),
        span("time_shift", "time_shifted: head start of L4S packets", 30 * MS),
    ],
};

/// All queue disciplines.
pub const QUEUES: &[QueueRow] = &[
    QueueRow { entry: DROP_TAIL },
    QueueRow { entry: OCCUPANCY_DROP },
    QueueRow { entry: RED },
    QueueRow { entry: CODEL },
    QueueRow { entry: FQ_CODEL },
    QueueRow { entry: PIE },
    QueueRow { entry: STEP_MARK },
    QueueRow { entry: DUALPI2 },
];

/// All kinds of capacity.
pub const CAPACITIES: &[CapacityRow] = &[
    CapacityRow {
        entry: Entry {
            name: "constant",
            summary: "One rate for the whole run",
            class: "synthetic",
            based_on: &[],
            source: "",
            parameters: &[Parameter {
                name: "rate",
                summary: "bits per second, Ethernet header included",
                kind: Kind::Rate {
                    default_bps: 100_000_000,
                    min_bps: 1_000,
                    max_bps: 1_000_000_000_000,
                },
            }],
        },
    },
    CapacityRow {
        entry: Entry {
            name: "steps",
            summary: "A list of times and the rates from then on; 0 pauses the link",
            class: "synthetic",
            based_on: &["constant"],
            source: "",
            parameters: &[],
        },
    },
    CapacityRow {
        entry: Entry {
            name: "trace",
            summary: "Delivery opportunities from a file in Mahimahi's format, repeated at its end",
            class: "recorded",
            based_on: &[],
            source: "Netravali et al.: Mahimahi: Accurate Record-and-Replay for HTTP, ATC 2015",
            parameters: &[Parameter {
                name: "opportunity",
                summary: "bytes that an opportunity carries, Ethernet header included",
                kind: Kind::Size { default_bytes: packets(1), min_bytes: 1, max_bytes: 1 << 20 },
            }],
        },
    },
];

/// All kinds of delay.
pub const DELAYS: &[DelayRow] = &[
    DelayRow {
        entry: Entry {
            name: "constant",
            summary: "One delay for the whole run",
            class: "synthetic",
            based_on: &[],
            source: "",
            parameters: &[Parameter {
                name: "delay",
                summary: "time from the end of sending to arrival",
                kind: Kind::Span { default_ns: 0, min_ns: 0, max_ns: LONGEST_NS },
            }],
        },
    },
    DelayRow {
        entry: Entry {
            name: "steps",
            summary: "A list of times and the delays from then on",
            class: "synthetic",
            based_on: &["constant"],
            source: "",
            parameters: &[],
        },
    },
    DelayRow {
        entry: Entry {
            name: "jitter",
            summary: "Random delay on top from a quantile table, correlated in time",
            class: "stochastic",
            based_on: &["steps"],
            source: "a Gaussian copula over a stationary Gauss-Markov process",
            parameters: &[
                Parameter {
                    name: "correlation",
                    summary: "time after which the delay is nearly independent of what it was",
                    kind: Kind::Span { default_ns: 0, min_ns: 0, max_ns: LONGEST_NS },
                },
                Parameter {
                    name: "reorder",
                    summary: "whether packets may overtake each other; if not, late times hold back \
                              what comes after them, and delays are longer than the table's",
                    kind: Kind::Bool { default: false },
                },
            ],
        },
    },
];

/// All kinds of loss.
pub const LOSSES: &[LossRow] = &[
    LossRow {
        entry: Entry {
            name: "independent",
            summary: "Every packet is lost with the same probability",
            class: "per packet",
            based_on: &[],
            source: "",
            parameters: &[number("probability", "probability of loss", 0.0, (0.0, 1.0))],
        },
    },
    LossRow {
        entry: Entry {
            name: "gilbert_elliott",
            summary: "Losses in bursts: two states with a loss probability each",
            class: "per packet",
            based_on: &["independent"],
            source: "Gilbert 1960, Elliott 1963",
            parameters: &[
                number("good_to_bad", "leaving the good state, per packet", 0.0, (0.0, 1.0)),
                number("bad_to_good", "leaving the bad state, per packet", 1.0, (0.0, 1.0)),
                number("loss_good", "loss in the good state", 0.0, (0.0, 1.0)),
                number("loss_bad", "loss in the bad state", 1.0, (0.0, 1.0)),
            ],
        },
    },
    LossRow {
        entry: Entry {
            name: "outages",
            summary: "Spans of time, as a table of durations says, in which everything is lost",
            class: "in time",
            based_on: &[],
            source: "",
            parameters: &[span(
                "mean_interval",
                "mean time from the end of one outage to the start of the next",
                1_200_000 * MS,
            )],
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> impl Iterator<Item = Vec<Entry>> {
        [
            QUEUES.iter().map(|row| row.entry).collect::<Vec<_>>(),
            CAPACITIES.iter().map(|row| row.entry).collect(),
            DELAYS.iter().map(|row| row.entry).collect(),
            LOSSES.iter().map(|row| row.entry).collect(),
        ]
        .into_iter()
    }

    #[test]
    fn names_are_unique_and_families_known() {
        for rows in entries() {
            for (index, row) in rows.iter().enumerate() {
                assert!(rows[..index].iter().all(|other| other.name != row.name));
                for ancestor in row.based_on {
                    assert!(rows.iter().any(|other| other.name == *ancestor), "{ancestor}");
                }
                for (index, parameter) in row.parameters.iter().enumerate() {
                    assert!(row.parameters[..index].iter().all(|p| p.name != parameter.name));
                }
            }
        }
    }

    #[test]
    fn every_default_lies_in_its_own_range() {
        for row in entries().flatten() {
            for parameter in row.parameters {
                if matches!(parameter.kind, Kind::Size { default_bytes: None, .. }) {
                    continue;
                }
                let given = [(parameter.name.to_owned(), parameter.kind.default_value())];
                let resolved = row.resolve(&given.into_iter().collect());
                assert!(resolved.is_ok(), "{}.{}: {resolved:?}", row.name, parameter.name);
            }
        }
    }
}
