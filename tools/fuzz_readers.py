"""Damage files at random and run the public commands that read them.

usage: python tools/fuzz_readers.py [READER…] [--minutes M | --cases N] [--seed S] [--output DIR]
                                    [--case K] [--json FILE]

Without a READER, every row of `tests/fuzzing/readers.py` is fuzzed. A fault is a traceback, a
signal, an undocumented exit status, more than 10 s or 1 GB, a refusal that names no file, a control
character in the output, a change outside of the case's folder, or a program that is started. For
each new fault the input and the command that repeats it are printed; the input is kept in DIR.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import pkgutil
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "2", "COLUMNS": "120"}
sys.dont_write_bytecode = True
ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
from fuzzing.cases import Outcome, Watched, run_watched  # noqa: E402
from fuzzing.mutations import mutate  # noqa: E402
from fuzzing.readers import READERS, Reader  # noqa: E402
from fuzzing.seeds import make_seeds, repair_digests  # noqa: E402
from limited import SOUND  # noqa: E402

_HEAVY: Final = (
    "numpy", "polars", "scipy.stats", "scipy.optimize", "matplotlib.figure", "duckdb", "optuna",
    "rich.console", "rich.table", "pydantic", "obstore.store",
)  # fmt: skip
_KEPT: Final = 3
"""Inputs that are kept of a fault."""


@dataclass
class Tally:
    """Counts and faults of a reader."""

    reader: str
    cases: int = 0
    refused: int = 0
    minutes: float = 0.0
    cpu_s: float = 0.0
    memory_bytes: int = 0
    faults: dict[str, list[str]] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)


def import_all() -> None:
    """Import every module of jostle and what it needs: each case forks with all of it."""
    import jostle
    from jostle.results.measures import measures
    from jostle.scenario import load_text

    for module in pkgutil.walk_packages(jostle.__path__, "jostle."):
        if module.name.startswith(("jostle.measurements.live.", "jostle.backends.kernel.guest.")):
            continue
        importlib.import_module(module.name)
    for name in _HEAVY:
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"{name} is not installed: commands that need it are refused", file=sys.stderr)
    # Build caches, such as the scenario format, in the parent process.
    assert load_text(SOUND).plan().runs
    assert measures()
    gc.collect()
    gc.freeze()


class Fuzzer:
    """Cases of one reader.

    Parameters
    ----------
    reader
        Row of the table.
    scratch
        Folder for what cases write.
    output
        Folder for inputs that show faults.
    simulated_s
        Time for the simulations of a case.
    """

    def __init__(
        self, reader: Reader, scratch: Path, output: Path, simulated_s: float = 0.3
    ) -> None:
        self._reader = reader
        self._simulated_s = simulated_s
        self._scratch = scratch
        self._output = output / reader.name
        self._base = scratch / f"{reader.name}.seeds"
        _in_child(reader.name, self._base)
        found = [path for pattern in reader.files for path in sorted(self._base.glob(pattern))]
        self._files = [path.relative_to(self._base) for path in found if path.is_file()]
        assert self._files, f"{reader.name}: no file fits {reader.files}"
        self._others = [(self._base / path).read_bytes() for path in self._files]
        self.tally = Tally(reader.name)

    def look(self) -> Outcome:
        """Run the first command on an undamaged file, which it must take."""
        outcome = self._watched(self._reader.commands[0], self._files[0], None)
        if outcome.status == 2 and self._reader.is_taken:
            outcome.faults.append(f"an undamaged file is refused: {outcome.output[-300:]!r}")
        self._note(outcome, "undamaged", self._files[0], b"")
        return outcome

    def case(self, seed: int, number: int) -> Outcome:
        """Carry out a case: the same for the same seed and number."""
        draw = random.Random(f"{self._reader.name}:{seed}:{number}")
        file = draw.choice(self._files)
        command = draw.choice(self._reader.commands)
        damaged = mutate(draw, (self._base / file).read_bytes(), self._reader.form, self._others)
        repaired = self._reader.repairs_digests and draw.random() < 0.7
        outcome = self._watched(command, file, damaged, repaired=repaired)
        self._note(outcome, f"--seed {seed} --case {number}", file, damaged)
        return outcome

    def _watched(
        self, command: Sequence[str], file: Path, damaged: bytes | None, *, repaired: bool = False
    ) -> Outcome:
        folder = self._scratch / self._reader.name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._base, folder, symlinks=True)
        if damaged is not None:
            (folder / file).write_bytes(damaged)
        if repaired:
            repair_digests(folder)
        places = {"FILE": str(file), "file://BUCKET": f"file://{folder / 'bucket'}"}
        words = [places.get(word, word) for word in command]
        names = (*self._reader.names, file.name)
        return run_watched(Watched(words, folder, names, self._reader.statuses, self._simulated_s))

    def _note(self, outcome: Outcome, how: str, file: Path, damaged: bytes) -> None:
        tally = self.tally
        tally.cases += 1
        tally.opened = sorted({*tally.opened, *outcome.opened.get(str(file), [])})
        tally.refused += outcome.status == 2
        tally.cpu_s = max(tally.cpu_s, outcome.cpu_s)
        tally.memory_bytes = max(tally.memory_bytes, outcome.memory_bytes)
        for fault in outcome.faults:
            key = _kind(fault)
            known = tally.faults.setdefault(key, [])
            known.append(how)
            if len(known) > _KEPT:
                continue
            self._output.mkdir(parents=True, exist_ok=True)
            kept = self._output / f"{how.replace(' ', '').strip('-')}-{file.name}"
            kept.write_bytes(damaged)
            kept.with_name(f"{kept.name}.said").write_text(f"{fault}\n\n{outcome.output[-4000:]}")
            print(
                f"{self._reader.name}: {fault}\n  {_repeated(self._reader.name, how)}", flush=True
            )


def _repeated(name: str, how: str) -> str:
    return f"python tools/fuzz_readers.py {name} {how}"


def _kind(fault: str) -> str:
    """Shorten a fault to what all of its kind have in common."""
    head, _, rest = fault.partition(": ")
    return f"{head}: {rest.split(':')[0][:60]}" if head.startswith("traceback") else head[:60]


def _in_child(name: str, folder: Path) -> None:
    """Make seeds in a fork: threads of Polars would not survive another one."""
    folder.mkdir()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.environ["XDG_STATE_HOME"] = str(folder.with_suffix(".state"))
            make_seeds(name, folder)
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code) if code == 0 else _fail()
    assert os.waitpid(child, 0)[1] == 0, f"{name}: its seeds cannot be made"


def _fail() -> None:
    import traceback

    traceback.print_exc()
    os._exit(1)


def fuzzed(fuzzer: Fuzzer, *, seed: int, numbers: Iterator[int], seconds: float) -> Tally:
    """Fuzz a reader until numbers or time end."""
    began_s = time.monotonic()
    fuzzer.look()
    for number in numbers:
        if time.monotonic() - began_s > seconds:
            break
        fuzzer.case(seed, number)
    fuzzer.tally.minutes = (time.monotonic() - began_s) / 60
    return fuzzer.tally


def main() -> int:
    """Fuzz what the command line names; 1 if there were faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readers", nargs="*", metavar="READER")
    parser.add_argument("--minutes", type=float, default=1.0, help="per reader")
    parser.add_argument("--cases", type=int, help="per reader, however long they take")
    parser.add_argument("--case", type=int, help="this case alone, and print what it says")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--simulated-s", type=float, default=0.3, help="of each case")
    parser.add_argument("--output", type=Path, default=Path("fuzz", "found"))
    parser.add_argument("--json", type=Path, help="write the tallies to this file")
    given = parser.parse_args()
    known = {reader.name: reader for reader in READERS}
    chosen = [known[name] for name in given.readers] or list(READERS)
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    seconds = float("inf") if given.cases is not None else 60 * given.minutes
    import_all()
    tallies: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="fuzz-readers-") as folder:
        for reader in chosen:
            fuzzer = Fuzzer(reader, Path(folder), given.output, given.simulated_s)
            if given.case is not None:
                outcome = fuzzer.case(seed, given.case)
                print(outcome.output, f"exit status {outcome.status}", sep="\n")
                continue
            count = 10**9 if given.cases is None else given.cases
            numbers = iter(range(count))
            tally = fuzzed(fuzzer, seed=seed, numbers=numbers, seconds=seconds)
            tallies.append(vars(tally))
            if given.json is not None:
                given.json.write_text(json.dumps(tallies, indent=1))
            print(
                f"{tally.reader}: {tally.cases} cases ({tally.refused} refused) in "
                f"{tally.minutes:.1f} min, seed {seed}, {len(tally.faults)} kinds of faults, "
                f"at most {tally.cpu_s:.1f} s and {tally.memory_bytes / 1e6:.0f} MB",
                flush=True,
            )
    return 1 if any(tally["faults"] for tally in tallies) else 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Libraries complain of what they leave at an orderly end.
    os._exit(status)
