"""The command line: what it prints where, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import fake_core
import polars as pl
import pytest
from jostle import _core
from jostle.cli import cli, status
from jostle.cli.environment import Environment
from jostle.cli.info import _explanation, _measure, _singular
from jostle.results import Failure
from jostle.runner.progress import BarProgress, LineProgress
from jostle.store.store import Reader

SCENARIO = """
title = "Two flows"
duration          = "10 s"
sampling_interval = "1 s"
repeats = 3
[phases]
steady = ["5 s", "10 s"]
[bottleneck]
rate = "50 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "incumbent"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "newcomer"
controller = "bbr"
rtt = "40 ms"
start_jitter = "100 ms"
"""
GRID = '[grid]\n"flows.newcomer.controller" = ["cubic", "bbr"]\n'


@pytest.fixture
def jostle(engine, tmp_path, monkeypatch, capsys):
    """Run the command in a folder that holds `plain.toml` and `grid.toml`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOSTLE_STORE", raising=False)
    Path("plain.toml").write_text(SCENARIO)
    Path("grid.toml").write_text(SCENARIO + GRID)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = status(arguments, Environment(engine))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_tables_per_phase(jostle):
    code, out, err = jostle("run", "grid.toml")
    assert code == 0
    assert err == ""
    assert re.findall(r"^(\w+) \((.*) s\)$", out, re.M) == [("steady", "5–10"), ("overall", "0–10")]
    row = r"^newcomer +bbr +[\d.]+ ± [\d.]+ +[\d.]+ ± "
    assert len(re.findall(row, out, re.M)) == 2
    assert "mean over 3 runs (Student t)" in out


def test_one_phase(jostle):
    _, out, _ = jostle("run", "grid.toml", "--phase", "steady")
    assert "steady (5–10 s)" in out
    assert "overall" not in out


def test_second_time_comes_from_the_store(jostle, engine):
    first = jostle("run", "plain.toml", "--json")
    second = jostle("run", "plain.toml", "--json")
    assert first[1] == second[1]
    assert engine.calls == 3
    assert "3 of 3 runs are in the store" in second[2]
    assert len(Reader(Path(".jostle/store")).names()) == 3


def test_shards_share_a_store(jostle, engine):
    for number, runs in ((1, 2), (2, 2), (3, 1), (4, 1)):
        code, out, _ = jostle("run", "grid.toml", "--shard", f"{number}/4")
        assert code == 0
        assert out == f"Two flows: shard {number}/4: {runs} of {runs} runs are in the store\n"
    code, _, err = jostle("run", "grid.toml")
    assert (code, engine.calls) == (0, 6)
    assert "6 of 6 runs are in the store" in err
    engine.broken_seeds = (9,)
    code, out, _ = jostle("run", "plain.toml", "--seed", "8", "--shard", "2/2")
    assert code == 1
    assert "shard 2/2: 0 of 1 runs are in the store" in out


def test_a_shard_shows_no_results(jostle, engine):
    for option in (["--json"], ["-o", "f/"], ["-o", "r.html"], ["--csv"]):
        code, _, err = jostle("run", "plain.toml", "--shard", "1/2", *option)
        assert code == 2
        assert "--shard: results are of all runs; ask for them without --shard" in err
    assert jostle("run", "plain.toml", "--shard", "3/2")[0] == 2
    assert (
        "leave out --store none" in jostle("run", "plain.toml", "--shard=1/2", "--store", "none")[2]
    )
    assert engine.calls == 0


def test_summaries_alone_are_enough_for_tables(jostle, engine):
    whole = jostle("run", "plain.toml", "--store", "whole")
    code, out, _ = jostle("run", "plain.toml", "--store-level", "summary")
    assert (code, out) == (0, whole[1])
    assert engine.calls == 6
    assert jostle("run", "plain.toml", "--store-level", "summary")[1] == out
    assert engine.calls == 6
    assert list(Path(".jostle/store").glob("segments/*/flows.parquet")) == []
    assert list(Path("whole").glob("segments/*/flows.parquet"))
    for option in (["-o", "f/"], ["-o", "r.html"]):
        code, _, err = jostle("run", "plain.toml", "--store-level", "summary", *option)
        assert code == 2
        assert "--store-level summary: figures and reports are drawn from series" in err
    assert jostle("run", "plain.toml", "-o", "f/")[0] == 0
    assert engine.calls == 9


def test_store_by_option_and_environment(jostle, monkeypatch):
    monkeypatch.setenv("JOSTLE_STORE", "by-environment")
    jostle("run", "plain.toml")
    jostle("run", "plain.toml", "--store", "by-option")
    assert Path("by-environment").is_dir()
    assert Path("by-option").is_dir()
    assert not Path(".jostle").exists()


def test_no_cache_touches_no_store(jostle, engine):
    jostle("run", "plain.toml", "--store", "none")
    jostle("run", "plain.toml", "--store", "none")
    assert engine.calls == 6
    assert not Path(".jostle").exists()


def test_json_is_one_document(jostle):
    code, out, err = jostle("run", "grid.toml", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == "jostle.summary/3"
    assert [c["condition"] for c in document["conditions"]] == [
        {"flows.newcomer.controller": "cubic"},
        {"flows.newcomer.controller": "bbr"},
    ]
    assert err == ""


def test_json_leaves_stdout_to_the_document(jostle):
    _, out, err = jostle("run", "plain.toml", "--json", "-o", "figures/")
    assert json.loads(out)["title"] == "Two flows"
    assert "figure: figures/series.png" in err


def test_several_files_are_one_document_too(jostle):
    _, out, _ = jostle("run", "plain.toml", "grid.toml", "--json", "--repeats", "1")
    assert [len(d["conditions"]) for d in json.loads(out)] == [1, 2]


def test_overrides(jostle):
    arguments = ("--repeats", "2", "--seed", "7", "--set", "flows.newcomer.controller=cubic")
    _, out, _ = jostle("run", "plain.toml", "--json", *arguments)
    runs = json.loads(out)["conditions"][0]["runs"]
    assert [run["seed"] for run in runs] == [7, 8]
    assert runs[0]["flows"][1]["controller"] == "cubic"


def test_figures_and_their_paths(jostle):
    code, out, _ = jostle("run", "grid.toml", "-o", "demo/")
    named = re.findall(r"^figure: (\S+)$", out, re.M)
    assert code == 0
    assert named == [
        f"demo/{name}.png"
        for name in ("series-cubic", "series-bbr", "jain", "throughput-difference")
    ]
    assert len(list(Path("demo").iterdir())) == 4
    assert all(Path(path).is_file() for path in named)


def test_figures_of_several_files_are_kept_apart(jostle):
    Path("other").mkdir()
    Path("other/plain.toml").write_text(SCENARIO)
    jostle("run", "plain.toml", "other/plain.toml", "-o", "demo/")
    assert sorted(p.name for p in Path("demo").iterdir()) == ["plain-1", "plain-2"]


def test_a_failed_run_is_told_and_ends_with_1(jostle, engine):
    engine.broken_seeds = (2,)
    code, out, err = jostle("run", "grid.toml")
    assert code == 1
    reason = "link `bottleneck`: the queue is upside down"
    assert re.search(rf"^run failed \((cubic|bbr), seed 2\): {reason}$", err, re.MULTILINE)
    assert err.count(reason) == 1
    assert "1 more run failed for the same reason" in err
    assert "over 2 runs" in out
    assert f"each of 2 conditions: 2 of 3 runs, 1 failed: {reason}" in " ".join(out.split())
    assert "Traceback" not in err


def test_nothing_random_is_noted(jostle):
    Path("same.toml").write_text(
        SCENARIO.replace('start_jitter = "100 ms"', "").replace("bbr", "cubic")
    )
    note = "note: all 3 runs are identical: nothing in this scenario is random"
    assert note in jostle("run", "same.toml")[1]
    assert note in jostle("run", "same.toml", "--json")[2]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "plain.toml", "--repeats", "1"],
        ["run", "plain.toml", "--repeats", "1", "--json"],
        ["run", "plain.toml", "--repeats", "1", "-o", "a.html", "-o", "b.json", "-o", "c/"],
        ["run", "plain.toml", "--repeats", "1", "--csv", "-o", "a.csv"],
        ["plot", "plain.toml", "--repeats", "1"],
        ["info", "list", "controllers"],
    ],
    ids=" ".join,
)
def test_whoever_has_read_enough_ends_the_command_quietly(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    Path("plain.toml").write_text(SCENARIO)
    # The reader is gone before the first line is written.
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from jostle.cli import main; main()", *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == 141
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    files = [word for option, word in pairwise(words) if option == "-o"]
    files += ["series.png"] if words[0] == "plot" else []
    assert all(Path(file).exists() for file in files)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run",), "Missing argument"),
        (("run", "absent.toml"), "absent.toml: cannot be read"),
        (("run", "plain.toml", "--set", "x"), "write it as KEY=VALUE"),
        (("run", "plain.toml", "--set", "bottleneck.rate=5"), "has no unit"),
        (("run", "plain.toml", "--phase", "stedy"), "did you mean `steady`"),
        (("run", "plain.toml", "--repeats", "0"), "--repeats"),
        (("run", "plain.toml", "--seed", str(2**63 - 1)), "lower one of them"),
        (("run", "plain.toml", "--backend", "magic"), "--backend"),
        (("run", "plain.toml", "--store", "plain.toml"), "cannot use the store plain.toml"),
        (("run", "plain.toml", "--store", "/proc/x"), "cannot use the store /proc/x"),
        (("run", "plain.toml", "-o", "plain.toml/x/"), "cannot make the folder"),
        (("info", "list", "queue"), "did you mean `queues`"),
        (("info", "list", "scenarios-of-doom"), "did you mean `scenarios`"),
        (("info", "explain", "cubik"), "did you mean `cubic`"),
        (("info", "explain", "CUBIC"), "did you mean `cubic`?"),
        (("info", "explain", "zzzzzz"), "`jostle info list KIND` their names"),
        (("info", "list", "--tree"), "as in `jostle info list controllers --tree`"),
        (("run", "plain.toml", "-o", "plain.toml/x.html"), "cannot make the folder"),
        (("run", "plain.toml", "-o", "."), "-o .: no ending"),
        (("run", "plain.toml", "-o", "a.csv"), "cannot write a.csv: Is a directory"),
        (("run", "plain.toml", "-o", "/proc/x.html"), "cannot write into the folder /proc"),
        (("info", "schema", "x"), "'x' is not one of"),
        (("rnu",), "No such command"),
    ],
)
def test_wrong_input_ends_with_2(jostle, engine, arguments, message):
    Path("a.csv").mkdir()
    code, out, err = jostle(*arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert engine.calls == 0


def test_mistakes_of_all_files_are_told_at_once(jostle):
    _, _, err = jostle("run", "no-1.toml", "no-2.toml")
    assert "no-1.toml" in err
    assert "no-2.toml" in err


def test_a_damaged_run_is_told_and_run_again(jostle, engine):
    jostle("run", "plain.toml")
    for victim in Path(".jostle/store").glob("segments/*/flows.parquet"):
        victim.write_bytes(victim.read_bytes()[:50])
    code, _, err = jostle("run", "plain.toml")
    assert code == 0
    assert engine.calls == 6
    assert "warning: segment " in err
    assert "damaged" in err


def test_lists(jostle, engine):
    engine.rows = fake_core.REGISTRY
    _, out, _ = jostle("info", "list", "controllers")
    assert out.splitlines()[1] == "cubic  loss   The default of Linux"
    assert "standard" in jostle("info", "list", "slow-starts")[1]
    assert "drop_tail" in jostle("info", "list", "queues")[1]
    Path("scenarios").mkdir()
    Path("scenarios/a.toml").write_text('title = "First"')
    Path("scenarios/b.toml").write_text("= broken")
    assert jostle("info", "list", "scenarios")[1].splitlines()[1:] == [
        "scenarios/a.toml  First",
        "scenarios/b.toml  (not readable)",
    ]


def test_list_alone_names_the_kinds(jostle):
    code, out, _ = jostle("info", "list")
    assert code == 0
    every = {"controllers", "slow-starts", "queues", "profiles", "scenarios", "studies", "suites"}
    assert every <= set(out.split())


@pytest.mark.parametrize(
    ("kind", "one"), [("studies", "geo-solo"), ("suites", "rfc9743")], ids=["studies", "suites"]
)
def test_studies_and_suites_are_listed_with_their_titles(jostle, kind, one):
    code, out, _ = jostle("info", "list", kind)
    assert code == 0
    assert re.search(rf"^{one} +\w.+", out, re.MULTILINE)


def test_profiles_are_listed_and_explained(jostle):
    assert re.search(
        r"^viasat-2 +a client behind", jostle("info", "list", "profiles")[1], re.MULTILINE
    )
    code, out, _ = jostle("info", "explain", "viasat-2")
    assert code == 0
    for text in ("kind:       profile", 'rtt = "588 ms"', '["99.999995 %", "1136 ms"]'):
        assert text in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("controllers", "controller"), ("slow_starts", "slow start"), ("peer_caches", "peer cache"),
        ("capacities", "capacity"), ("losses", "loss"), ("queues", "queue"), ("delays", "delay"),
    ],
)  # fmt: skip
def test_the_word_for_one_of_a_kind(kind, word):
    assert _singular(kind) == word


def test_explain(jostle, engine):
    engine.rows = fake_core.REGISTRY
    code, out, _ = jostle("info", "explain", "cubic")
    assert code == 0
    for text in (
        "slow start: standard",
        "based on:   bic",
        "source:     RFC 9438",
        "beta = 0.7    (number, 0.1 … 0.99)",
        "fast_convergence = true    (true or false)",
        'linux = "6.1"    (one of "4.15", "6.1")',
        "What a loss leaves of the window",
    ):
        assert text in out
    _, out, _ = jostle("info", "explain", "hybla")
    for text in (
        "slow start: its own",
        'rtt0 = "25 ms"    (1 ms or more)',
        'floor = "1 Mbit/s"    (0 … 10 Gbit/s)',
        "reserve = …    (0 … 1 MB)",
        "rounds = 3    (whole number, 1 … 9)",
    ):
        assert text in out
    assert "no parameters" in jostle("info", "explain", "standard")[1]


def test_measures_are_listed_and_explained(jostle):
    _, out, _ = jostle("info", "list", "measures")
    assert re.search(r"^jain +Jain's index +run +Jain's index of the throughputs", out, re.M)
    assert re.search(r"^retransmission_ratio +retransmission rate +flow ", out, re.M)
    words = " ".join(out.split())
    assert "Capture near the sender: data packets sent before the first ACK" in words
    assert "…" not in out
    code, out, _ = jostle("info", "explain", "queue_length_p95")
    assert code == 0
    for text in (
        "kind:       measure",
        "of:         each link",
        "unit:       kB (byte in JSON)",
        "key:        queue_length_p95_bytes",
    ):
        assert text in out
    assert max(map(len, out.splitlines())) <= 100
    assert "did you mean `cwnd`" in jostle("info", "explain", "cwnt")[2]


def test_every_row_of_the_engine_can_be_explained():
    from jostle import _core

    for kind, rows in json.loads(_core.registry()).items():
        for row in rows if isinstance(rows, list) else ():
            if kind == "measures":
                assert row["definition"].split()[0] in _measure(row)
            else:
                assert row["summary"] in _explanation(kind, row, rows)


def test_schemas(jostle):
    assert json.loads(jostle("info", "schema", "run")[1])["title"] == "RunSpec"
    assert "bottleneck" in json.loads(jostle("info", "schema", "scenario")[1])["properties"]


def test_report(jostle):
    code, out, _ = jostle("run", "grid.toml", "-o", "out/report.html")
    assert code == 0
    assert out.endswith("report: out/report.html\n")
    assert Path("out/report.html").stat().st_size > 10_000
    assert "jostle run -o report.html grid.toml" in Path("out/report.html").read_text()
    given = ("--set", "bottleneck.rate=40 Mbit/s", "--repeats", "2", "--seed", "7")
    jostle("run", "grid.toml", "-o", "report.html", *given)
    command = (
        "jostle run -o report.html --repeats 2 --seed 7 --set &#39;bottleneck.rate=40 Mbit/s&#39; "
        "grid.toml"
    )
    assert command in Path("report.html").read_text()
    assert "report: again.html" in jostle("run", "grid.toml", "-o", "again.html")[1]


def test_version(jostle):
    first, engine, kernels, quic = jostle("--version")[1].splitlines()
    assert re.fullmatch(r"jostle \d+\.\d+\.\d+\S*", first)
    assert engine == f"engine   {_core.ENGINE_VERSION} (measures {_core.METRICS_VERSION})"
    assert re.fullmatch(r"kernels  (none|[0-9.]+ \(\w+\)(, [0-9.]+ \(\w+\))*)", kernels)
    assert quic.startswith("QUIC     noq, in the engine")


HEAVY = ("numpy", "polars", "pydantic", "matplotlib", "scipy", "rich", "jinja2")


def test_help_shows_every_command_once(capsys):
    assert status(["--help"]) == 0
    rows = re.findall(r"^  ([a-z]+)  +[A-Z]", capsys.readouterr().out, re.MULTILINE)
    assert sorted(rows) == sorted(cli.commands)


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom jostle.cli import status\nassert status(['--help']) == 0\n"
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert all(command in done.stdout for command in ("run", "info", "search", "setup"))


SLOW = """
import sys
sys.path.insert(0, {tests!r})
import fake_core
from jostle.cli import status
from jostle.cli.environment import Environment
class Engine(fake_core.FakeEngine):
    def run(self, spec_json, cancelled=None):
        self.lasts_s = 0.0 if self.calls < 2 else 60.0
        if self.calls >= 2:
            print("running", flush=True)
        return super().run(spec_json, cancelled)
sys.exit(status(["run", "grid.toml", "--jobs", "1"], Environment(Engine())))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_a_store_that_resumes(jostle, engine, number, code):
    script = SLOW.format(tests=str(Path(__file__).parent))
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JOSTLE_STORE": ".jostle/store"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert "2 of 6 runs are in the store; give the same command again" in err
    assert "Traceback" not in err
    assert list(Path(".jostle/store/.partial").iterdir()) == []
    assert jostle("run", "grid.toml")[0] == 0
    assert engine.calls == 4


def test_output_that_nobody_reads_to_its_end(jostle):
    script = SLOW.format(tests=str(Path(__file__).parent)).replace("60.0", "0.0")
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait(20)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("environment", "output", "code"),
    [
        ({}, "/dev/full", 2),
        ({"PYTHONIOENCODING": "ascii"}, "/dev/null", 0),
        ({"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, "/dev/null", 0),
    ],
)
def test_no_output_ends_in_a_traceback(
    environment: dict[str, str], output: str, code: int, tmp_path: Path
) -> None:
    Path(tmp_path, "a.toml").write_text(SCENARIO)
    script = "from jostle.cli import main; main()"
    for words in (["--help"], ["run", "a.toml", "--store", "none"]):
        with Path(output).open("w") as file:
            done = subprocess.run(
                [sys.executable, "-c", script, *words], cwd=tmp_path, stdout=file,
                stderr=subprocess.PIPE, text=True, env=os.environ | environment, check=False,
            )  # fmt: skip
        assert done.returncode == code
        assert "Traceback" not in done.stderr
        assert ("cannot write the output: No space left on device" in done.stderr) == (code == 2)


def test_a_closed_output_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'from jostle.cli import main; main()' info list queues >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_one_format_is_printed(jostle):
    code, out, err = jostle("run", "plain.toml", "--json", "--csv")
    assert (code, out) == (2, "")
    assert "--json and --csv: choose one" in err


@pytest.mark.parametrize("columns", ["0", "nonsense"])
def test_a_terminal_without_a_width_has_80_columns(jostle, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    assert "incumbent" in jostle("run", "plain.toml")[1]


def test_lines_of_progress(capsys):
    times = iter([0.0, 0.0, 1.0, 6.0, 7.0, 12.0, 13.0])
    progress = LineProgress(["bbr"], lambda: next(times))
    progress.begin(6, 1)
    for _ in range(3):
        progress.advance()
    progress.failed(Failure(0, 4, "why"))
    progress.advance()
    progress.end()
    assert capsys.readouterr().err.splitlines() == [
        "1 of 6 runs are in the store",
        "2 of 5 runs, 0.3 runs/s, about 9 s left",
        "run failed (bbr, seed 4): why",
        "4 of 5 runs, 0.3 runs/s, about 3 s left, 1 failed",
    ]


@pytest.mark.parametrize("made", [LineProgress, BarProgress])
def test_equal_failures_are_counted(capsys, made):
    progress = made(["cubic", "bbr"])
    progress.begin(6, 0)
    for condition, seed, error in [(0, 1, "why"), (0, 2, "why"), (1, 1, "why"), (1, 2, "stalled")]:
        progress.failed(Failure(condition, seed, error))
    progress.end()
    progress.begin(2, 0)
    progress.failed(Failure(0, 3, "stalled"))
    progress.end()
    progress.end()
    said = capsys.readouterr().err
    assert [line.strip() for line in said.splitlines() if "failed" in line and "━" not in line] == [
        "run failed (cubic, seed 1): why",
        "run failed (bbr, seed 2): stalled",
        "2 more runs failed for one of these reasons",
        "1 more run failed for one of these reasons",
    ]


def test_bar_begins_and_ends(capsys):
    bar = BarProgress(["", ""])
    bar.begin(3, 0)
    bar.advance()
    bar.failed(Failure(1, 2, "why"))
    bar.end()
    bar.end()
    assert "run failed (seed 2): why" in capsys.readouterr().err
    quiet = BarProgress([""])
    quiet.begin(1, 0)
    quiet.advance()
    quiet.end()
    assert capsys.readouterr().err == ""


def test_engine_that_is_too_old(monkeypatch, capsys):
    monkeypatch.setattr("jostle._core", fake_core, raising=False)
    assert status(["info", "list", "controllers"]) == 1
    assert "too old" in capsys.readouterr().err


def test_tables_go_into_files_unrounded(jostle):
    code, out, err = jostle("run", "grid.toml", "-o", "out/a.csv", "-o", "a.parquet")
    assert code == 0
    assert "newcomer" in out
    assert err.splitlines() == ["csv: out/a.csv", "parquet: a.parquet"]
    frame = pl.read_csv("out/a.csv")
    assert frame.height == pl.read_parquet("a.parquet").height
    assert {"throughput", "queue_length", "jain"} <= set(frame["measure"])
    _, out, _ = jostle("run", "grid.toml", "--csv", "--measures", "rtt", "--phase", "steady")
    rows = out.splitlines()
    assert rows[0].startswith("flows.newcomer.controller,phase,flow,flows,controller")
    assert len(rows) == 1 + 4


def test_pivot_and_sort(jostle):
    _, out, _ = jostle("run", "grid.toml", "--pivot", "newcomer.controller:flow",
                       "--measures", "share", "--phase", "steady")  # fmt: skip
    assert re.search(r"^controller \\ flow +incumbent +newcomer$", out, re.M)
    assert len(re.findall(r"^(cubic|bbr) +[\d.]+ ± [\d.]+ +[\d.]+ ± ", out, re.M)) == 2
    _, out, _ = jostle(
        "run", "grid.toml", "--sort", "rtt:up", "--measures", "rtt", "--max-rows", "2"
    )
    assert "… 2 more rows" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--measures", "thruput"), "no measure `thruput`; did you mean"),
        (("--sort", "thruput"), "no key `thruput`"),
        (("--pivot", "flow:controler", "--measures", "rtt"), "did you mean `controller`"),
        (("--pivot", "flow", "--measures", "rtt"), "write it as ROWKEY:COLKEY"),
        (("--pivot", "flow:phase"), "--pivot shows one measure: give --measures MEASURE"),
    ],
)
def test_mistakes_are_told_before_anything_runs(jostle, engine, arguments, message):
    code, _, err = jostle("run", "grid.toml", *arguments)
    assert code == 2
    assert message in err
    assert engine.calls == 0
