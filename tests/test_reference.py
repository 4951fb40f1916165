"""Generated text of the documentation: what is filled in, and what is told of faults."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import reference  # noqa: E402
from doc_blocks import behaviour, commands, manifest, markers, pictures, tables  # noqa: E402
from doc_blocks.commands import CommandError, Result  # noqa: E402

SCENARIO = """
title    = "One flow"
duration = "2 s"

[bottleneck]
rate  = "5 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }

[[flows]]
name       = "one"
controller = "cubic"
rtt        = "40 ms"
"""
NUMBERS = """
[packets]
command = "jostle run scenarios/one.toml --json"
value   = "conditions[0].runs[0].flows[0].phases.overall.sent_packets"
format  = "{:d}"

[rate]
file    = "docs/rates.csv"
value   = "[?method=='fast'] | [0].rate_bps"
factor  = 1e-6
format  = "{:.1f} Mbit/s"
"""


@pytest.fixture
def tree(tmp_path):
    """Return a small repository with a scenario and numbers."""
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "one.toml").write_text(SCENARIO)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "numbers.toml").write_text(NUMBERS)
    (tmp_path / "docs" / "rates.csv").write_text("method,rate_bps\nslow,1e6\nfast,12.34e6\n")
    return tmp_path


def write(tree, text):
    page = tree / "docs" / "page.md"
    page.write_text(text)
    return page


def update(tree, *arguments):
    return reference.main(arguments, tree)


def block(kind, text=""):
    return f"# Page\n\n<!-- generated: {kind} -->\n{text}<!-- end -->\n"


def test_a_page_is_filled_in_and_then_current(tree, capsys):
    page = write(
        tree,
        block("output --lines 1 jostle run scenarios/one.toml")
        + "It sends <!-- number: packets --><!-- end --> packets at <!-- number: rate -->?<!-- end"
        " -->.\n\n<!-- generated: file scenarios/one.toml -->\n<!-- end -->\n",
    )
    assert update(tree, "--check") == 1
    assert update(tree) == 0
    text = page.read_text()
    assert "```console\n$ jostle run scenarios/one.toml\none (cubic): goodput " in text
    assert re.search(r"<!-- number: packets -->\d{3}<!-- end --> packets", text)
    assert "<!-- number: rate -->12.3 Mbit/s<!-- end -->." in text
    assert f"```toml\n{SCENARIO.strip()}\n```" in text
    capsys.readouterr()
    assert update(tree, "--check") == 0
    assert capsys.readouterr().err == ""
    assert page.read_text() == text


def test_a_stale_block_is_told_with_old_and_new_lines(tree, capsys):
    page = write(tree, block("file scenarios/one.toml", '```toml\ntitle    = "Two flows"\n```\n'))
    before = page.read_text()
    assert update(tree, "--check") == 1
    told = capsys.readouterr().err
    assert told.startswith("docs/page.md:3: file scenarios/one.toml: out of date")
    assert '-title    = "Two flows"' in told
    assert '+title    = "One flow"' in told
    assert page.read_text() == before


def test_a_stale_number_is_told_with_both_values(tree, capsys):
    write(tree, "Text.\n\nIt has <!-- number: rate -->11.9 Mbit/s<!-- end -->.\n")
    assert update(tree, "--check") == 1
    told = "docs/page.md:3: number rate: is “11.9 Mbit/s”, now “12.3 Mbit/s”\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (block("table Flow"), "docs/page.md:3: table Flow: no kind of block `table`"),
        ("a\n<!-- generated: features -->\nb\n", "docs/page.md:2: `generated: features` has"),
        (
            block("features", "<!-- generated: profiles -->\n"),
            "docs/page.md:3: `generated: features` has no",
        ),
        ("a\nb <!-- number: rate -->1 s\n", "docs/page.md:2: `number: rate` has no `<!-- end"),
        ("a\n\nb <!-- end -->\n<!-- number: rate -->1<!-- end -->", "docs/page.md:3: `<!-- end"),
        ("<!-- number: none -->1<!-- end -->", "docs/page.md:1: number none: docs/numbers"),
        (block("output rm -rf /"), "docs/page.md:3: output rm -rf /: `rm -rf /`: only"),
        (block("output jostle link emulate x -- sh"), "only `jostle …` and `python examples/…`"),
        (block("output jostle list queues | sh"), "there is no shell"),
        (block("output jostle run x.toml > y"), "there is no shell"),
        (block("output python examples/../tools/soak.py"), "only `jostle …`"),
        (block("output python -c print"), "only `jostle …`"),
        (
            block("output jostle run scenarios/none.toml"),
            "docs/page.md:3: output jostle run scenarios/none.toml: `jostle run scenarios/none.toml"
            "` ended with status 2: error: scenarios/",
        ),
        (block("file ../secret"), "no file `../secret` in the repository"),
        (block("figure images/x.png jostle list queues"), "write the image link of images/x.png"),
        (block("keys Nothing"), "no table `Nothing`"),
        (block("keys Edge", "between: two\nbreadth: one\n"), "Edge has no key `breadth`"),
        (block("registry shoes"), "no registry `shoes`: one of"),
        (block("algorithm nobody"), "no algorithm `nobody`"),
        (block("options nothing"), "`jostle nothing` is not a command"),
        (block("python jostle.nothing"), "no Python object `jostle.nothing`"),
        (block("profiles all"), "`all`: this kind of block has no arguments"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_place(tree, capsys, text, told):
    page = write(tree, text)
    assert update(tree) == 1
    assert told in capsys.readouterr().err
    assert page.read_text() == text


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ('\n[x]\nvalue = "a"\n', "docs/numbers.toml:2: x: give one of `command`, `file`, `sc"),
        ('[x]\nfile = "a"\ncommand = "b"\nvalue = "a"\n', "x: give one of `command`, `file`, `s"),
        ('[x]\nscenario = "a.toml"\nmeasure = "rtt"\n', "x: `phase` is missing"),
        ('[x]\nfile = "a.json"\n', "docs/numbers.toml:1: x: give `value` or `match`"),
        ('[x]\nfile = "a.json"\nvalue = "a"\nunit = "s"\n', "x: unknown key `unit`: one of"),
    ],
)
def test_a_fault_of_the_numbers_is_told(tree, capsys, numbers, told):
    (tree / "docs" / "numbers.toml").write_text(numbers)
    assert update(tree) == 1
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("file = 'docs/none.csv'\nvalue = 'a'", "docs/numbers.toml:1: no file `docs/none.csv`"),
        ("file = 'docs/rates.csv'\nvalue = '[].rate_bps'", "selects a list, not one value"),
        ("file = 'docs/rates.csv'\nvalue = '[5].rate_bps'", "selects nothing, not one value"),
        ("file = 'docs/rates.csv'\nvalue = '[['", "docs/numbers.toml:1: `[[`: "),
        ("file = 'docs/rates.csv'\nmatch = 'x(.)'", "`x(.)` matches nothing"),
        (
            "command = 'jostle run nothing.toml'\nvalue = 'a'",
            "`jostle run nothing.toml` ended with",
        ),
        ("scenario = 'a.toml'\nmeasure = 'rtt'\nphase = 'overall'", "no file `a.toml`"),
        ("scenario = 'scenarios/one.toml'\nmeasure = 'rtt'\nphase = 'late'", "no phase `late`"),
        (
            "scenario = 'scenarios/one.toml'\nmeasure = 'rtt'\nphase = 'overall'\nflow = 'x'",
            "0 values of rtt, not one",
        ),
        ("command = 'sh -c x'\nvalue = 'a'", "only `jostle …` and `python examples/…`"),
    ],
)
def test_a_number_that_cannot_be_had_is_told(tree, capsys, keys, told):
    (tree / "docs" / "numbers.toml").write_text(f"[x]\n{keys}\n")
    write(tree, "<!-- number: x -->1<!-- end -->")
    assert update(tree) == 1
    err = capsys.readouterr().err
    assert err.startswith("docs/page.md:1: number x: docs/numbers.toml:1: ")
    assert told in err


def test_numbers_can_be_compared_and_found_in_text(tree):
    (tree / "docs" / "numbers.toml").write_text(
        "[ratio]\nfile = 'docs/rates.csv'\nvalue = '[1].rate_bps'\nover = '[0].rate_bps'\n"
        "format = '{:.2f} times'\n[found]\nfile = 'docs/rates.csv'\nmatch = 'slow,(.*)'\n"
    )
    page = write(tree, "<!-- number: ratio --><!-- end -->, <!-- number: found --><!-- end -->")
    assert update(tree) == 0
    assert "-->12.34 times<!--" in page.read_text()
    assert "-->1e6<!--" in page.read_text()


def test_a_mean_has_its_interval(tree):
    scenario = tree / "scenarios" / "three.toml"
    scenario.write_text(SCENARIO.replace("[bottleneck]", "repeats = 3\n\n[bottleneck]")
                        + 'start_jitter = "100 ms"\n')  # fmt: skip
    (tree / "docs" / "numbers.toml").write_text(
        "[rtt]\nscenario = 'scenarios/three.toml'\nmeasure = 'rtt'\nphase = 'overall'\nflow = 'one'"
    )
    page = write(tree, "<!-- number: rtt --><!-- end -->")
    assert update(tree) == 0
    assert re.search(r"-->\d+(\.\d+)? ± \d+(\.\d+)? ms<!--", page.read_text())


def test_slow_commands_are_left_to_all(tree):
    page = write(tree, block("output --slow jostle info list profiles", "old\n"))
    assert update(tree, "--check") == 0
    assert update(tree, "--check", "--all") == 1
    assert update(tree, "--all") == 0
    assert "starlink" in page.read_text()


def test_a_command_that_is_to_fail_has_its_status(tree):
    page = write(tree, block("output --status 2 jostle run none.toml"))
    assert update(tree) == 0
    assert "$ jostle run none.toml\nerror: none.toml" in page.read_text()


def test_a_figure_is_drawn_and_compared(tree, capsys):
    command = "jostle plot scenarios/one.toml --kind series --y throughput -o images/x.png"
    page = write(tree, block(f"figure images/x.png {command}", "![Throughput](images/x.png)\n"))
    before = page.read_text()
    picture = tree / "docs" / "images" / "x.png"
    assert update(tree, "--check") == 1
    assert "there is no picture" in capsys.readouterr().err
    assert update(tree, "--all") == 0
    assert picture.stat().st_size > 2000
    assert page.read_text() == before
    assert update(tree, "--all", "--check") == 0
    page.write_text(before.replace("y throughput", "y rtt"))
    assert update(tree, "--all", "--check") == 1
    assert "docs/images/x.png is not what its command draws now" in capsys.readouterr().err


def test_code_is_no_marker():
    text = (
        "`<!-- number: x -->1<!-- end -->`\n\n```text\n<!-- generated: y -->\n<!-- end -->\n"
        "<!-- number: z -->\n```\n~~~~\n```\n<!-- end -->\n~~~~\n"
    )
    found = markers.parts(Path("page.md"), text)
    assert not any(part.kind for part in found)
    assert "".join(part.with_text("") for part in found) == text


def test_lines_of_an_output():
    from doc_blocks.kinds import _chosen

    assert list(_chosen(list("abcde"), "2-3,5")) == ["…", "b", "c", "…", "e"]
    assert list(_chosen(list("abc"), "1-")) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="the output has 3 lines"):
        list(_chosen(list("abc"), "4"))


def test_files_of_earlier_commands_are_there(tree):
    runner = commands.Runner(tree, jobs=1)
    first = runner.run("jostle run scenarios/one.toml")
    again = runner.run("jostle run scenarios/one.toml")
    assert first is again, "each command is carried out once"
    assert first.status == 0
    store = runner.run("jostle store check", [first])
    assert store.status == 0, store.stderr
    assert runner.run("jostle store check").status == 2, "without an earlier command: no store"
    assert not (tree / ".jostle").exists()
    runner.close()
    assert not first.folder.exists()


def test_only_results_that_a_command_names_are_its_inputs():
    made = Result("a", 0, "", "", Path("/one"), ("mine.toml", ".jostle"))
    other = Result("b", 0, "", "", Path("/two"), ("x.csv",))
    assert commands._used(["jostle", "run", "mine.toml"], [made, other]) == [made]
    assert commands._used(["jostle", "run", "scenarios/one.toml"], [made]) == []
    assert commands._used(["jostle", "fit", "--data=x.csv"], [made, other]) == [other]


def test_an_error_is_remembered_as_well(tree):
    runner = commands.Runner(tree, jobs=1)
    for _ in range(2):
        with pytest.raises(CommandError, match="only `jostle"):
            runner.run("ls")
    runner.close()


def test_hand_written_columns_of_keys_stay(tree):
    page = write(tree, block("keys AckThinning", "max_acks (12): hand\nmax_delay (`1`): a | b\n"))
    assert update(tree) == 0
    text = page.read_text()
    assert "| `max_acks` | whole number | 12 | hand |" in text
    assert "| `1` | a \\| b |" in text
    assert update(tree, "--check") == 0
    page.write_text(text.replace("whole number", "text").replace("| hand |", "| by hand |"))
    assert update(tree) == 0
    assert "| whole number | 12 | by hand |" in page.read_text()


def test_every_command_has_its_options():
    text = "\n".join(tables.option_tables([]))
    for name in ("run", "plot", "compare", "store check"):
        assert f"### `jostle {name}`\n" in text
    assert "| `--seed " in text


def test_pictures_are_compared_by_what_they_show(tmp_path):
    from matplotlib.figure import Figure

    def draw(name, **style):
        figure = Figure(figsize=(3, 2))
        figure.add_subplot().plot([1, 2, 3], [1, 3, 2], **style)
        figure.savefig(tmp_path / name, metadata={"Title" if name[-3:] == "png" else "Date": None})
        return tmp_path / name

    for ending in ("png", "svg"):
        lines, again = draw(f"a.{ending}"), draw(f"b.{ending}")
        dots = draw(f"c.{ending}", linestyle="", marker="o")
        assert pictures.same_picture(lines, again)
        assert not pictures.same_picture(lines, dots)


ENTRY = """
[quick]
commands = ["python make.py"]
files = ["docs/out.csv"]
inputs = ["scenarios/*.toml"]

[days]
commands = ["python make.py FOLDER"]
files = ["docs/out.csv"]
inputs = ["scenarios/one.toml"]
long = true
needs = "a kernel"
engine = ["0.0.1+old"]
"""


@pytest.fixture
def recorded(tree):
    """Return a repository with recorded results, one of an older engine."""
    (tree / "docs" / "results").mkdir()
    (tree / manifest.FILE).write_text(ENTRY)
    (tree / "docs" / "out.csv").write_text("old")
    (tree / "make.py").write_text("open('docs/out.csv', 'w').write('new')")
    return tree


def test_results_are_made_and_recorded(recorded, capsys):
    assert update(recorded, "--results") == 0
    told = capsys.readouterr().out
    assert "not made: days (time not recorded, needs a kernel)" in told
    assert "    python make.py FOLDER" in told
    assert (recorded / "docs" / "out.csv").read_text() == "new"
    entry = manifest.read(recorded)["quick"]
    assert entry["behaviour"] == behaviour.behaviour_hash()
    assert entry["seconds"] >= 0
    assert update(recorded, "--results", "--check", "quick") == 0
    assert capsys.readouterr().err == ""


def test_comments_of_inputs_do_not_matter_and_values_do(recorded, capsys):
    assert update(recorded, "--made", "quick") == 0
    scenario = recorded / "scenarios" / "one.toml"
    scenario.write_text("# A comment.\n" + SCENARIO)
    capsys.readouterr()
    assert update(recorded, "--results", "--check", "--release", "quick") == 0
    scenario.write_text(SCENARIO.replace("5 Mbit/s", "6 Mbit/s"))
    assert update(recorded, "--results", "--check", "quick") == 0
    assert "warning: docs/results/MANIFEST.toml: quick: its inputs have" in capsys.readouterr().err
    assert update(recorded, "--results", "--check", "--release", "quick") == 1


def test_another_behaviour_is_a_warning_and_at_a_release_an_error(recorded, capsys, monkeypatch):
    assert update(recorded, "--made", "quick", "days") == 0
    monkeypatch.setattr(manifest, "behaviour_hash", lambda: "another")
    capsys.readouterr()
    assert update(recorded, "--results", "--check") == 0
    told = capsys.readouterr().err
    assert told.count("warning: ") == 2
    assert "the engine behaves differently: another, when it was made " in told
    assert update(recorded, "--results", "--check", "--release") == 1


def test_a_release_has_one_engine(recorded, capsys):
    assert update(recorded, "--made", "quick") == 0
    assert update(recorded, "--results", "--check") == 0
    assert "days: it was made without a record of inputs_hash" in capsys.readouterr().err
    assert update(recorded, "--results", "--check", "--release") == 1
    assert "and none of 0.0.1+old" in capsys.readouterr().err


def test_a_result_that_needs_values_is_made_by_hand(recorded, capsys):
    assert update(recorded, "--results", "days") == 1
    assert "run `python make.py FOLDER` with your values, then `--made days`" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[a]\ncommands = ["x"]\nfiles = []\n', "a: `inputs` is missing"),
        ('[a]\ncommands = ["x"]\nfiles = ["no.csv"]\ninputs = []\n', "a: no file `no.csv`"),
        ('[a]\ncommands = "x"\nfiles = []\ninputs = []\n', "a: `commands`: one of"),
    ],
)
def test_faults_of_the_manifest_are_told(recorded, capsys, text, told):
    (recorded / manifest.FILE).write_text(text)
    assert update(recorded, "--results", "--check") == 1
    assert told in capsys.readouterr().err


def test_the_behaviour_is_of_some_thirty_runs_and_changes_with_any_number():
    assert 25 <= len(behaviour.specifications()) <= 40
    flow = {"name": "a", "completion_time_s": None}
    flow["phases"] = {"overall": dict.fromkeys(behaviour._FLOW, 1.0)}
    link = {"name": "b", "phases": {"overall": dict.fromkeys(behaviour._LINK, 1.0)}}
    summary = {"flows": [flow], "links": [link]}
    before = behaviour.hash_of([summary])
    flow["phases"]["overall"]["new_measure"] = 5
    assert behaviour.hash_of([summary]) == before, "a new measure changes nothing"
    flow["phases"]["overall"]["rtt_mean_s"] = 1.0 + 1e-12
    assert behaviour.hash_of([summary]) == before
    flow["phases"]["overall"]["rtt_mean_s"] = 1.001
    assert behaviour.hash_of([summary]) != before


def test_the_manifest_here_is_in_order():
    entries = manifest.read(ROOT)
    assert manifest.written(entries) == (ROOT / manifest.FILE).read_text("utf-8")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"enum": [100, 250, 300, 1000]}, "`100`, `250`, `300` or `1000`"),
        ({"const": 3}, "`3`"),
        ({"enum": ["fq", "none"]}, '`"fq"` or `"none"`'),
        ({"enum": ["bulk", "tunnel", "web"]}, "name"),
    ],
)
def test_literals_are_written_as_in_a_scenario(schema: dict[str, object], words: str) -> None:
    assert tables.form(schema, {}) == words
