"""Controllers written in Python, from the scenario to the result."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import jostle
import jostle.scenario
import pytest
from jostle.cli import status
from jostle.scenario import ScenarioError

EXAMPLES = Path(__file__).parents[1] / "examples"
SCENARIO = """
duration = "{duration}"
[bottleneck]
rate = "10 Mbit/s"
queue = {{ kind = "drop_tail", limit = "1 BDP" }}
[[flows]]
name = "one"
controller = {controller}
rtt = "40 ms"
"""
RENO = '''
class Reno:
    """Reno without a slow start of note."""

    def __init__(self, start=10):
        self.cwnd = start
        self.ssthresh = None

    def on_ack(self, ack):
        if ack.may_grow and ack.cwnd_limited:
            slow = self.ssthresh is None or self.cwnd < self.ssthresh
            self.cwnd += ack.acked if slow else ack.acked / self.cwnd

    def on_congestion_event(self, signal):
        self.ssthresh = max(2, int(self.cwnd / 2))
'''


def write(folder: Path, code: str, controller: str = '"mine:Reno"', duration: str = "5 s") -> Path:
    (folder / "mine.py").write_text(code, "utf-8")
    path = folder / "scenario.toml"
    path.write_text(SCENARIO.format(controller=controller, duration=duration), "utf-8")
    return path


def run_id(path: Path) -> str:
    (result,) = jostle.run(path, allow_code=True).results
    return result.run.run_id


def failure(path: Path) -> str:
    with pytest.warns(RuntimeWarning, match="1 runs failed"):
        results = jostle.run(path, allow_code=True)
    (failed,) = results.failures
    return failed.error


def test_the_example_keeps_its_queue_short_and_shares(tmp_path: Path) -> None:
    for name in ("delay_aimd.py", "delay_aimd.toml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    path = tmp_path / "delay_aimd.toml"
    results = jostle.run(
        jostle.load(path, {"flows.other.controller": "delay_aimd:DelayAimd"}, allow_code=True)
    )
    assert not results.failures
    flows = results.flows
    steady = flows.filter(flows["phase"] == "steady")
    goodput_bps = steady["goodput_bps"].to_list()
    assert sum(goodput_bps) > 0.85 * 20e6
    assert min(goodput_bps) > 0.3 * 20e6
    assert max(steady["rtt_mean_s"].to_list()) < 0.055
    (result,) = results.results
    assert "queueing_delay_s" in set(result.run.internals["quantity"])


def test_the_example_of_aimd_shares_with_cubic(tmp_path: Path) -> None:
    for name in ("aimd.py", "aimd.toml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    results = jostle.run(jostle.load(tmp_path / "aimd.toml", allow_code=True), repeats=1)
    assert not results.failures
    flows = results.flows.filter(results.flows["phase"] == "together")
    assert min(flows["share"].to_list()) > 0.35
    assert sum(flows["goodput_bps"].to_list()) > 0.9 * 20e6


@pytest.mark.parametrize("name", ["aimd:Aimd", "delay_aimd:DelayAimd"])
def test_the_examples_start_with_the_initial_window(name: str) -> None:
    text = SCENARIO.format(controller=f'"{name}"', duration="3 s") + (
        'size = "200 kB"\n[grid]\n"flows.one.initial_window" = [2, 50]\n'
    )
    file = str(EXAMPLES / "windows.toml")
    scenario = jostle.Scenario.from_toml(text, name=file, allow_code=True)
    results = jostle.run(scenario, store=False)
    assert results.notes == ()
    slow, fast = results.flows["completion_time_s"].to_list()
    assert slow > fast + 0.05


@pytest.mark.parametrize(
    ("keys", "ignored"),
    [
        ("initial_window = 20", "initial_window = 20"),
        ('peer_cache = "tcp-cache"', 'peer_cache = "tcp-cache"'),
        ('initial_window = 4\npeer_cache = "tcp-wise"',
         'initial_window = 4 and peer_cache = "tcp-wise"'),
        ("initial_window = 10", None),
        ('peer_cache = "stateful"', None),
    ],
)  # fmt: skip
def test_a_class_that_ignores_the_initial_window_is_noted(
    tmp_path: Path, keys: str, ignored: str | None
) -> None:
    def notes(code: str) -> tuple[str, ...]:
        path = write(tmp_path, code)
        path.write_text(f"{path.read_text('utf-8')}{keys}\n", "utf-8")
        return jostle.load(path, allow_code=True).plan().notes

    start = "self.cwnd = event.initial_window"
    assert notes(f"{RENO}\n    def on_established(self, event):\n        {start}\n") == ()
    found = notes(RENO)
    assert bool(found) == (ignored is not None)
    assert all(f"flow one: mine:Reno ignores {ignored}; " in note for note in found)


def test_a_peer_cache_sets_the_first_window_of_a_class(tmp_path: Path) -> None:
    begin = "\n    def on_established(self, event):\n        self.cwnd = event.initial_window\n"
    begin += "        self.first = float(self.cwnd)\n"
    observe = '\n    def observe(self):\n        return {"first": getattr(self, "first", 10.0)}\n'
    path = write(tmp_path, RENO + begin + observe, duration="10 s")
    cached = 'count = 2\nsize = "1 MB"\none_at_a_time = "100 ms"\npeer_cache = "tcp-cache"\n'
    path.write_text(path.read_text("utf-8") + cached, "utf-8")
    (result,) = jostle.run(path, allow_code=True).results
    first = result.run.internals.filter(result.run.internals["quantity"] == "first")
    windows = dict(first.sort("value").select("flow", "value").rows())
    assert windows["one-1"] == 10
    assert windows["one-2"] > 20


def test_it_is_the_same_as_the_engines_reno(tmp_path: Path) -> None:
    mine, built_in = (
        jostle.run(write(tmp_path, RENO, controller), allow_code=True).flows["goodput_bps"][0]
        for controller in ('"mine:Reno"', '{ name = "reno", slow_start = "standard" }')
    )
    assert mine == pytest.approx(built_in, rel=0.05)


def test_a_run_repeats_and_is_named_after_its_source(tmp_path: Path) -> None:
    path = write(tmp_path, RENO)
    first = run_id(path)
    assert run_id(path) == first
    assert run_id(write(tmp_path, RENO + "# changed\n")) != first
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run_id(write(elsewhere, RENO)) == first


def test_the_source_of_neighbours_counts(tmp_path: Path) -> None:
    code = f"from helper import HALF\n{RENO.replace('/ 2', '* HALF')}"
    (tmp_path / "helper.py").write_text("HALF = 0.5\n", "utf-8")
    first = run_id(write(tmp_path, code))
    (tmp_path / "helper.py").write_text("HALF = 0.9\n", "utf-8")
    assert run_id(write(tmp_path, code)) != first


def test_a_mistake_names_file_and_line_and_stops_only_its_run(tmp_path: Path) -> None:
    broken = RENO.replace(
        "        self.ssthresh = max", "        1 / 0\n        self.ssthresh = max"
    )
    path = write(tmp_path, broken)
    text = path.read_text("utf-8")
    path.write_text(f'{text}\n[grid]\n"flows.one.controller" = ["mine:Reno", "reno"]\n', "utf-8")
    with pytest.warns(RuntimeWarning, match="1 runs failed"):
        results = jostle.run(path, allow_code=True)
    (failed,), (done,) = results.failures, results.results
    line = broken[: broken.index("1 / 0")].count("\n") + 1
    assert f"{tmp_path.resolve() / 'mine.py'}, line {line}, in on_congestion_event" in failed.error
    assert "ZeroDivisionError: division by zero" in failed.error
    assert '"one"' in failed.error
    assert done.run.summary["flows"][0]["controller"] == "reno"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("self.ssthresh = max(2, int(self.cwnd / 2))", "pass", "ssthresh is None"),
        ("self.cwnd = start", "self.cwnd = 'ten'", "cwnd is of type str"),
        ("ack.acked if slow", "float('nan') if slow", "cwnd is NaN"),
        ("self.cwnd = start", "self.recovery = 'none'; self.cwnd = 1", 'it is "transport" or'),
        ("self.cwnd = start", "self.ecn = 'l4s'; self.cwnd = 1", 'ecn is "l4s": it is "none" or'),
        (
            "self.cwnd = start",
            "self.max_burst_packets = 0; self.cwnd = 1",
            "max_burst_packets is 0",
        ),
        (
            "self.cwnd = start",
            "self.min_burst_packets, self.max_burst_packets, self.cwnd = 3, 2, 1",
            "min_burst_packets is 3, more than max_burst_packets, 2",
        ),
        ("class Reno:", "raise ImportError('not today')\nclass Reno:", "line 2, in <module>"),
    ],
)
def test_what_is_not_sound_is_said(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert message in failure(write(tmp_path, RENO.replace(old, new)))


def test_a_wakeup_that_does_not_move_on_ends_the_run(tmp_path: Path) -> None:
    stuck = RENO.replace("self.ssthresh = None", "self.ssthresh = None; self.next_wakeup = 1.0")
    stuck += "\n    def on_wakeup(self, now_s):\n        pass\n"
    assert "next_wakeup has not moved" in failure(write(tmp_path, stuck))


def test_pacing_and_wakeups_are_heeded(tmp_path: Path) -> None:
    paced = RENO.replace("self.ssthresh = None", "self.ssthresh = 2; self.pacing_rate = 2e6")
    paced = paced.replace("self.pacing_rate", "self.next_wakeup = 2.5; self.pacing_rate")
    paced += "\n    def on_wakeup(self, now_s):\n        self.pacing_rate = 4e6\n"
    paced += "        self.next_wakeup = None\n"
    results = jostle.run(write(tmp_path, paced), allow_code=True)
    assert not results.failures
    assert results.flows["goodput_bps"][0] == pytest.approx(3e6, rel=0.1)


DCTCP = '''
class Dctcp:
    """RFC 8257 by `on_ecn_feedback`, as in Linux: one judgement of marks per window of data."""

    ecn = "per-packet"

    def __init__(self):
        self.cwnd, self.ssthresh = 10, None
        self.alpha = 1.0
        self.end, self.before, self.fraction = 0, (0, 0), 0.0
        self.calls = {"agreed": 0.0, "marks": 0.0, "lost": 0.0, "ack_event": 0.0}

    def on_ecn_negotiated(self, feedback):
        self.calls["agreed"] = float(feedback == "per-packet")

    def on_ack_event(self, now_s, slow_path):
        self.calls["ack_event"] += 1

    def on_ecn_feedback(self, event):
        self.calls["marks"] += 1
        if event.first_unacked > self.end:
            delivered = event.delivered - self.before[0]
            marked = event.marked - self.before[1]
            self.alpha += (marked / max(1, delivered) - self.alpha) / 16
            self.end, self.before = event.next_to_send, (event.delivered, event.marked)

    def on_packet_lost(self, event):
        assert event.lost_since_send >= 1 and event.in_flight_at_send >= 1
        self.calls["lost"] += 1

    def on_ack(self, ack):
        if ack.may_grow and ack.cwnd_limited:
            slow = self.ssthresh is None or self.cwnd < self.ssthresh
            self.fraction += ack.acked if slow else ack.acked / self.cwnd
            self.cwnd, self.fraction = self.cwnd + int(self.fraction), self.fraction % 1

    def on_congestion_event(self, signal):
        cut = self.alpha / 2 if signal.signal == "ecn" else 0.5
        self.ssthresh = max(2, int(self.cwnd * (1 - cut)))

    def observe(self):
        return self.calls
'''


def test_marks_and_losses_are_told(tmp_path: Path) -> None:
    def flow(controller: str, queue: str) -> dict[str, Any]:
        path = write(tmp_path, DCTCP, controller, "20 s")
        text = path.read_text("utf-8").replace('kind = "drop_tail", limit = "1 BDP"', queue)
        path.write_text(text.replace('rtt = "40 ms"', 'rtt = "40 ms"\necn = true'), "utf-8")
        (result,) = jostle.run(path, allow_code=True).results
        last = result.run.internals.filter(
            result.run.internals["time_s"] == result.run.internals["time_s"].max()
        )
        flow = result.run.summary["flows"][0]["phases"]["overall"]
        return {**dict(zip(last["quantity"], last["value"], strict=True)), **flow}

    step = 'kind = "step_mark", limit = "10 BDP", threshold = "3 ms"'
    mine, built_in = (flow(name, step) for name in ('"mine:Dctcp"', '"dctcp"'))
    assert mine["agreed"] == 1
    assert mine["marks"] == mine["ack_event"] > 1000
    assert mine["lost"] == 0
    assert mine["goodput_bps"] == pytest.approx(built_in["goodput_bps"], rel=0.02)
    assert mine["rtt_mean_s"] == pytest.approx(built_in["rtt_mean_s"], rel=0.05)
    dropped = flow('"mine:Dctcp"', 'kind = "drop_tail", limit = "0.5 BDP"')
    assert dropped["lost"] >= dropped["retransmitted_packets"] > 0


ASKING = '''
class Asking:
    """Reno that asks for a reduction at 20 packets, and never sees a loss."""

    wants_reduction = False

    def __init__(self):
        self.cwnd, self.ssthresh = 10, 2
        self.ends = 0

    def on_ack(self, ack):
        if ack.may_grow:
            self.cwnd += ack.acked / self.cwnd
        if self.cwnd >= 20:
            self.wants_reduction = True

    def on_congestion_event(self, signal):
        assert signal.signal == "request", signal.signal
        self.ssthresh = 10

    def on_cwr_complete(self, now_s):
        self.ends += 1

    def observe(self):
        return {"ends": float(self.ends), "wants": float(self.wants_reduction)}
'''


def test_a_reduction_can_be_asked_for(tmp_path: Path) -> None:
    results = jostle.run(write(tmp_path, ASKING, '"mine:Asking"', "10 s"), allow_code=True)
    assert not results.failures
    (result,) = results.results
    internals = result.run.internals
    assert internals.filter(internals["quantity"] == "ends")["value"].max() > 5
    assert internals.filter(internals["quantity"] == "wants")["value"].max() == 0
    assert result.run.flows["cwnd_bytes"].max() <= 21 * 1448


IDLING = '''
class Idling:
    """Knows what the transport takes away for silence, and how it sends."""

    max_burst_packets = 1
    pacing_rate = 4e6

    def __init__(self):
        self.cwnd, self.ssthresh = 60, 20
        self.idle = self.restarts = self.slowest = 0

    def on_idle_restart(self, now_s):
        self.restarts += 1

    def on_send(self, event):
        assert event.packets == 1
        self.idle += event.after_idle

    def on_ack(self, ack):
        assert ack.sent_at_s < ack.now_s and ack.prior_delivered <= ack.delivered
        assert ack.total_sent >= ack.delivered
        self.slowest = max(self.slowest, self.ssthresh)

    def on_congestion_event(self, signal):
        self.ssthresh = 20

    def observe(self):
        return {"restarts": float(self.restarts), "ssthresh": float(self.slowest)}
'''


def test_silence_and_bursts_are_the_controllers_too(tmp_path: Path) -> None:
    path = write(tmp_path, IDLING, '"mine:Idling"', "20 s")
    source = '{ kind = "request_response", size = "20 kB", think_time = "2 s" }'
    path.write_text(f"{path.read_text('utf-8')}source = {source}\n", "utf-8")
    results = jostle.run(path, allow_code=True)
    assert not results.failures
    (result,) = results.results
    internals = result.run.internals
    assert internals.filter(internals["quantity"] == "restarts")["value"].max() > 3
    # RFC 2861: three quarters of the window that silence took away.
    assert internals.filter(internals["quantity"] == "ssthresh")["value"].max() == 45


@pytest.mark.parametrize(
    ("controller", "message"),
    [
        ('"mine:Rono"', 'mine.py has no class "Rono" — did you mean "Reno"'),
        ('"yours:Reno"', 'there is no module "yours"'),
        ('"mine:"', "names no class"),
        ('{ name = "mine:Reno", slow_start = "standard" }', "has its own slow start"),
        ('{ name = "mine:Reno", start = [1] }', "accepted: a number, a text"),
        ('{ name = "mine:Reno", start = inf }', "one.controller.start: cannot be this"),
        ('{ name = "mine:Reno", start = 99999999999999999999 }', "accepted: a number, a text"),
        (
            '{ name = "mine:Reno", strat = 4 }',
            'one.controller.strat: the class Reno has no parameter "strat" — did you mean "start"?',
        ),
        ('{ name = "mine:Reno", seed = 4 }', "jostle sets it from the seed of the run"),
    ],
)
def test_scenarios_are_checked(tmp_path: Path, controller: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=r"scenario\.toml") as caught:
        jostle.load(write(tmp_path, RENO, controller), allow_code=True)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("code", "given", "message"),
    [
        ("class Mine(Reno): ...", "start = 4", None),
        ("class Mine(Reno): ...", "q = 4", 'Mine has no parameter "q"'),
        ("class Mine(Reno):\n    def __init__(self, *, w): ...", "", "one.controller.w: missing"),
        ("class Mine(Reno):\n    def __init__(self, *, w=1): ...", "w = 2", None),
        ("class Mine(Reno):\n    def __init__(self, seed): ...", "", None),
        ("class Mine: ...", "q = 4", 'Mine has no parameter "q" — there are none'),
        # Only executing the module would show these parameters.
        ("class Mine(Reno):\n    def __init__(self, **more): ...", "q = 4", None),
        ("class Mine(Reno):\n    def __new__(cls, q): ...", "q = 4", None),
        ("from dataclasses import dataclass as d\n@d\nclass Mine:\n    q: int", "q = 4", None),
        ("from os import PathLike\nclass Mine(PathLike): ...", "q = 4", None),
        ("class Mine(Reno): ...\nMine = print", "q = 4", None),
    ],
)  # fmt: skip
def test_parameters_of_a_class_are_checked_without_running_it(
    tmp_path: Path, code: str, given: str, message: str | None
) -> None:
    ran = tmp_path / "ran"
    source = f"{RENO}\n{code}\nopen({str(ran)!r}, 'w')\n"
    separator = ", " if given else ""
    path = write(tmp_path, source, f'{{ name = "mine:Mine"{separator}{given} }}')
    if message is None:
        jostle.load(path, allow_code=True)
    else:
        with pytest.raises(ScenarioError, match=r"scenario\.toml") as caught:
            jostle.load(path, allow_code=True)
        assert message in str(caught.value)
    assert not ran.exists()


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"mine\.py, line 3"):
        jostle.load(write(tmp_path, "x = 1\n\nclass Reno\n"), allow_code=True)


def test_the_kernel_backend_refuses_it(tmp_path: Path) -> None:
    from jostle.backends.kernel import controllers

    (planned,) = jostle.load(write(tmp_path, RENO), allow_code=True).plan().runs
    problems = controllers.plan(planned.spec["flows"], {}, "virtual").problems
    assert ["Python code" in problem.text for problem in problems] == [True]


def test_nothing_runs_without_leave(tmp_path: Path) -> None:
    path = write(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')\n{RENO}")
    with pytest.raises(ScenarioError, match=r"scenario\.toml:8: .*controller") as caught:
        jostle.run(path)
    assert f"would run the class Reno of {tmp_path.resolve() / 'mine.py'}" in str(caught.value)
    assert "--allow-code" in str(caught.value)
    assert not (tmp_path / "ran").exists()
    assert status(["run", str(path), "--store", "none"]) == 2
    assert status(["run", str(path), "--store", "none", "--allow-code"]) == 0
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "controller",
    [
        '{ name = "subprocess:Popen", args = "touch ran", shell = true }',
        '{ name = "os:system", command = "touch ran" }',
        '{ name = "runpy:run_path", path_name = "mine.py" }',
        '"numpy:ndarray"',
        '"jostle.api:run"',
        '{ name = "{grid}" }',
    ],
)
def test_installed_code_is_out_of_reach(
    tmp_path: Path, controller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, RENO, controller.replace("{grid}", "mine:Reno"))
    if "{grid}" in controller:
        grid = '[grid]\n"flows.one.controller" = ["mine:Reno", "shutil:rmtree"]\n'
        path.write_text(f"{path.read_text('utf-8')}{grid}", "utf-8")
    with pytest.raises(ScenarioError, match="there is no module") as caught:
        jostle.load(path, allow_code=True)
    assert "in the scenario's folder" in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "scenario"
    folder.mkdir()
    path = write(folder, RENO, '"linked:Popen"')
    (folder / "linked.py").symlink_to(subprocess.__file__)
    with pytest.raises(ScenarioError, match="outside of the scenario's folder"):
        jostle.load(path, allow_code=True)


def test_a_scenario_among_installed_packages_runs_none_of_them(tmp_path: Path) -> None:
    packages = Path(sysconfig.get_path("purelib"))
    text = SCENARIO.format(controller='"pip.__main__:Reno"', duration="1 s")
    with pytest.raises(ScenarioError, match="belongs to Python or to an installed package"):
        jostle.scenario.load_text(text, name=str(packages / "scenario.toml"), allow_code=True)


@pytest.mark.parametrize(
    ("code", "controller", "message"),
    [
        ("from subprocess import Popen\n", '"mine:Popen"', 'no class "Popen"'),
        ("import functools\nMade = functools.partial(dict)\n", '"mine:Made"', 'no class "Made"'),
        ("def make(**_):\n    raise SystemExit\n", '"mine:make"', 'no class "make"'),
    ],
)
def test_only_classes_of_the_folder_can_be_named(
    tmp_path: Path, code: str, controller: str, message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        jostle.load(write(tmp_path, RENO + code, controller), allow_code=True)
    assert message in str(caught.value)


def test_a_class_of_another_place_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("from subprocess import Popen\n", "utf-8")
    code = "from beside import Popen\n"
    assert "is no class of" in failure(write(tmp_path, code, '"mine:Popen"'))


def test_what_is_no_controller_is_not_made(tmp_path: Path) -> None:
    code = f"class Loud:\n    def __init__(self):\n        open({str(tmp_path / 'made')!r}, 'w')\n"
    # Only executing the module would show what a decorated class has.
    decorated = f"def same(it):\n    return it\n@same\n{code}"
    error = failure(write(tmp_path, decorated, '"mine:Loud"'))
    assert f"{tmp_path.resolve() / 'mine.py'}: the class Loud has no method `on_ack`" in error
    assert not (tmp_path / "made").exists()


def test_a_missing_ssthresh_is_named_before_the_first_loss(tmp_path: Path) -> None:
    code = """
class Mine:
    cwnd = 10.0

    def on_ack(self, ack): ...

    def on_congestion_event(self, event):
        self.ssthresh = 5.0
"""
    error = failure(write(tmp_path, code, '"mine:Mine"'))
    assert f"{tmp_path.resolve() / 'mine.py'}: a new Mine has no attribute `ssthresh`" in error
    for line in ("ssthresh = None", 'recovery = "controller"'):
        path = write(tmp_path, code.replace("10.0", f"10.0; {line}"), '"mine:Mine"')
        assert not jostle.run(path, allow_code=True).failures


@pytest.mark.parametrize("base", ["", "(Reno)", "(Outer)"])
def test_missing_callbacks_are_named_before_anything_runs(tmp_path: Path, base: str) -> None:
    code = (
        RENO + f"\nclass Outer:\n    cwnd = 5\nclass Half{base}:\n    def on_ack(self, ack): ...\n"
    )
    path = write(tmp_path, code, '"mine:Half"')
    if base == "(Reno)":
        jostle.load(path, allow_code=True)
        return
    with pytest.raises(ScenarioError) as caught:
        jostle.load(path, allow_code=True)
    text = f"{tmp_path.resolve() / 'mine.py'}: the class Half has no method `on_congestion_event`"
    assert text in str(caught.value)


def test_a_class_of_a_neighbour_is_a_controller(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(RENO, "utf-8")
    results = jostle.run(write(tmp_path, "from beside import Reno\n"), allow_code=True)
    assert not results.failures
