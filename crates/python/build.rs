//! Names the engine after its own source: results are kept under that name, so they are made anew
//! whenever the engine changes, and only then.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let workspace = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let mut files = vec![workspace.join("Cargo.lock")];
    println!("cargo:rerun-if-changed={}", files[0].display());
    for member in entries(&workspace.join("crates"))? {
        let source = member.join("src");
        // The emulator works in real time: no kept result comes from it. What reads captures has a
        // version of its own: no run depends on it.
        if source.is_dir() && !member.ends_with("emu") && !member.ends_with("dissect") {
            println!("cargo:rerun-if-changed={}", source.display());
            collect(&source, &mut files)?;
        }
    }
    let package = env::var("CARGO_PKG_VERSION")?;
    let source = digest(&workspace, files)? >> 16;
    println!("cargo:rustc-env=JOSTLE_ENGINE_VERSION={package}+{source:012x}");
    // What other backends measure with: their runs need not be made anew for more than that.
    let mut record = Vec::new();
    collect(&workspace.join("crates/record/src"), &mut record)?;
    println!(
        "cargo:rustc-env=JOSTLE_RECORD_VERSION={:012x}",
        digest(&workspace, record.clone())? >> 16
    );
    let reader = workspace.join("crates/dissect/src");
    println!("cargo:rerun-if-changed={}", reader.display());
    collect(&reader, &mut record)?;
    println!("cargo:rustc-env=JOSTLE_DISSECT_VERSION={:012x}", digest(&workspace, record)? >> 16);
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// All Rust files below a folder.
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

/// A hash of names and contents, the same wherever the workspace lies and whatever the order in
/// which a file system lists it.
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
        // Lengths keep the end of one part from passing as the start of the next.
        for part in [name.as_bytes(), &content] {
            hash = fnv1a(hash, &(part.len() as u64).to_le_bytes());
            hash = fnv1a(hash, part);
        }
    }
    Ok(mix(hash))
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// 64-bit FNV-1a. It has to tell versions of one source tree apart, not to resist anybody.
fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The finaliser of SplitMix64: FNV's upper bits alone depend too little on the last bytes.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
