"""Build a wheel for this machine: `make wheel`, and the releases.

The engine and its dependencies are compiled twice with profile-guided optimisation: first to record
a profile while it runs some scenarios, then with that profile. The results of runs do not change.
docs/explanation/engineering-notes.md reports the gain. The compiler's `llvm-profdata` merges the
profiles; if it is missing, rustup installs it. Without it the engine is compiled once.
"""

from __future__ import annotations

import importlib.util
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import controller_crates

ROOT = Path(__file__).parents[1]
# Two flows behind a drop-tail queue, the most common case; window-based, rate-based and model-based
# controllers over a long path; queues and their losses; short flows.
TCP_SCENARIOS = ["first", "geo-shared", "fair-queues", "aqm-comparison", "short-flows"]
QUIC_SCENARIOS = ["quic-beside-tcp"]
# A packet of QUIC counts ten times as many steps as one of TCP. With equal weights, the compiler
# treats the loop of TCP as rarely used, and TCP is a fourth slower than without a profile.
TCP_WEIGHT = 30
MOST_OF_PLAIN = 1.03
"""Limit of the CPU time for TCP, in that of an engine without a profile."""
MEASUREMENTS = 5
PROGRAM = "import sys; from jostle.cli import main; sys.exit(main())"
BRIDGE = ROOT / "python" / "jostle" / "kernel_images" / "bridge.o"
PIP_OF_OTHERS = {"PIP_CONSTRAINT", "PIP_REQUIRE_HASHES"}


def output(*command: str | Path) -> str:
    """Run a command; return its output."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout


def find_profdata() -> str | None:
    """Return the compiler's `llvm-profdata`, or one of the same LLVM version (same file format)."""
    about = output("rustc", "-vV")
    known = dict(re.findall(r"^(host|LLVM version): (.+)$", about, re.MULTILINE))
    sysroot = output("rustc", "--print", "sysroot").strip()
    own = Path(sysroot, "lib", "rustlib", known["host"], "bin")
    series = known["LLVM version"].split(".")[0]
    there = shutil.which("llvm-profdata", path=own) or shutil.which(f"llvm-profdata-{series}")
    if there is None and shutil.which("rustup") is not None:
        subprocess.run(["rustup", "component", "add", "llvm-tools"], cwd=ROOT, check=False)
        there = shutil.which("llvm-profdata", path=own)
    return there


def build(out: Path, options: list[str], flags: str | None = None) -> Path:
    """Build the wheel; all crates of the engine are compiled with `flags`."""
    environment = dict(os.environ)
    if flags is not None:
        environment["CARGO_TARGET_DIR"] = str(ROOT / "target" / "profiled")
        environment["RUSTFLAGS"] = flags
        if "--target" not in options:
            # Cargo then compiles programs that run during the build without these flags.
            host = re.findall(r"^host: (.+)$", output("rustc", "-vV"), re.MULTILINE)
            options = [*options, "--target", *host]
    maturin = [sys.executable, "-m", "maturin", "build", "--quiet", "--release", "--locked"]
    subprocess.run([*maturin, "--out", out, *options], cwd=ROOT, env=environment, check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def counts(wheel: Path) -> bool:
    """Return whether the engine in a wheel records a profile, which makes it slower by a third."""
    with zipfile.ZipFile(wheel) as archive:
        engines = [name for name in archive.namelist() if "_core" in name]
        return any(b"__llvm_prf_cnts" in archive.read(name) for name in engines)


def unpack(wheel: Path, package: Path) -> Path:
    """Install a wheel without its dependencies into a folder; return the folder."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(package)]
    # Hashes and constraints do not apply to the wheel that was just built.
    own = {key: it for key, it in os.environ.items() if key not in PIP_OF_OTHERS}
    subprocess.run([*pip, wheel], env=own, check=True)
    return package


def run(scenarios: list[str], folder: Path, **variables: str) -> None:
    """Run scenarios of the repository once, in a folder."""
    files = [str(ROOT / "scenarios" / f"{name}.toml") for name in scenarios]
    words = [sys.executable, "-P", "-c", PROGRAM, "run", "--repeats", "1", "--jobs", "1", "--json"]
    environment = dict(os.environ, JOSTLE_STORE="none", **variables)
    subprocess.run(
        [*words, *files], env=environment, cwd=folder, stdout=subprocess.DEVNULL, check=True
    )


def profile(folder: Path, profdata: str, options: list[str]) -> Path:
    """Record a profile of the engine in runs of all scenarios."""
    merged = folder / "engine.profdata"
    wheel = build(folder / "wheel", options, f"-Cprofile-generate={folder / 'compiling'}")
    if not counts(wheel):
        raise SystemExit(f"{wheel}: the engine counts nothing")
    package = unpack(wheel, folder / "package")
    inputs = []
    for weight, scenarios in ((TCP_WEIGHT, TCP_SCENARIOS), (1, QUIC_SCENARIOS)):
        runs = folder / f"weight-{weight}"
        run(
            scenarios,
            folder,
            PYTHONPATH=str(package),
            LLVM_PROFILE_FILE=str(runs / "%p-%m.profraw"),
        )
        inputs += [f"-weighted-input={weight},{raw}" for raw in sorted(runs.glob("*.profraw"))]
    subprocess.run([profdata, "merge", "-o", merged, *inputs], check=True)
    return merged


def check_speed(wheel: Path, folder: Path) -> None:
    """Check that TCP is not slower than with the installed engine, which has no profile."""
    if importlib.util.find_spec("jostle") is None:
        print("The speed was not compared: jostle is not installed.")
        return
    package = unpack(wheel, folder / "profiled")
    best = {"profiled": math.inf, "plain": math.inf}
    for _ in range(MEASUREMENTS):
        for name, variables in (("profiled", {"PYTHONPATH": str(package)}), ("plain", {})):
            before = os.times().children_user
            run(["geo-shared"], folder, **variables)
            took_s = os.times().children_user - before
            best[name] = min(best[name], took_s)
    ratio = best["profiled"] / best["plain"]
    print(f"geo-shared: {best['profiled']:.2f} s of CPU, {ratio:.2f} of the engine without profile")
    if ratio > MOST_OF_PLAIN:
        raise SystemExit("The profile makes TCP slower: change the weights of its scenarios.")


def main(out: Path, options: list[str]) -> None:
    """Build the wheel into `out`, which contains no other; `options` are maturin's."""
    # Neither is left behind: a source checkout has its own.
    try:
        shutil.rmtree(controller_crates.SOURCES, ignore_errors=True)
        controller_crates.assemble(controller_crates.SOURCES)
        # User-Mode Linux is for this processor.
        if (sys.platform, platform.machine()) == ("linux", "x86_64"):
            link = ROOT / "crates" / "kernel-bridge" / "link.sh"
            subprocess.run(["sh", link, BRIDGE], check=True)
        build_best(out.resolve(), options)
    finally:
        shutil.rmtree(controller_crates.SOURCES, ignore_errors=True)
        BRIDGE.unlink(missing_ok=True)


def build_best(out: Path, options: list[str]) -> None:
    """Build the wheel with a profile, if there is the tool for it."""
    profdata = find_profdata()
    if profdata is None:
        print("The engine is compiled without a profile, and slower for it.")
        print("There is no llvm-profdata of the compiler: rustup component add llvm-tools")
        build(out, options)
        return
    with tempfile.TemporaryDirectory(prefix="profile-") as name:
        folder = Path(name)
        merged = profile(folder, profdata, options)
        wheel = build(out, options, f"-Cprofile-use={merged}")
        if counts(wheel):
            wheel.unlink()
            raise SystemExit(f"{wheel}: the engine still counts the ways that it takes")
        check_speed(wheel, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
