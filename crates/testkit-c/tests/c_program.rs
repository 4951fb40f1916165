//! The example in C, compiled with the header and linked with the library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Runs a command, which must succeed, and returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}", text(&output.stderr));
    text(&output.stdout)
}

/// Folder of the shared library, which cargo compiles with the Rust library of this test.
fn library_folder() -> PathBuf {
    env::current_exe().unwrap().parent().unwrap().to_owned()
}

#[test]
fn the_example_in_c_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = env::temp_dir().join(format!("jostle-stop-and-wait-{}", std::process::id()));
    let libraries = library_folder();
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    run(Command::new(compiler)
        .args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(folder.join("include"))
        .arg(folder.join("examples/stop_and_wait.c"))
        .arg("-L")
        .arg(&libraries)
        .arg("-ljostle_testkit")
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .arg("-o")
        .arg(&program));
    let once = run(&mut Command::new(&program));
    let twice = run(&mut Command::new(&program));
    fs::remove_file(&program).unwrap();
    assert_eq!(once, twice);
    assert_eq!(once.lines().count(), 10);
    assert!(once.starts_with("seed 0: 100 messages in "), "{once}");
}
