//! Repetition of a test with several seeds, of which those that failed are kept in a file.

use std::any::type_name_of_val;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::path::{Path, PathBuf};

/// Environment variable with the only seed to run.
pub const SEED_VARIABLE: &str = "JOSTLE_SEED";

/// Set by `cargo test` and by nextest.
const PACKAGE_VARIABLE: &str = "CARGO_MANIFEST_DIR";
const HEADER: &str = "\
# Seeds with which a test has failed. jostle-testkit adds them and runs them first.
# Commit this file: then everybody's tests run these seeds.
";

/// Runs a test with each seed, also after one has failed, and reports the seeds that failed.
///
/// A seed that failed is added to a file next to the test, which has the ending `.seeds`: of
/// `tests/transfers.rs`, it is `tests/transfers.seeds`. Later runs of the test begin with these
/// seeds, whether or not they are in `seeds`. Commit the file.
///
/// `JOSTLE_SEED=7 cargo test NAME` runs only seed 7, whether or not it is in `seeds`.
///
/// # Panics
/// If the test panicked with any seed, the environment variable is not a number, or the file is not
/// a list of seeds.
#[track_caller]
pub fn for_each_seed(seeds: Range<u64>, test: impl Fn(u64)) {
    let source = Location::caller().file();
    let file = SeedFile::next_to(source, env::var_os(PACKAGE_VARIABLE).as_deref());
    let only = env::var(SEED_VARIABLE).ok().map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{SEED_VARIABLE} cannot be \"{text}\": expected a seed"))
    });
    run(seeds, only, file.as_ref(), test);
}

fn run(seeds: Range<u64>, only: Option<u64>, file: Option<&SeedFile>, test: impl Fn(u64)) {
    // The name of a closure consists of its function's name and `{{closure}}`. Unlike the name of the
    // thread, it does not depend on the number of threads.
    let name = type_name_of_val(&test).trim_end_matches("::{{closure}}");
    let kept = file.map_or(Vec::new(), |file| file.seeds(name));
    let order: Vec<u64> = match only {
        Some(seed) => vec![seed],
        None => kept.iter().copied().chain(seeds.filter(|seed| !kept.contains(seed))).collect(),
    };
    let count = order.len();
    let fails = |seed: &u64| catch_unwind(AssertUnwindSafe(|| test(*seed))).is_err();
    let failed: Vec<_> = order.into_iter().filter(fails).collect();
    let Some(first) = failed.first() else { return };
    let new: Vec<_> = failed.iter().copied().filter(|seed| !kept.contains(seed)).collect();
    let place = match file.map(|file| (file, file.keep(name, &new))) {
        Some((SeedFile(path), Ok(()))) => format!("kept in {}", path.display()),
        Some((SeedFile(path), Err(error))) => format!("not kept: {}: {error}", path.display()),
        None => format!("not kept: {PACKAGE_VARIABLE} does not lead to the source of the test"),
    };
    let list: Vec<_> = failed.iter().map(u64::to_string).collect();
    panic!(
        "failed with {} of {count} seeds: {} ({place}). To repeat one: {SEED_VARIABLE}={first}",
        failed.len(),
        list.join(", "),
    );
}

/// A file of lines with the name of a test and a seed.
struct SeedFile(PathBuf);

impl SeedFile {
    /// Returns the file next to a source file. Its path, from the compiler, is relative to the
    /// package or to the workspace around it.
    fn next_to(source: &str, package: Option<&OsStr>) -> Option<Self> {
        let package = Path::new(package?);
        let source = package.ancestors().map(|folder| folder.join(source)).find(|it| it.is_file());
        source.map(|path| Self(path.with_extension("seeds")))
    }

    /// Returns the seeds of a test, in the order in which they were added.
    fn seeds(&self, test: &str) -> Vec<u64> {
        let path = self.0.display();
        let text = match fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => panic!("{path}: {error}"),
        };
        let lines = text.lines().zip(1..).filter(|(line, _)| {
            let line = line.trim_start();
            !line.is_empty() && !line.starts_with('#')
        });
        let rows = lines.map(|(line, number)| {
            let row = line.trim_end().rsplit_once(' ');
            row.and_then(|(name, seed)| Some((name.trim(), seed.parse().ok()?))).unwrap_or_else(
                || panic!("{path}:{number}: expected the name of a test and a seed, not `{line}`"),
            )
        });
        let mut seeds: Vec<u64> = Vec::new();
        for (name, seed) in rows {
            if name == test && !seeds.contains(&seed) {
                seeds.push(seed);
            }
        }
        seeds
    }

    /// Adds seeds of a test.
    fn keep(&self, test: &str, seeds: &[u64]) -> io::Result<()> {
        if seeds.is_empty() {
            return Ok(());
        }
        let mut lines = if self.0.exists() { String::new() } else { HEADER.to_owned() };
        seeds.iter().for_each(|seed| lines.push_str(&format!("{test} {seed}\n")));
        // One write: other tests of the file may do the same.
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        file.write_all(lines.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::process;

    use super::*;

    /// A package with a source file, in a folder of its own.
    struct Package(PathBuf);

    impl Package {
        fn new(name: &str) -> Self {
            let folder = env::temp_dir().join(format!("jostle-seeds-{name}-{}", process::id()));
            fs::create_dir_all(folder.join("crates/one/tests")).unwrap();
            fs::write(folder.join("crates/one/tests/two.rs"), "").unwrap();
            Self(folder)
        }

        fn file(&self, source: &str) -> Option<SeedFile> {
            SeedFile::next_to(source, Some(self.0.join("crates/one").as_os_str()))
        }
    }

    impl Drop for Package {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Runs a test that fails with odd seeds. Returns the seeds that ran and the message.
    fn run_odd(
        seeds: Range<u64>,
        only: Option<u64>,
        file: Option<&SeedFile>,
    ) -> (Vec<u64>, Option<String>) {
        let ran = RefCell::new(Vec::new());
        let test = |seed| {
            ran.borrow_mut().push(seed);
            assert!(seed % 2 == 0, "odd");
        };
        let end = catch_unwind(AssertUnwindSafe(|| run(seeds, only, file, test)));
        let message = end.err().map(|panic| panic.downcast_ref::<String>().unwrap().clone());
        (ran.into_inner(), message)
    }

    #[test]
    fn every_seed_runs_and_the_failed_ones_are_reported() {
        let (ran, message) = run_odd(3..8, None, None);
        assert_eq!(ran, [3, 4, 5, 6, 7]);
        assert_eq!(
            message.unwrap(),
            "failed with 3 of 5 seeds: 3, 5, 7 (not kept: CARGO_MANIFEST_DIR does not lead to the \
             source of the test). To repeat one: JOSTLE_SEED=3"
        );
    }

    #[test]
    fn failed_seeds_are_kept_once_and_run_first() {
        let package = Package::new("kept");
        let file = package.file("tests/two.rs").unwrap();
        assert!(file.0.ends_with("crates/one/tests/two.seeds"));
        assert_eq!(run_odd(0..3, None, Some(&file)).0, [0, 1, 2]);
        let (ran, message) = run_odd(0..4, None, Some(&file));
        assert_eq!(ran, [1, 0, 2, 3]);
        assert!(message.unwrap().contains("two.seeds). To repeat one: JOSTLE_SEED=1"));
        assert_eq!(run_odd(2..3, None, Some(&file)).0, [1, 3, 2]);
        assert_eq!(run_odd(0..9, Some(4), Some(&file)), (vec![4], None));
        assert_eq!(run_odd(0..9, Some(5), Some(&file)).0, [5]);
        let text = fs::read_to_string(&file.0).unwrap();
        let name = "jostle_testkit::seeds::tests::run_odd";
        assert_eq!(text, format!("{HEADER}{name} 1\n{name} 3\n{name} 5\n"));
        // Another test does not run them.
        assert!(file.seeds("another").is_empty());
    }

    #[test]
    fn the_source_is_found_from_the_package_or_its_workspace() {
        let package = Package::new("found");
        let path = |source| package.file(source).map(|file| file.0);
        assert_eq!(path("tests/two.rs"), path("crates/one/tests/two.rs"));
        assert_eq!(path("tests/three.rs"), None);
        assert!(SeedFile::next_to("tests/two.rs", None).is_none());
    }

    #[test]
    fn a_damaged_file_is_an_error_with_its_line() {
        let package = Package::new("damaged");
        let file = package.file("tests/two.rs").unwrap();
        fs::write(&file.0, "# comment\n\na 1\na b\n").unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| file.seeds("a"))).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(
            message.ends_with("two.seeds:4: expected the name of a test and a seed, not `a b`")
        );
    }
}
