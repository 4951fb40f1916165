//! Computes the engine version from a hash of its sources. Results are stored under this version,
//! so they are recomputed exactly when the engine changes.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that are not part of the engine version: the emulator works in real time, and the test kit
/// runs stacks of others; both yield no stored results. Capture analysis has its own version, because
/// no run depends on it.
const NO_RESULTS: [&str; 4] = ["emulator", "pcap-analysis", "testkit", "testkit-c"];

fn main() -> Result<(), Box<dyn Error>> {
    let workspace = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let mut files = vec![workspace.join("Cargo.lock")];
    println!("cargo:rerun-if-changed={}", files[0].display());
    for member in entries(&workspace.join("crates"))? {
        let source = member.join("src");
        let yields_results = !NO_RESULTS.iter().any(|name| member.ends_with(name));
        if source.is_dir() && yields_results {
            println!("cargo:rerun-if-changed={}", source.display());
            collect(&source, &mut files)?;
        }
    }
    let package = env::var("CARGO_PKG_VERSION")?;
    let source = digest(&workspace, files)? >> 16;
    println!("cargo:rustc-env=JOSTLE_ENGINE_VERSION={package}+{source:012x}");
    // Other backends only use these sources, for their traffic and to measure their runs.
    let mut measuring = vec![workspace.join("crates/python-bindings/src/traffic.rs")];
    for name in ["run-spec", "traffic", "metrics", "pcap"] {
        collect(&workspace.join("crates").join(name).join("src"), &mut measuring)?;
    }
    let metrics = digest(&workspace, measuring.clone())? >> 16;
    println!("cargo:rustc-env=JOSTLE_METRICS_VERSION={metrics:012x}");
    let reader = workspace.join("crates/pcap-analysis/src");
    println!("cargo:rerun-if-changed={}", reader.display());
    collect(&reader, &mut measuring)?;
    let analysis = digest(&workspace, measuring)? >> 16;
    println!("cargo:rustc-env=JOSTLE_PCAP_ANALYSIS_VERSION={analysis:012x}");
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// Collects all Rust files of a folder, recursively.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for path in entries(folder)? {
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Hashes file names and contents, independently of the location of the workspace and the order of
/// directory entries.
fn digest(workspace: &Path, files: Vec<PathBuf>) -> Result<u64, Box<dyn Error>> {
    let mut named = Vec::with_capacity(files.len());
    for file in files {
        let parts: Vec<_> =
            file.strip_prefix(workspace)?.iter().map(|part| part.to_string_lossy()).collect();
        named.push((parts.join("/"), file));
    }
    named.sort();
    let mut hash = FNV_OFFSET;
    for (name, file) in named {
        let content = fs::read(file)?;
        // The length prefix makes the boundaries between names and contents unambiguous.
        for part in [name.as_bytes(), &content] {
            hash = fnv1a(hash, &(part.len() as u64).to_le_bytes());
            hash = fnv1a(hash, part);
        }
    }
    Ok(mix(hash))
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// 64-bit FNV-1a. It only distinguishes source versions and need not be cryptographic.
fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Finaliser of SplitMix64, because the upper bits of FNV depend too little on the last bytes.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
