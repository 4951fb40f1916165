//! Runs one RunSpec given as a JSON file and prints what it cost: packets, events, wall time and
//! the largest amount of memory that the process ever held.
//!
//! ```sh
//! cargo run --release -p jostle-sim --example run_spec -- spec.json [--record]
//! ```
//!
//! With `--record` everything is measured and the summary is printed, too.

use std::error::Error;
use std::fs;
use std::time::Instant;

use jostle_record::{Nothing, Recorder, RunSpec};
use jostle_sim::Counts;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: run_spec SPEC.json [--record]")?;
    let recorded = arguments.any(|argument| argument == "--record");
    let spec = RunSpec::from_json(&fs::read_to_string(path)?)?;

    #[expect(clippy::disallowed_methods, reason = "how long a run takes is what is asked")]
    let start = Instant::now();
    let (counts, summary) = if recorded {
        let mut recorder = Recorder::new(&spec);
        let counts = jostle_sim::run(&spec, &mut recorder, &|| false)?;
        (counts, Some(serde_json::to_string_pretty(&recorder.finish().summary)?))
    } else {
        (jostle_sim::run(&spec, &mut Nothing, &|| false)?, None)
    };
    report(counts, start.elapsed().as_secs_f64());
    if let Some(summary) = summary {
        println!("{summary}");
    }
    Ok(())
}

fn report(counts: Counts, wall_s: f64) {
    let Counts { events, link_packets } = counts;
    println!("link packets  {link_packets}");
    println!("events        {events}");
    println!("wall time     {wall_s:.3} s");
    println!("rate          {:.0} link packets/s", link_packets as f64 / wall_s);
    if let Some(peak) = peak_memory() {
        println!("peak memory   {peak}");
    }
}

/// `VmHWM` of this process, where `/proc` is.
fn peak_memory() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line["VmHWM:".len()..].trim().to_owned())
}
