"""The first line of a command answers its question."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jostle.cli import run_verdict, search_verdicts, status, verdict_lines
from jostle.cli.environment import Environment
from jostle.inference.identify import Identification, RankedCandidate
from jostle.parameter_search.tuning import Score
from jostle.results.measure_samples import MeasureSample
from jostle.results.measures import measure
from jostle.stats import Estimate
from jostle.suites.ranking import RankedController
from test_cli import GRID, SCENARIO

LOGS = Path(__file__).parent.parent / "examples" / "measurement"
COOKBOOK = Path(__file__).parent.parent / "scenarios" / "cookbook"
QUEUES = """
[grid]
"bottleneck.queue.limit" = ["0.5 BDP", "4 BDP"]
"""

First = Callable[..., str]


@pytest.fixture
def first_line(engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> First:
    monkeypatch.chdir(tmp_path)
    Path("plain.toml").write_text(SCENARIO)
    Path("grid.toml").write_text(SCENARIO + GRID)

    def run(*arguments: str) -> str:
        status(arguments, Environment(engine))
        return capsys.readouterr().out.splitlines()[0]

    return run


def test_a_run_says_who_gets_how_much(first_line: First) -> None:
    line = first_line("run", "plain.toml")
    assert re.fullmatch(
        r"(incumbent \(cubic\)|newcomer \(bbr\)) gets [\d.]+ ± [\d.<]+ % of the throughput in "
        r"steady, (incumbent \(cubic\)|newcomer \(bbr\)) [\d.]+ ± [\d.<]+ %; (p95 queueing "
        r"delay [\d.]+ ms; )?3 runs",
        line,
    )
    line = first_line("run", "plain.toml", "--repeats", "1", "--phase", "overall")
    assert " of the throughput in overall, " in line
    assert line.endswith("; 1 run, no confidence interval: repeat with --repeats 10")


@pytest.mark.parametrize(
    ("bbr", "line"),
    [
        ((0.8, 0.9, 0.85), "newcomer (bbr) gets 85 ± 12 % of the throughput in steady, "
                           "incumbent (cubic) 15 ± 12 %"),
        ((0.8, 0.3, 0.5), "the shares of newcomer (bbr) and incumbent (cubic) do not differ "
                          "significantly in steady: 53 ± 63 % and 47 ± 63 % of the throughput"),
        ((0.8,), "newcomer (bbr) gets 80.00 % of the throughput in steady, "
                 "incumbent (cubic) 20.00 %"),
    ],
)  # fmt: skip
def test_a_flow_gets_more_only_if_the_interval_says_so(bbr: tuple[float, ...], line: str) -> None:
    def share(flow: str, controller: str, values: tuple[float, ...]) -> MeasureSample:
        place = {"flow": flow, "controller": controller, "phase": "steady"}
        seeds = tuple(range(len(values)))
        flows = tuple((value,) for value in values)
        return MeasureSample(measure("share"), 0, place, seeds, values, flows, single=True)

    cubic = tuple(1 - value for value in bbr)
    both = [share("incumbent", "cubic", cubic), share("newcomer", "bbr", bbr)]
    said = run_verdict._share_verdict(both, several_phases=True)
    assert re.sub(r"\[[^]]*\]", "[…]", said) == line
    with_third = [*both, share("third", "reno", tuple(0.01 * value for value in bbr))]
    said = run_verdict._share_verdict(with_third, several_phases=False)
    assert said.endswith(", the most of 3")
    assert " in steady" not in said


def test_conditions_that_chance_may_explain_are_not_named(first_line: First) -> None:
    """The two values of the grid are the same controller, with other seeds."""
    Path("alike.toml").write_text(
        SCENARIO + '\n[grid]\n"bottleneck.queue.limit" = ["1 BDP", "1.0001 BDP"]\n'
    )
    line = first_line("run", "alike.toml")
    assert "(1 BDP)" not in line.partition("queueing delay")[0]


def test_applications_come_before_the_share_of_downloads(first_line: First) -> None:
    call = '[[flows]]\nname = "call"\ncontroller = "none"\nrtt = "40 ms"\n'
    call += 'source = { kind = "cbr", codec = "g711" }\n'
    Path("call.toml").write_text(f"{SCENARIO}\n{call}")
    line = first_line("run", "call.toml")
    assert re.match(r"call: (MOS|one-way delay) [\d.]+ ± [\d.<]+.* in steady; ", line)


def test_documents_have_the_answer_after_their_format() -> None:
    found = verdict_lines.add_verdict({"schema": "x/1", "title": "y"}, "yes")
    assert list(found.items()) == [("schema", "x/1"), ("answer", "yes"), ("title", "y")]
    assert list(verdict_lines.add_verdict({"title": "y"}, "yes")) == ["answer", "title"]


@pytest.mark.parametrize("command", ["run", "compare"])
def test_json_documents_contain_the_answer(
    engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(SCENARIO + GRID)
    more = ["--vary", "controller=cubic,bbr"] if command == "compare" else []
    printed = {}
    for kind in ("--json", "--max-rows=3"):
        status([command, "grid.toml", *more, kind], Environment(engine))
        printed[kind] = capsys.readouterr().out
    document = json.loads(printed["--json"])
    found = document["comparisons"][0] if command == "compare" else document
    assert found["answer"] == printed["--max-rows=3"].splitlines()[0]


def _transfer(name: str, goodput_bps: float | None, ping_s: float | None) -> dict[str, Any]:
    pings = None if ping_s is None else {"rtt_p50_s": ping_s}
    measured = {"goodput_bps": goodput_bps}
    return {
        "name": name, "direction": name.partition("-")[0], "measured": measured, "pings": pings
    }  # fmt: skip


def test_a_measurement_names_the_fastest_transfer_of_each_direction() -> None:
    transfers = [
        _transfer("down-cubic", 19.07e6, 0.0867), _transfer("up-reno", 4.6e6, None),
        _transfer("up-bbr", 4.7e6, 0.0576),
    ]  # fmt: skip
    found = {"idle": {"rtt_p50_s": 0.0402}, "transfers": transfers}
    assert verdict_lines.measurement_verdict(found) == (
        "down-cubic: 19.07 Mbit/s, median ping 86.7 ms instead of 40.2 ms at rest; up-bbr: 4.70 "
        "Mbit/s, the fastest of 2 transfers, median ping 57.6 ms instead of 40.2 ms at rest; one "
        "measurement of each, no confidence interval"
    )
    nothing = {"idle": None, "transfers": [_transfer("up", None, None)]}
    assert verdict_lines.measurement_verdict(nothing).startswith("no transfer has a goodput; ")


def test_a_recording_is_summarized(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{second},{10 if second < 5 else 30}\n" for second in range(10))
    Path("link.csv").write_text(f"time_s,down_mbps\n{rows}")
    assert status(["link", "show", "link.csv", "-o", "link.svg"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "down_mbps: mean 20 Mbit/s, 90 % of the time from 10 to 30 Mbit/s; 10 s, no gaps"
    )
    words = ["--fit", "link.csv", "--duration", "1 min", "-o", "long.csv"]
    assert status(["link", "generate", *words]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(
        r"largest difference of the distributions \(Kolmogorov-Smirnov, 0 to 1\): down_mbps 0\.\d+",
        line,
    )


def test_sweeps_are_counted() -> None:
    plans: Any = [
        SimpleNamespace(done=10, total=10, failed=0, left=0),
        SimpleNamespace(done=3, total=9, failed=1, left=5),
    ]
    assert verdict_lines.sweeps_verdict(plans) == "1 of 2 plans finished, 13 of 19 runs, 1 failed"


def test_a_sweep_says_what_differs_most(first_line: First) -> None:
    line = first_line("run", "grid.toml")
    assert re.search(r"(in all conditions|\((cubic|bbr)\)).* in steady; ", line)
    assert line.endswith("2 conditions, 3 runs each")


def test_a_mixed_scenario_says_how_its_conditions_differ(first_line: First) -> None:
    """A share says nothing about a flow that requests little, or has the link for itself."""
    page = 'source = { kind = "request_response", size = "100 kB", think_time = "500 ms" }'
    Path("mixed.toml").write_text(f"{SCENARIO}{page}\n{QUEUES}")
    line = first_line("run", "mixed.toml")
    assert "of the throughput" not in line
    assert re.match(r"newcomer: response time .* ms \(.*\) to .* ms \(.*\) in steady; ", line)
    assert re.search(r"; p95 queueing delay [\d.]+ ms \(.*\) to [\d.]+ ms \(.*\); ", line)


def test_flows_of_several_links_have_no_share(capsys, tmp_path: Path) -> None:
    """Each of the two has all of its link."""
    from jostle import _core

    short = ('duration="3 s"', 'phases.steady=["1 s", "3 s"]', 'flows.upload.start="0 s"')
    overrides = [text for each in short for text in ("--set", each)]
    scenario = str(COOKBOOK / "both-directions.toml")
    status(("run", scenario, *overrides, "--store", "none"), Environment(_core))
    line = capsys.readouterr().out.splitlines()[0]
    assert re.match(r"(download|upload): goodput [\d.]+ Mbit/s \(.*\) to [\d.]+ Mbit/s \(", line)


@pytest.mark.parametrize("files", [("up-cubic", "up-bbr"), ("up-cubic",)])
def test_measurements_of_lone_flows_have_no_share(
    first_line: First, files: tuple[str, ...]
) -> None:
    line = first_line("analyze", *(str(LOGS / f"{name}.log.gz") for name in files))
    if len(files) == 1:
        assert line.endswith(" (cubic): goodput 4.764 Mbit/s; 1 measurement")
        return
    assert line == (
        "one flow each: goodput 4.698 Mbit/s (up-bbr.log.gz) to 4.764 Mbit/s (up-cubic.log.gz); "
        "2 measurements"
    )


def test_failed_runs_are_counted(first_line: First, engine) -> None:
    engine.broken_seeds = (2,)
    assert first_line("run", "plain.toml").endswith("; 2 runs; 1 run failed")


def test_a_comparison_counts_significant_differences(first_line: First) -> None:
    line = first_line("compare", "plain.toml", "plain.toml")
    assert line == "B and A have the same values"
    line = first_line("compare", "grid.toml", "--vary", "controller=cubic,bbr")
    assert re.match(r"\d+ of \d+ values differ significantly \(p < 0.05, Holm, welch\)", line)


def _card(*verdicts: tuple[str, str]) -> Any:
    rows = [
        SimpleNamespace(criterion=SimpleNamespace(id=f"c{number}", level=level), verdict=verdict)
        for number, (level, verdict) in enumerate(verdicts)
    ]
    return SimpleNamespace(rows=rows, suite="small")


@pytest.mark.parametrize(
    ("verdicts", "line"),
    [
        ([("must", "pass"), ("should", "fail")], "PASS: all 1 MUST criteria met"),
        ([("must", "pass"), ("must", "fail")], "FAIL: 1 of 2 MUST criteria not met: c1"),
        ([("must", "pass"), ("must", "unknown")], "UNKNOWN: 1 of 2 MUST criteria not judged: c1"),
        ([("should", "fail")], "FAIL: 1 of 1 SHOULD criteria not met: c0"),
        ([("must", "fail")] * 7, "FAIL: 7 of 7 MUST criteria not met: c0, c1, c2, c3, c4, 2 more"),
    ],
)
def test_a_suite_passes_or_fails(verdicts: list[tuple[str, str]], line: str) -> None:
    assert verdict_lines.suite_verdict(_card(*verdicts)) == line


@pytest.mark.parametrize(
    ("ranked", "line"),
    [
        ([(0.8, 1), (0.67, 2), (0.67, 2)], "a ranks first of 3 with 80 %"),
        ([(0.67, 1), (0.67, 1), (0.5, 3)], "a and b rank equal first of 3 with 67 %"),
        ([(0.67, 1)] * 3, "a, b and c rank equal first of 3 with 67 %"),
        ([(None, 1)] * 2, "no criterion is judged for all 2 controllers: no ranking"),
    ],
)
def test_a_scorecard_names_all_that_rank_first(
    ranked: list[tuple[float | None, int]], line: str
) -> None:
    places = [
        RankedController(name, score, rank, None, None, 0, 0)
        for name, (score, rank) in zip("abc", ranked, strict=False)
    ]
    assert verdict_lines.scorecard_verdict([], places) == line


def test_an_identification_names_the_controller_and_the_next() -> None:
    def identification(none: float, *ranking: tuple[str, float, float]) -> Identification:
        ranked = (RankedCandidate(*one, nearest=cast("Any", None)) for one in ranking)
        return Identification(cast("Any", None), tuple(ranked), none, ())

    ranking = (("bbr", 0.93, 0.01), ("bbr3", 0.04, 0.03))
    line = "bbr (probability 0.93; next: bbr3 0.04, none of these 0.02)"
    assert verdict_lines.identification_verdict(identification(0.02, *ranking)) == line
    # The likeliest answer is the verdict, even if it has less than one half.
    strange = identification(0.4, ("bbr", 0.35, 0.03), ("bbr3", 0.25, 0.04))
    line = "none of these (probability 0.40): bbr comes closest, and is not close"
    assert verdict_lines.identification_verdict(strange) == line
    strange = identification(0.4, ("bbr", 0.31, 0.02), ("modest-bbr", 0.29, 0.0204))
    line = "none of these (probability 0.40): bbr and modest-bbr are about equally close"
    assert verdict_lines.identification_verdict(strange) == line
    # Candidates with the same distance act alike: they are one answer.
    alike = identification(0.1, ("reno", 0.42, 0.01), ("lp", 0.42, 0.01), ("veno", 0.06, 0.02))
    line = "reno or lp (probability 0.84; next: veno 0.06, none of these 0.10)"
    assert verdict_lines.identification_verdict(alike) == line


def test_a_study_without_claims_gives_the_ends_of_its_first_table() -> None:
    def row(name: str, text: str, value: float | None) -> Any:
        ours = Estimate(value, None, None, 1, "s", "mean")
        return SimpleNamespace(id=name, text=text, ours=ours)

    rows = [row("a.x", "A of x", 2.0), row("a.y", "A of y", None), row("b", "B", 9.0)]
    line = verdict_lines._range_of_numbers([*rows, row("a.z", "A of z", 1.0)])
    assert line == "The study makes no claims. A of z: 1.00 s; A of x: 2.00 s."
    line = verdict_lines._range_of_numbers(rows)
    assert line == "The study makes no claims. A of x: 2.00 s."
    line = "The study makes no claims, and no number has a value."
    assert verdict_lines._range_of_numbers(rows[1:2]) == line


def _point(at: int, holds: bool | None, *, is_certain: bool = True) -> Any:
    judgement = SimpleNamespace(holds=holds, certain=is_certain)
    return SimpleNamespace(point=(at,), labels={"rate": str(at)}, judgement=judgement)


@pytest.mark.parametrize(
    ("holds", "line"),
    [
        ([True, True], "the claim holds at all 2 points"),
        ([False, False], "the claim holds at none of 2 points"),
        ([None, None], "the claim is not judged at any point"),
        ([True, False], "the claim stops holding between 0 and 1 of rate"),
        ([False, True], "the claim begins holding between 0 and 1 of rate"),
    ],
)
def test_a_boundary_is_located(holds: list[bool | None], line: str) -> None:
    places = tuple(_point(at, value) for at, value in enumerate(holds))
    found: Any = SimpleNamespace(
        places=places, unknown=(), variables=(SimpleNamespace(key="rate"),)
    )
    assert search_verdicts.boundary_verdict(found) == line
    if None not in holds and len(set(holds)) > 1:
        several: Any = SimpleNamespace(places=places, unknown=(), variables=(1, 2))
        assert search_verdicts.boundary_verdict(several) == "the claim holds at 1 of 2 points"


@pytest.mark.parametrize(
    ("certain", "end"),
    [
        ("yyyy", ""),
        ("nyyn", ""),
        ("ynyy", "; 95 % intervals leave it open at 1"),
        ("ynnn", "; 95 % intervals leave it open from 1 to 3"),
        ("nnnn", "; no point is certain, use --repeats"),
    ],
)
def test_a_boundary_within_intervals_is_one_of_means(certain: str, end: str) -> None:
    holds = [True, True, False, False]
    places = tuple(
        _point(at, value, is_certain=one == "y")
        for at, (value, one) in enumerate(zip(holds, certain, strict=True))
    )
    found: Any = SimpleNamespace(
        places=places, unknown=(), variables=(SimpleNamespace(key="rate"),)
    )
    steps = "the claim stops holding between 1 and 2 of rate"
    line = f"by the means, {steps}{end}" if end else steps
    assert search_verdicts.boundary_verdict(found) == line


@pytest.mark.parametrize(
    ("tuned", "line"),
    [
        (9.0, "best: beta = 0.5: goodput 9 Mbit/s instead of 8 Mbit/s"),
        (7.0, "no values are better than the file's; the best trial has beta = 0.5: "
              "goodput 7 Mbit/s instead of 8 Mbit/s"),
    ],
)  # fmt: skip
def test_tuning_says_what_is_better(tuned: float, line: str) -> None:
    objective = SimpleNamespace(text="goodput", unit="Mbit/s", direction="maximize")
    best = SimpleNamespace(
        trial=SimpleNamespace(labels={"beta": "0.5"}),
        scores={"tuned": None, "fresh": Score((tuned,), ())},
    )
    written = SimpleNamespace(scores={"fresh": Score((8.0,), ())})
    task = SimpleNamespace(objectives=[objective])
    found: Any = SimpleNamespace(found=(best,), written=written, task=task)
    assert search_verdicts.tuning_verdict(found) == line
    for score, said in ((1.0, "no trial holds every constraint"), (None, "no trial could be run")):
        nothing: Any = SimpleNamespace(found=(), trials=(SimpleNamespace(score=score),))
        assert search_verdicts.tuning_verdict(nothing) == said


@pytest.mark.parametrize(
    ("excess", "line"),
    [
        ((0.0, 0.0), "best: beta = 0: goodput 9 Mbit/s instead of 8 Mbit/s; 1 other Pareto-optimal "
                     "trial"),
        ((2.0, 0.0), "best: beta = 1: goodput 9 Mbit/s instead of 8 Mbit/s; 1 other Pareto-optimal "
                     "trial, 1 of which breaks a constraint"),
        ((2.0, 1.0), 'best, but breaks "rtt <= 5 ms" (other seeds): beta = 0: goodput 9 Mbit/s '
                     "instead of 8 Mbit/s; 1 other Pareto-optimal trial, 1 of which breaks a "
                     "constraint"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("are_file_values_feasible", [True, False])
def test_values_that_break_a_constraint_on_other_seeds_are_not_recommended(
    excess: tuple[float, ...], line: str, are_file_values_feasible: bool
) -> None:
    objective = SimpleNamespace(text="goodput", unit="Mbit/s", direction="maximize")
    both = (9.0, 9.0)
    pareto = [
        SimpleNamespace(
            trial=SimpleNamespace(labels={"beta": str(number)}),
            scores={"tuned": Score(both, (0.0, 0.0)), "fresh": Score(both, (0.0, one))},
        )
        for number, one in enumerate(excess)
    ]
    limits = [SimpleNamespace(text="goodput >= 3"), SimpleNamespace(text="rtt <= 5 ms")]
    task = SimpleNamespace(objectives=[objective, objective], constraints=limits)
    written = Score((8.0, 8.0), (0.0, 0.0 if are_file_values_feasible else 1.0))
    found: Any = SimpleNamespace(
        found=pareto, written=SimpleNamespace(scores={"fresh": written}), task=task
    )
    change = "goodput 9 Mbit/s instead of 8 Mbit/s"
    note = "" if are_file_values_feasible else " (the file's values break a constraint)"
    line = line.replace(change, f"{change}, {change}{note}")
    assert search_verdicts.tuning_verdict(found) == line


def test_values_that_hold_the_constraints_are_better_than_values_that_do_not() -> None:
    objective = SimpleNamespace(text="goodput", unit="Mbit/s", direction="maximize")
    best = SimpleNamespace(
        trial=SimpleNamespace(labels={"beta": "0.5"}), scores={"fresh": Score((7.0,), (0.0,))}
    )
    written = SimpleNamespace(scores={"fresh": Score((8.0,), (2.0,))})
    task = SimpleNamespace(objectives=[objective], constraints=[SimpleNamespace(text="x")])
    found: Any = SimpleNamespace(found=(best,), written=written, task=task)
    assert search_verdicts.tuning_verdict(found) == (
        "best: beta = 0.5: goodput 7 Mbit/s instead of 8 Mbit/s (the file's values break a "
        "constraint)"
    )
