"""Build a wheel for this machine: `make wheel`, and the releases.

If the compiler's `llvm-profdata` is installed (`rustup component add llvm-tools`), the engine is
compiled twice with profile-guided optimisation: first to record a profile while it runs some
scenarios, then with that profile. The results of runs do not change.
docs/explanation/engineering-notes.md reports the gain. The engine is compiled once without that
tool, and on Windows, which cannot execute `profiled-rustc`.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Two flows behind a drop-tail queue, the most common case; window-based, rate-based and model-based
# controllers over a long path; queues and their losses; short flows; QUIC and TCP together.
SCENARIOS = [
    "first",
    "geo-shared",
    "fair-queues",
    "aqm-comparison",
    "short-flows",
    "quic-beside-tcp",
]
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
    return shutil.which("llvm-profdata", path=own) or shutil.which(f"llvm-profdata-{series}")


def build(out: Path, options: list[str], flags: str | None = None) -> Path:
    """Build the wheel; the project's own crates are compiled with `flags`."""
    environment = dict(os.environ)
    if flags is not None:
        # Cargo does not detect changed flags and would reuse earlier outputs, so each build starts
        # from scratch.
        target = ROOT / "target" / "profiled"
        shutil.rmtree(target, ignore_errors=True)
        environment["CARGO_TARGET_DIR"] = str(target)
        environment["RUSTC_WORKSPACE_WRAPPER"] = str(ROOT / "tools" / "profiled-rustc")
        environment["JOSTLE_PROFILE_FLAGS"] = flags
    maturin = [sys.executable, "-m", "maturin", "build", "--quiet", "--release", "--locked"]
    subprocess.run([*maturin, "--out", out, *options], cwd=ROOT, env=environment, check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def counts(wheel: Path) -> bool:
    """Return whether the engine in a wheel records a profile, which makes it slower by a third."""
    with zipfile.ZipFile(wheel) as archive:
        engines = [name for name in archive.namelist() if "_core" in name]
        return any(b"__llvm_prf_cnts" in archive.read(name) for name in engines)


def profile(folder: Path, profdata: str, options: list[str]) -> Path:
    """Record a profile of the engine in runs of `SCENARIOS`."""
    package, runs, merged = folder / "package", folder / "runs", folder / "engine.profdata"
    wheel = build(folder / "wheel", options, f"-Cprofile-generate={folder / 'compiling'}")
    if not counts(wheel):
        raise SystemExit(f"{wheel}: the engine counts nothing")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(package)]
    # Hashes and constraints do not apply to the wheel that was just built.
    own = {key: it for key, it in os.environ.items() if key not in PIP_OF_OTHERS}
    subprocess.run([*pip, wheel], env=own, check=True)
    environment = dict(
        os.environ,
        PYTHONPATH=str(package),
        LLVM_PROFILE_FILE=str(runs / "%p-%m.profraw"),
        JOSTLE_STORE=str(folder / "store"),
    )
    program = "import sys; from jostle.cli import main; sys.exit(main())"
    jostle = [sys.executable, "-P", "-c", program, "run", "--repeats", "1", "--json"]
    files = [str(ROOT / "scenarios" / f"{name}.toml") for name in SCENARIOS]
    subprocess.run(
        [*jostle, *files], env=environment, cwd=folder, stdout=subprocess.DEVNULL, check=True
    )
    subprocess.run([profdata, "merge", "-o", merged, *runs.glob("*.profraw")], check=True)
    return merged


def main(out: Path, options: list[str]) -> None:
    """Build the wheel into `out`, which contains no other; `options` are maturin's."""
    # User-Mode Linux is for this processor. The object is not left behind: a source checkout links
    # its own.
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        build_best(out.resolve(), options)
        return
    try:
        subprocess.run(["sh", ROOT / "crates" / "kernel-bridge" / "link.sh", BRIDGE], check=True)
        build_best(out.resolve(), options)
    finally:
        BRIDGE.unlink(missing_ok=True)


def build_best(out: Path, options: list[str]) -> None:
    """Build the wheel with a profile, if there is the tool for it."""
    profdata = None if os.name == "nt" else find_profdata()
    if profdata is None:
        print("The engine is compiled without a profile, and slower for it.")
        print("Elsewhere than on Windows: rustup component add llvm-tools")
        build(out, options)
        return
    with tempfile.TemporaryDirectory(prefix="profile-") as name:
        merged = profile(Path(name), profdata, options)
        wheel = build(out, options, f"-Cprofile-use={merged}")
        if counts(wheel):
            wheel.unlink()
            raise SystemExit(f"{wheel}: the engine still counts the ways that it takes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
