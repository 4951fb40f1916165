"""Names of earlier formats: `tools/migrate_keys.py` changes them, and errors name the new ones."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jostle
import pytest
from jostle.cli import status
from jostle.errors import InputError
from jostle.results.measures import measure, measures
from jostle.scenario import ScenarioError, load_text
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.parsing.renamed_keys import (
    MEASURES,
    TABLES,
    file_kind,
    renamed_key_path,
    renames_in,
)
from jostle.scenario.resolve.key_paths import find

ROOT = Path(__file__).parents[1]
TOOL = ROOT / "tools" / "migrate_keys.py"

SCENARIO = """\
# The network of the paper
format   = "jostle.scenario/1"
duration = "20 s"              # of each run
interval = "100 ms"
until    = "queue_time ± 5 %"
trace    = "acks"

[downlink]
rate = "10 Mbit/s"
queue = "fq_codel"
frames = { contention = "2 ms", packets = 64, bytes = "65535 B" }  # Wi-Fi
slots.every = "15 s"
slots.place = { "0 %" = "1 ms", "100 %" = "2 ms" }

[uplink]
rate         = "5 Mbit/s"
queue        = { kind = "codel", interval = "100 ms" }
quick_start  = { allowance = "1 Mbit/s", interval = "600 ms" }
ack_thinning = { most = 8, hold = "5 ms" }

[[flows]]
name       = "web"
controller = { name = "cubic", linux = "4.15" }
linux      = "4.15"
memory     = { name = "stateful", slots = 16 }
rtt        = "40 ms"
source     = { kind = "web", main = "10 kB", objects = 3, object = "2 kB", think = "1 s" }

[[flows]]
name = "a b"
controller = "none"
rtt = "40 ms"
source = { kind = "ping", bytes = "20 B", every = "200 ms" }

[[flows]]
name = "liar"
controller = "reno"
ecn = true
rtt = "40 ms"
bytes = '1 MB'
receiver = { kind = "optimistic_acks", lead = 0.5 }

[grid]
"flows.web.memory.slots" = [16, 32]
"downlink.frames.contention" = { short = "1 ms", long = "4 ms" }
'flows."a b".source.every' = ["100 ms", "200 ms"]
"flows.liar.receiver" = ["none", "divided_acks", { kind = "hidden_marks" }]

[sample]
points = 4
"flows.web.source.think" = { from = "1 s", to = "2 s" }
where = ["flows.web.source.think >= 1 s", "flows.liar.bytes <= 2 MB"]
"""
MIGRATED = """\
# The network of the paper
format            = "jostle.scenario/2"
duration          = "20 s"              # of each run
sampling_interval = "100 ms"
repeat_until      = "queue_delay_estimate ± 5 %"
record            = "acks"

[downlink]
rate = "10 Mbit/s"
queue = "fq_codel"
frame_aggregation = { access_delay = "2 ms", packets = 64, size = "65535 B" }  # Wi-Fi
reassignment.every         = "15 s"
reassignment.per_run_delay = { "0 %" = "1 ms", "100 %" = "2 ms" }

[uplink]
rate         = "5 Mbit/s"
queue        = { kind = "codel", interval = "100 ms" }
quick_start  = { allowance = "1 Mbit/s", interval = "600 ms" }
ack_thinning = { max_acks = 8, max_delay = "5 ms" }

[[flows]]
name          = "web"
controller    = { name = "cubic", linux = "4.15" }
linux_version = "4.15"
peer_cache    = { name = "stateful", slots = 16 }
rtt           = "40 ms"
source        = { kind = "web", main_object = "10 kB", object_count = 3, object_size = "2 kB", think_time = "1 s" }

[[flows]]
name = "a b"
controller = "none"
rtt = "40 ms"
source = { kind = "ping", size = "20 B", period = "200 ms" }

[[flows]]
name = "liar"
controller = "reno"
ecn = true
rtt = "40 ms"
size = '1 MB'
receiver = { kind = "optimistic_acking", lead_rtts = 0.5 }

[grid]
"flows.web.peer_cache.slots" = [16, 32]
"downlink.frame_aggregation.access_delay" = { short = "1 ms", long = "4 ms" }
'flows."a b".source.period' = ["100 ms", "200 ms"]
"flows.liar.receiver" = ["none", "ack_division", { kind = "hidden_ecn_marks" }]

[sample]
points = 4
"flows.web.source.think_time" = { from = "1 s", to = "2 s" }
where = ["flows.web.source.think_time >= 1 s", "flows.liar.size <= 2 MB"]
"""  # noqa: E501
SOUND = """\
duration = "2 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "web"
controller = "cubic"
rtt = "20 ms"
"""


def tool(*words: str | Path) -> tuple[int, str, str]:
    """Run the tool: exit status, stdout, stderr."""
    command = [sys.executable, str(TOOL), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_names_change_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO)
    path.chmod(0o640)
    assert tool("--check", path)[0] == 1
    assert path.read_text() == SCENARIO
    code, out, err = tool(path)
    assert (code, err) == (0, "")
    assert f"{path}:4: interval → sampling_interval\n" in out
    assert path.read_text() == MIGRATED
    assert path.stat().st_mode & 0o777 == 0o640
    assert tool("--check", path) == (0, "", "")
    assert tool(path) == (0, "", "")
    assert path.read_text() == MIGRATED


def test_a_migrated_scenario_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    # A browser's host has no memory of peers.
    lines = SCENARIO.splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "memory" not in line))
    with pytest.raises(ScenarioError, match="is now called"):
        jostle.load(path)
    assert tool(path)[0] == 0
    assert len(jostle.load(path).plan(repeats=1).runs) == 2 * 2 * 3 * 4


def test_texts_of_studies_keep_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'title = "T"\npaper = "P"\nlearned = ["It is {a}."]\n'
        "[experiments.e]\n"
        'scenario = "e.toml"\nkeys     = { memory = "flows.web.memory" }\n'
        "[[readings]]\n"
        'changes = [{ set = { "bottleneck.frames.bytes" = "3 kB", "flows.*.gro" = true } }]\n'
        "[[numbers]]\n"
        'id      = "a"\nby      = "memory"\nmeasure = "ack_rtt"\nwhere = { r = "hidden_marks" }\n'
        'text    = "by the queue"\n'
        "[[figures]]\n"
        'panels = ["jain", "total"]\ncurves = [{ measure = "queue", shown = "x" }]\n'
    )
    assert tool(path)[0] == 0
    assert path.read_text() == (
        'title = "T"\npaper = "P"\nfindings = ["It is {a}."]\n'
        "[experiments.e]\n"
        'scenario = "e.toml"\nkeys     = { memory = "flows.web.peer_cache" }\n'
        "[[setups]]\n"
        'changes = [{ set = { "bottleneck.frame_aggregation.size" = "3 kB", '
        '"flows.*.receiver_gro" = true } }]\n'
        "[[numbers]]\n"
        'id      = "a"\nmeasured_by = "memory"\nmeasure = "segment_rtt"\n'
        'where = { r = "hidden_ecn_marks" }\n'
        'text    = "by the queue"\n'
        "[[figures]]\n"
        'panels = ["jain", "total_throughput"]\n'
        'curves = [{ measure = "queue_length", display = "x" }]\n'
    )


def test_suites_are_changed(tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(
        'left_out = ["x"]\n[experiments.e]\nsubject = ["test"]\nover = { quic = "q.toml" }\n'
        '[[criteria]]\nasks = "A"\nours = true\n'
        'parts = [{ left = { measure = "completion", of = "subject" }, right = 1 }]\n'
    )
    assert tool(suite)[0] == 0
    assert suite.read_text() == (
        'not_covered = ["x"]\n[experiments.e]\nflows_under_test = ["test"]\n'
        'scenario_for = { quic = "q.toml" }\n'
        '[[criteria]]\nrequirement = "A"\nproject_bound = true\n'
        'parts = [{ left = { measure = "completion_time", of = "subject" }, right = 1 }]\n'
    )


def test_what_cannot_be_changed_is_left_alone(tmp_path: Path) -> None:
    broken, other, long = (tmp_path / name for name in ("b.toml", "Cargo.toml", "l.toml"))
    broken.write_text('duration = "1 s"\ninterval = \n')
    other.write_text('[package]\ninterval = "1 s"\n')
    long.write_text('duration = "1 s"\nuntil = """queue_time ± 5 %"""\n')
    code, out, err = tool(broken, other, long, tmp_path / "none.toml")
    assert (code, out) == (2, "")
    assert f"{broken}:2: not valid TOML" in err
    assert f"{long}:" in err
    assert "none.toml" in err
    assert broken.read_text() == 'duration = "1 s"\ninterval = \n'
    assert other.read_text() == '[package]\ninterval = "1 s"\n'
    assert "until" in long.read_text()


def test_no_file_of_the_repository_has_an_old_name() -> None:
    for path in (*ROOT.glob("scenarios/**/*.toml"), *ROOT.glob("studies/*/*.toml"),
                 *ROOT.glob("suites/*/*.toml"), *ROOT.glob("examples/**/*.toml"),
                 *ROOT.glob("python/jostle/scenario/templates/*.toml")):  # fmt: skip
        # Templates of `jostle new` have defaults between @.
        text = re.sub(r"@\w+\|(.*?)@", r"\1", path.read_text())
        document = tomllib.loads(text)
        kind = file_kind(path.name, document)
        assert kind is None or not [*renames_in(document, kind)], path


def test_every_new_measure_is_there_and_no_old_one() -> None:
    assert set(MEASURES.values()) <= measures().keys()
    assert not MEASURES.keys() & measures().keys()


def test_no_new_name_is_an_old_one() -> None:
    for name, table in TABLES.items():
        assert not set(table.keys.values()) & table.keys.keys(), name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("flows.web.memory", "flows.web.peer_cache"),
        ("flows.*.memory.slots", "flows.*.peer_cache.slots"),
        ('flows."memory".memory', 'flows."memory".peer_cache'),
        ("links.frames.frames.bytes", "links.frames.frame_aggregation.size"),
        ("bottleneck.queue.interval", None),
        ("bottleneck.trace", None),
        ("flows.web.controller.linux", None),
        ("trace", "record"),
    ],
)
def test_key_paths(old: str, new: str | None) -> None:
    assert renamed_key_path(old) == new


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('interval = "1 s"', "interval: this key is now called `sampling_interval`"),
        ('until = "rtt ± 1 %"', "until: this key is now called `repeat_until`"),
        ('repeat_until = "ack_rtt ± 1 %"', "is now called `segment_rtt ± 1 %`"),
        ('grid = { "flows.web.memory" = ["none"] }', "now called `flows.web.peer_cache`"),
        ('grid = { "flows.web.receiver" = ["hidden_marks"] }', "called `hidden_ecn_marks`"),
        ('sample = { points = 1, where = "flows.web.bytes > 1 B" }', "`flows.web.size > 1 B`"),
        ('format = "jostle.scenario/1"', "the format is now called `jostle.scenario/2`"),
    ],
)  # fmt: skip
def test_an_old_name_in_a_scenario_names_the_new_one(line: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(f"{line}\n{SOUND}")
    assert said in str(caught.value)
    assert caught.value.problems[0].line == 1
    assert "python tools/migrate_keys.py FILE" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('memory = "none"', "scenario:9: flows.web.memory: this key is now called `peer_cache`"),
        ("pep = []", "flows.web.pep: this key is now called `proxy`"),
        ('proxy = [{ at = "x" }]', "flows.web.proxy[0].at: this key is now called `link`"),
        ('receiver = "divided_acks"', 'the receiver is now called `ack_division`'),
        ('receiver = { kind = "rledbat", lead = 1 }', "this key is now called `lead_rtts`"),
        ('source = { kind = "fixed", bytes = "1 B" }', "web.source.bytes: this key is now"),
    ],
)  # fmt: skip
def test_an_old_name_in_a_flow_names_the_new_one(line: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(f"{SOUND}{line}\n")
    assert said in str(caught.value)


def test_an_old_name_on_the_command_line_names_the_new_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SOUND)

    def refusal(*words: str) -> str:
        assert status([*words]) == 2
        return capsys.readouterr().err

    said = refusal("run", str(path), "--set", "flows.web.memory=none")
    assert '"flows.web.memory" is now called "flows.web.peer_cache"' in said
    assert "migrate" not in said
    assert "now called `queue_delay_estimate`" in refusal("run", str(path), "--sort", "queue_time")
    assert "`memories` is now called `peer-caches`" in refusal("info", "list", "memories")
    assert status(["info", "list", "peer-caches"]) == 0
    assert "stateful" in capsys.readouterr().out


def test_an_old_name_in_python_names_the_new_one() -> None:
    for old, new in MEASURES.items():
        with pytest.raises(InputError, match=f"`{old}`: it is now called `{new}`"):
            measure(old)
    document: dict[str, Any] = tomllib.loads(SOUND)
    with pytest.raises(ScenarioError, match="this key is now called `record`") as caught:
        jostle.Scenario.from_dict({**document, "trace": "acks"})
    assert "migrate" not in str(caught.value)
    with pytest.raises(QuantityError, match="is now called"):
        find(document, "flows.web.memory")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("findings = [", "learned = ["), "toml:1: learned: this key is now called `findings`"),
        (("measured_by = ", "by = "), "this key is now called `measured_by`"),
        (('"throughput"', '"ack_rtt"'), "the measure is now called `segment_rtt`"),
    ],
)  # fmt: skip
def test_an_old_name_in_a_study_names_the_new_one(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    from jostle.studies.load import load

    shutil.copytree(ROOT / "tests" / "studies" / "small", tmp_path / "small")
    path = tmp_path / "small" / "study.toml"
    text = 'findings = ["It is so."]\n' + path.read_text()
    path.write_text(text.replace(*change))
    with pytest.raises(ScenarioError) as caught:
        load("small", tmp_path)
    assert said in str(caught.value)
    assert "python tools/migrate_keys.py FILE" in str(caught.value)


@pytest.mark.parametrize(
    ("new", "old"),
    [("requirement", "asks"), ("flows_under_test", "subject")],
)
def test_an_old_name_in_a_suite_names_the_new_one(tmp_path: Path, new: str, old: str) -> None:
    from jostle.suites.load import load

    shutil.copytree(ROOT / "tests" / "suites" / "small", tmp_path / "small")
    path = tmp_path / "small" / "suite.toml"
    path.write_text(path.read_text().replace(new, old))
    with pytest.raises(ScenarioError, match=f"{old}: this key is now called `{new}`"):
        load("small", tmp_path)
