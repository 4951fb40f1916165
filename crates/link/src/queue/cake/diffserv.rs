//! Tins of CAKE: classes of codepoints, each with a share of the shaper's rate
//! (`sch_cake.c::cake_config_diffserv4` and the functions next to it).

use jostle_units::Rate;

use super::super::classes::CODEPOINTS;

/// Values of `diffserv`, as in `tc`.
pub(super) const MODES: &[&str] =
    &["besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"];

type TinIndex = [u8; CODEPOINTS];

const BEST_EFFORT: TinIndex = [0; CODEPOINTS];

const PRECEDENCE: TinIndex = {
    let mut tins = [0; CODEPOINTS];
    let mut dscp = 0;
    while dscp < CODEPOINTS {
        tins[dscp] = (dscp >> 3) as u8;
        dscp += 1;
    }
    tins
};

/// Returns a table of codepoints with their tins; all others are in `rest`.
const fn table(rest: u8, tins: &[(u8, &[u8])]) -> TinIndex {
    let mut found = [rest; CODEPOINTS];
    let mut tin = 0;
    while tin < tins.len() {
        let (index, codepoints) = tins[tin];
        let mut position = 0;
        while position < codepoints.len() {
            found[codepoints[position] as usize] = index;
            position += 1;
        }
        tin += 1;
    }
    found
}

// Codepoints: LE is 1, CSn is 8n, AFnm is 8n + 2m, VA is 44, EF is 46; 2, 4 and 5 are values of the
// old ToS field.
const DIFFSERV3: TinIndex = table(0, &[(1, &[1, 8]), (2, &[4, 44, 46, 48, 56])]);

const DIFFSERV4: TinIndex = table(
    0,
    &[
        (1, &[1, 8]),
        (2, &[4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]),
        (3, &[32, 40, 44, 46, 48, 56]),
    ],
);

const DIFFSERV8: TinIndex = table(
    2,
    &[
        (0, &[1]),
        (1, &[2, 8, 10, 12, 14]),
        (3, &[24, 26, 28, 30, 34, 36, 38]),
        (4, &[4, 18, 20, 22]),
        (5, &[16]),
        (6, &[32, 40, 44, 46]),
        (7, &[48, 56]),
    ],
);

/// A tin: its share of the shaper's rate, and its weight without a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TinShare {
    pub rate: Option<Rate>,
    pub quantum_bytes: i64,
}

/// Returns the tin of each codepoint, and the tins in the order of their indices. A tin is served
/// before those with a lower index while it is within its rate.
pub(super) fn tins(mode: &str, rate: Option<Rate>) -> (TinIndex, Vec<TinShare>) {
    let bytes_per_s = rate.map_or(0, Rate::as_bytes_per_s);
    let share = |bytes_per_s: u64, quantum_bytes: i64| TinShare {
        rate: rate.map(|_| Rate::from_bytes_per_s(bytes_per_s.max(LOWEST_BYTES_PER_S))),
        quantum_bytes,
    };
    let shifted = |shifts: &[u32]| {
        shifts.iter().map(|shift| share(bytes_per_s >> shift, 1_024 >> shift)).collect()
    };
    match mode {
        "precedence" => (PRECEDENCE, eight_tins(bytes_per_s, share)),
        "diffserv8" => (DIFFSERV8, eight_tins(bytes_per_s, share)),
        "diffserv4" => (DIFFSERV4, shifted(&[0, 4, 1, 2])),
        "diffserv3" => (DIFFSERV3, shifted(&[0, 4, 2])),
        _ => (BEST_EFFORT, vec![TinShare { rate, quantum_bytes: 65_535 }]),
    }
}

/// `MIN_RATE` of `sch_cake.c::cake_set_rate`.
const LOWEST_BYTES_PER_S: u64 = 64;

/// Each tin has 7/8 of the rate and weight of the previous one.
fn eight_tins(mut bytes_per_s: u64, share: impl Fn(u64, i64) -> TinShare) -> Vec<TinShare> {
    let mut quantum_bytes = 256;
    let next = |_| {
        let tin = share(bytes_per_s, quantum_bytes.max(1));
        (bytes_per_s, quantum_bytes) = (bytes_per_s * 7 / 8, quantum_bytes * 7 / 8);
        tin
    };
    (0..8).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the arrays of `net/sched/sch_cake.c` in Linux 6.1, as digits.
    #[test]
    fn codepoints_have_the_tins_of_linux() {
        for (mode, rows) in [
            (
                "diffserv3",
                "01002000 10000000 00000000 00000000 00000000 00002020 20000000 20000000",
            ),
            (
                "diffserv4",
                "01002000 10000000 20202020 20202020 30202020 30003030 30000000 30000000",
            ),
            (
                "diffserv8",
                "20124222 12121212 52424242 32323232 62323232 62226262 72222222 72222222",
            ),
            (
                "precedence",
                "00000000 11111111 22222222 33333333 44444444 55555555 66666666 77777777",
            ),
        ] {
            let (found, shares) = tins(mode, None);
            let expected: Vec<u8> =
                rows.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
            assert_eq!(found.to_vec(), expected, "{mode}");
            assert_eq!(usize::from(*found.iter().max().unwrap()) + 1, shares.len(), "{mode}");
        }
        assert_eq!(tins("besteffort", None).0, [0; CODEPOINTS]);
    }

    #[test]
    fn tins_have_their_shares_of_the_rate() {
        let mbps = |mode| {
            let (_, shares) = tins(mode, Some(Rate::from_mbps(16)));
            shares.iter().map(|tin| tin.rate.unwrap().as_bps() as f64 / 1e6).collect::<Vec<_>>()
        };
        assert_eq!(mbps("besteffort"), [16.0]);
        assert_eq!(mbps("diffserv3"), [16.0, 1.0, 4.0]);
        assert_eq!(mbps("diffserv4"), [16.0, 1.0, 8.0, 4.0]);
        assert_eq!(mbps("diffserv8")[..3], [16.0, 14.0, 12.25]);
        let quanta = |mode| {
            let (_, shares) = tins(mode, None);
            shares.iter().map(|tin| tin.quantum_bytes).collect::<Vec<_>>()
        };
        assert_eq!(quanta("diffserv4"), [1_024, 64, 512, 256]);
        assert_eq!(quanta("precedence"), [256, 224, 196, 171, 149, 130, 113, 98]);
    }
}
