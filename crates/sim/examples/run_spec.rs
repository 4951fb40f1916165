//! Runs a run specification (JSON file) and prints the number of packets and events, the wall time
//! and the peak memory of the process.
//!
//! ```sh
//! cargo run --release -p jostle-sim --example run_spec -- spec.json [--record]
//! ```
//!
//! With `--record`, the measures are recorded and the summary is printed, too.

use std::error::Error;
use std::fs;
use std::time::Instant;

use jostle_metrics::{NullSink, Recorder};
use jostle_run_spec::RunSpec;
use jostle_sim::RunCounts;

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
        (jostle_sim::run(&spec, &mut NullSink, &|| false)?, None)
    };
    report(counts, start.elapsed().as_secs_f64());
    if let Some(summary) = summary {
        println!("{summary}");
    }
    Ok(())
}

fn report(counts: RunCounts, wall_s: f64) {
    let RunCounts { events, link_packets } = counts;
    println!("link packets  {link_packets}");
    println!("events        {events}");
    println!("wall time     {wall_s:.3} s");
    println!("rate          {:.0} link packets/s", link_packets as f64 / wall_s);
    if let Some(peak) = peak_memory() {
        println!("peak memory   {peak}");
    }
}

/// Returns `VmHWM` of this process, on systems with `/proc`.
fn peak_memory() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line["VmHWM:".len()..].trim().to_owned())
}
