//! What an ACK costs each row of the registry, in instructions: valgrind counts them, so that they
//! are the same on a busy machine. Writes the tables of `docs/results/cost-per-ack.md`, and fails if a row
//! costs more than [`MOST`] Renos and [`DEAR`] does not say why. With names of rows as arguments
//! (`cubic`, `"cubic rfc9438"`) it counts only those and writes nothing.
//!
//! The program runs itself under callgrind, which looks at nothing but [`counted`] and writes a
//! profile for each of its calls to `target/tmp/instructions`. A controller that does nothing takes
//! the same ACKs: what it costs is the transport's share.

mod acks;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use acks::{ACKS_PER_LOSS, Case, Connection, Phase};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EstablishedEvent,
};
use jostle_units::Time;

/// Renos that a row may cost without a word …
const MOST: f64 = 2.0;
/// … and at which a word is out of place: what the compiler inlines moves a row by a tenth.
const LEAST: f64 = 1.8;

/// Rows that cost more, and why.
const DEAR: &[(&str, &str)] = &[
    ("cubic", "HyStart takes in every RTT beside its cubic function"),
    ("cubic rfc9438", "HyStart takes in every RTT beside a cubic function in real numbers"),
    ("htcp", "the throughput and the RTT, in ticks of its clock, at every ACK"),
    ("tcpw", "a sample, and a filter in floating point, at every ACK"),
    ("westwood", "the header and the bytes of every ACK"),
    ("log-westwood+", "Westwood's bandwidth, and a law in floating point"),
    ("tcpw-a", "Westwood's bandwidth, packet pairs and the expected rate at every ACK"),
    ("new-vegas", "Vegas, and a pacing rate from the window and the RTT whenever it is asked"),
    ("nv", "a rate and its filters at every ACK, as in Linux"),
    ("areno", "Westwood's bandwidth, and an exponential of the RTT at every ACK"),
    ("fusion", "Westwood's bandwidth, and a law in floating point"),
    ("libra", "packet pairs, and an exponential of the RTT at every ACK"),
    ("ledbat", "two filters of the one-way delay, and a law in floating point"),
    ("ledbat++", "LEDBAT's, and its slow-downs"),
    ("lola", "CUBIC, and minima of the RTT over its own intervals"),
    ("prague", "chooses between two controllers, its own in fractions of a packet"),
    ("bbr", "a model of the path: rate, rounds, aggregation, window and pacing of every ACK"),
    ("bbr3", "a model of the path: rate, rounds, aggregation, window and pacing of every ACK"),
    (
        "bbr3 google",
        "a model of the path: rate, rounds, aggregation, window and pacing of every ACK",
    ),
    ("modest-bbr", "BBR, and a search for the window beside it"),
    ("allegro", "shares out each ACK over the intervals in floating point"),
    ("vivace", "the same, and a regression over the RTTs"),
    ("proteus", "Vivace's, and a judgement of each ACK by the gaps around it"),
    ("copa", "four windowed extremes of the RTT, and its steps in floating point"),
    ("copa mvfst", "two windowed minima of the RTT, and its steps in floating point"),
    ("nimbus", "Cubic, and rates, pulses and a spectrum in floating point every few milliseconds"),
    ("sprout", "inference over 256 rates in every tick of 20 ms, here 200 ACKs"),
    ("remy", "averages of the gaps between ACKs in floating point, and a look into its table"),
    ("learned", "a layer over another controller, and a regression over the RTTs"),
    ("stateful", "a layer over Reno, and its cycles of ACKs"),
    ("careful-resume", "a layer over Reno, and the rounds of its connection"),
    ("hystart", "times trains of ACKs, which needs the pacing rate of every window"),
    ("hystart-paper", "times trains of ACKs and keeps minima of rounds"),
    ("suss", "HyStart, and its own rounds"),
    ("paced-chirping", "a gap for every packet it sends, and what the RTTs of a chirp say"),
];

/// Rows whose work at the ends of intervals may cost so much even beside that of a transport.
const BY_INTERVAL: &[&str] = &["sprout"];

/// Tells the program that it runs under callgrind.
const COUNTED: &str = "JOSTLE_COUNTED";
const TABLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/results/data/per-ack.inc");
/// ACKs of steady state that are counted, ten losses; as many come before.
const STEADY_ACKS: u64 = 10 * ACKS_PER_LOSS;
/// Connections whose start-up is counted, …
const START_UPS: u64 = 50;
/// … and how many ACKs of each.
const START_UP_ACKS: u64 = 1_000;

/// A controller that does nothing.
struct Nothing;

impl CongestionController for Nothing {
    fn on_established(&mut self, _established: &EstablishedEvent) {}
    fn on_ack(&mut self, _ack: &AckSample) {}
    fn on_congestion_event(&mut self, _congestion: &CongestionEvent) {}
    fn on_undo(&mut self, _now: Time) {}
    fn set_cwnd(&mut self, _cwnd: u32) {}
    fn cwnd(&self) -> u32 {
        1_000
    }
    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Transport
    }
    fn mode(&self) -> &'static str {
        "nothing"
    }
}

/// Rows that are compared with the first one of them; before it stands [`Nothing`].
struct Table {
    title: &'static str,
    phase: Phase,
    cases: Vec<Case>,
}

impl Table {
    fn acks(&self) -> u64 {
        match self.phase {
            Phase::Steady => STEADY_ACKS,
            Phase::StartUp => START_UPS * START_UP_ACKS,
        }
    }
}

/// The tables, with the rows that are in `wanted`, or with all of them if that is empty.
fn tables(wanted: &[String]) -> Vec<Table> {
    let table = |title, phase, cases: Vec<Case>| {
        let nothing = Case { name: "nothing".to_owned(), create: Box::new(|| Box::new(Nothing)) };
        let is_wanted = |(index, case): &(usize, Case)| {
            *index == 0 || wanted.is_empty() || wanted.contains(&case.name)
        };
        let rows = cases.into_iter().enumerate().filter(is_wanted).map(|(_, case)| case);
        Table { title, phase, cases: [nothing].into_iter().chain(rows).collect() }
    };
    vec![
        table("Controllers", Phase::Steady, acks::controllers()),
        table("Reno under a memory", Phase::Steady, acks::memories()),
        table("Reno with a slow start, after it", Phase::Steady, acks::slow_starts()),
        table("Reno with a slow start, during it", Phase::StartUp, acks::slow_starts()),
    ]
}

/// What callgrind looks at. Its name is in the arguments that callgrind is given.
#[inline(never)]
fn counted(connections: &mut [Connection], acks: u64) {
    for connection in connections {
        for _ in 0..acks {
            connection.acknowledge();
        }
    }
}

/// Under callgrind: takes the ACKs of all rows.
fn take_acks(wanted: &[String]) {
    for table in tables(wanted) {
        for case in &table.cases {
            let open = |_| Connection::open((case.create)(), table.phase);
            if table.phase == Phase::StartUp {
                let mut connections: Vec<_> = (0..START_UPS).map(open).collect();
                counted(&mut connections, START_UP_ACKS);
                continue;
            }
            let mut connection = open(0);
            for _ in 0..STEADY_ACKS {
                connection.acknowledge();
            }
            counted(&mut [connection], STEADY_ACKS);
        }
    }
}

/// Instructions of each call of [`counted`].
fn count(wanted: &[String]) -> io::Result<Vec<u64>> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("instructions");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let out = folder.join("out");
    let status = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        // The profile is written, and begins anew, before each call.
        .args(["--toggle-collect=*::counted", "--dump-before=*::counted"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe()?)
        .args(wanted)
        .env(COUNTED, "yes")
        .status()?;
    if !status.success() {
        return Err(io::Error::other(status.to_string()));
    }
    // The first profile is of what came before the first call, the last is written at the end.
    let mut paths: Vec<PathBuf> = (2..)
        .map(|part| folder.join(format!("out.{part}")))
        .take_while(|path| path.exists())
        .collect();
    paths.push(out);
    paths.iter().map(|path| total(path)).collect()
}

fn total(path: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(path)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    total.ok_or_else(|| io::Error::other(format!("no total in {}", path.display())))
}

/// The tables as text, and what is wrong with them.
fn report(wanted: &[String], totals: &[u64]) -> (String, Vec<String>) {
    let (mut text, mut wrongs) = (String::new(), Vec::new());
    let mut totals = totals.iter();
    let mut explained = vec![false; DEAR.len()];
    for table in tables(wanted) {
        let per_ack = |total: &u64| *total as f64 / table.acks() as f64;
        let costs: Vec<f64> = totals.by_ref().take(table.cases.len()).map(per_ack).collect();
        let (transport, reno) = (costs[0], costs[1]);
        let _ = writeln!(text, "### {}\n", table.title);
        text.push_str("| | instructions | × Reno | with the transport | × Reno | |\n");
        text.push_str("| --- | ---: | ---: | ---: | ---: | --- |\n");
        for (case, cost) in table.cases.iter().zip(&costs).skip(1) {
            let (own, ratio) = (cost - transport, (cost - transport) / (reno - transport));
            let why = DEAR.iter().position(|(name, _)| *name == case.name);
            let mut reason = "";
            if let Some(index) = why {
                explained[index] |= ratio > LEAST;
                reason = if ratio > MOST { DEAR[index].1 } else { "" };
            } else if ratio > MOST {
                wrongs.push(format!("`{}` costs {ratio:.2} Renos: why?", case.name));
            }
            let (name, whole) = (&case.name, cost / reno);
            if whole > MOST && !BY_INTERVAL.contains(&name.as_str()) {
                wrongs.push(format!("an ACK of `{name}` costs {whole:.2} of Reno's"));
            }
            let _ = writeln!(
                text,
                "| `{name}` | {own:.0} | {ratio:.1} | {cost:.0} | {whole:.1} | {reason} |"
            );
        }
        text.push('\n');
    }
    for ((name, _), explained) in DEAR.iter().zip(explained) {
        if !explained && wanted.is_empty() {
            wrongs.push(format!("`{name}` does not cost so much any more"));
        }
    }
    (text, wrongs)
}

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if env::var_os(COUNTED).is_some() {
        take_acks(&wanted);
        return ExitCode::SUCCESS;
    }
    let totals = match count(&wanted) {
        Ok(totals) => totals,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!("instructions are not counted: valgrind is missing");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("valgrind: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (text, wrongs) = report(&wanted, &totals);
    print!("{text}");
    if wanted.is_empty()
        && let Err(error) = fs::write(TABLES, text.trim_end().to_owned() + "\n")
    {
        eprintln!("{TABLES}: {error}");
        return ExitCode::FAILURE;
    }
    for wrong in &wrongs {
        eprintln!("{wrong}");
    }
    if wrongs.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
