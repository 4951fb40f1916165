//! Replays one sequence of events through a controller and through the object for the kernel: every
//! result must be the same, for every row of the registries at the extremes of its parameters.
//!
//! `link.sh` makes the object without the standard library, with the memory and panics of a kernel.
//! `replay.c` stands for the kernel.

use std::env;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path as FilePath, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::LazyLock;

use crate::common::{Given, Path, Transfer, settings};
use crate::recorder::{Log, Recorder};
use jostle_congestion::peer_cache::PeerCache;
use jostle_congestion::{CongestionController, peer_cache::PeerCacheContext};
use jostle_controllers::registry::{self, CONTROLLERS, MEMORIES, SLOW_STARTS, SlowStartChoice};
use jostle_registry::ParameterValue;
use jostle_units::{RandomStream, Rate, Span, Time};

/// Calls of a case at most: extreme parameters can wake a controller very often.
const MOST_EVENTS: usize = 4_000;

/// Name and parameters.
type Named<'a> = (&'a str, &'a Given);

struct Case<'a> {
    controller: Named<'a>,
    slow_start: Option<Named<'a>>,
    memory: Option<Named<'a>>,
}

impl Case<'_> {
    /// Returns the line of a registration.
    fn line(&self) -> String {
        let mut line = "seed=7 stream=flow/a%20b".to_owned();
        let slow_start = self.slow_start.map(|named| ("slow_start", named));
        let memory = self.memory.map(|named| ("memory", named));
        for (key, (name, given)) in
            [Some(("controller", self.controller)), slow_start, memory].into_iter().flatten()
        {
            write!(line, " {key}={name}").unwrap();
            for (parameter, value) in given {
                write!(line, " {key}.{parameter}=").unwrap();
                match value {
                    ParameterValue::Bool(value) => write!(line, "b{}", u8::from(*value)),
                    ParameterValue::Integer(value) => write!(line, "i{value}"),
                    ParameterValue::Number(value) => write!(line, "n{value}"),
                    ParameterValue::Text(text) => {
                        let text = text.replace('%', "%25").replace(' ', "%20");
                        write!(line, "t{text}")
                    }
                    ParameterValue::Limit(_) => unreachable!("links alone have limits"),
                }
                .unwrap();
            }
        }
        line
    }

    /// Creates the controller without the bridge.
    fn create(&self) -> Box<dyn CongestionController> {
        let (start, given) = self.slow_start.unwrap_or(("standard", const { &Given::new() }));
        let start = registry::slow_start(start).unwrap().create(given).unwrap();
        let (name, given) = self.controller;
        let random = RandomStream::new(7, "flow/a b/controller");
        let controller = registry::controller(name).unwrap().create(given, start, random).unwrap();
        match self.memory {
            None => controller,
            Some((name, given)) => {
                registry::memory(name).unwrap().create(given, controller).unwrap()
            }
        }
    }

    /// Returns the recording: with a peer cache, two connections.
    fn record(&self) -> Vec<u8> {
        let log = Log::default();
        let mut cache = PeerCache::default();
        for connection in 0..=u64::from(self.memory.is_some()) {
            if connection > 0 {
                log.disconnect();
            }
            let now = Time::ZERO + Span::from_secs(10 * connection);
            let mut recorder = Recorder::new(self.create(), log.clone());
            if let Some(host) = recorder.host_extension() {
                host.on_connection_open(&mut occasion(now, &mut cache));
            }
            let mut transfer = life(recorder, &log, MOST_EVENTS * (connection as usize + 1));
            if let Some(host) = transfer.controller.host_extension() {
                host.on_connection_close(&mut occasion(now + Span::from_secs(9), &mut cache));
            }
        }
        log.take()
    }
}

fn occasion(now: Time, memory: &mut PeerCache) -> PeerCacheContext<'_> {
    PeerCacheContext { now, peer: 5, memory }
}

/// Start-up, losses, a pause, another rate and a second without arrivals, and the calls that a
/// transfer does not make.
fn life(recorder: Recorder, log: &Log, most_events: usize) -> Transfer {
    let mut path = Path::new(Rate::from_mbps(10), Span::from_ms(30), 30);
    path.ack_every = 2;
    path.mark_above = 10;
    let mut transfer = Transfer::new(path, Box::new(recorder));
    let follow = |transfer: &mut Transfer, until_s: f64| {
        let end = Time::ZERO + Span::from_secs_f64(until_s);
        while transfer.next_time() <= end && log.events() < most_events {
            transfer.step();
        }
        transfer.now = end;
    };
    follow(&mut transfer, 1.5);
    transfer.offer(0);
    follow(&mut transfer, 2.2);
    let now = transfer.now;
    transfer.controller.on_idle_restart(now);
    transfer.controller.set_ssthresh(17);
    transfer.controller.on_mss_change(1_200);
    transfer.offer(u64::MAX);
    follow(&mut transfer, 2.7);
    transfer.path.rate = Rate::from_mbps(3);
    transfer.path.loss = 0.05;
    follow(&mut transfer, 3.2);
    let now = transfer.now;
    transfer.controller.on_undo(now);
    transfer.path.loss = 1.0;
    follow(&mut transfer, 4.2);
    transfer.path.loss = 0.0;
    follow(&mut transfer, 5.0);
    transfer
}

/// Compiles the object and the program around it; returns the program.
fn program() -> PathBuf {
    let here = FilePath::new(env!("CARGO_MANIFEST_DIR"));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let object = folder.join("bridge.o");
    let status = Command::new("sh").arg(here.join("link.sh")).arg(&object).status().unwrap();
    assert!(status.success(), "link.sh failed");
    let program = folder.join("replay");
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(compiler)
        .args(["-O1", "-Wall", "-Werror", "-no-pie", "-I"])
        .arg(here.join("../../python/jostle/kernel_images/controller_module"))
        .arg(here.join("tests/replay.c"))
        .arg(&object)
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success(), "replay.c does not compile");
    program
}

/// A program that replays recordings.
struct Replay {
    process: Child,
    input: ChildStdin,
}

impl Replay {
    fn start() -> Self {
        static PROGRAM: LazyLock<PathBuf> = LazyLock::new(program);
        let mut command = Command::new(&*PROGRAM);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        Self { process, input }
    }

    /// Sends a case. The program ends at the first difference, so that sending fails then.
    fn send(&mut self, case: &Case<'_>, recording: &[u8]) -> io::Result<()> {
        let line = case.line();
        for text in [&line, &line] {
            self.input.write_all(&(text.len() as u32).to_ne_bytes())?;
            self.input.write_all(text.as_bytes())?;
        }
        self.input.write_all(recording)
    }

    fn end(self) -> Output {
        drop(self.input);
        self.process.wait_with_output().unwrap()
    }
}

#[test]
fn a_wrong_result_is_found() {
    let none = Given::new();
    let case = Case { controller: ("reno", &none), slow_start: None, memory: None };
    let mut recording = case.record();
    // The last result ends before the mark of the end, which has 8 bytes, with cwnd 24 bytes before.
    let cwnd = recording.len() - 8 - 24;
    recording[cwnd] ^= 1;
    let mut replay = Replay::start();
    replay.send(&case, &recording).unwrap();
    let output = replay.end();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("differs") && message.contains("direct: cwnd"), "{message}");
}

#[test]
fn every_result_of_the_bridge_equals_the_controllers() {
    let none = Given::new();
    let mut replay = Replay::start();
    let mut cases = 0;
    let mut replayed = |case: Case<'_>| {
        cases += 1;
        replay.send(&case, &case.record())
    };
    let sent = (|| {
        for row in CONTROLLERS {
            let name = row.entry.name;
            let usual = match row.start {
                SlowStartChoice::Composed(start) => Some((start, &none)),
                SlowStartChoice::BuiltIn => None,
            };
            for given in settings(&row.entry) {
                replayed(Case { controller: (name, &given), slow_start: usual, memory: None })?;
            }
            for memory in MEMORIES {
                let memory = Some((memory.entry.name, &none));
                replayed(Case { controller: (name, &none), slow_start: usual, memory })?;
            }
        }
        for row in SLOW_STARTS {
            for given in settings(&row.entry) {
                let slow_start = Some((row.entry.name, &given));
                replayed(Case { controller: ("cubic", &none), slow_start, memory: None })?;
            }
        }
        for row in MEMORIES {
            for given in settings(&row.entry) {
                let memory = Some((row.entry.name, &given));
                replayed(Case { controller: ("reno", &none), slow_start: None, memory })?;
            }
        }
        io::Result::Ok(())
    })();
    let output = replay.end();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    sent.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert_eq!(numbers[0], cases);
    assert!(numbers[1] > 1_000 * cases, "{} events of {cases} cases", numbers[1]);
}
