"""Small inputs with big demands are refused at once, in little memory, with a bound and a place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from limited import SOUND, Limited

PING = SOUND.replace(
    'controller = "cubic"',
    'controller = "none"\nsource = { kind = "ping", size = "20 B", period = "EVERY" }',
)
QUEUE = 'queue = { kind = "drop_tail", limit = "100 packets" }\n'
LINK = 'rate = "10 Mbit/s"\n'
JITTER = 'jitter = { quantiles = [["0 %", "0 s"], ["100 %", "1 ms"]], correlation = "1 ns" }\n'
OUTAGE = 'outage = { every = "1 ns", durations = "1 ns" }\n'
FLOW = '[[flows]]\nname = "{}"\ncontroller = "cubic"\nrtt = "40 ms"\n'
SEQUEL = '[[flows]]\nname = "{}"\ncontroller = "cubic"\nrtt = "1 ms"\nafter = "a"\n'


def phases(count: int) -> str:
    """A table of phases."""
    return "[phases]\n" + "".join(f'p{i} = ["{i} us", "{i + 1} us"]\n' for i in range(count))


TEXTS = {
    "a ping each nanosecond": (
        PING.replace("EVERY", "1 ns"),
        [":9: ", "flows.a.source.period", '"1 us"'],
    ),
    "pings that are waited for": (
        PING.replace("EVERY", "1 us").replace('name = "a"', 'name = "a"\ncount = 2'),
        ["flows.a.source.period", "10000000"],
    ),
    "bins of 200 ns": (
        'sampling_interval = "200 ns"\n' + SOUND,
        [":1: ", "sampling_interval", "at most 2000000 rows"],
    ),
    "bins of a long run": (
        'sampling_interval = "1.9 s"\n'
        + SOUND.replace("10 s", "9000000 s").replace("10 Mbit", "1 kbit"),
        [":1: ", "sampling_interval", "at most 2000000 rows"],
    ),
    "bins of many flows": (
        'sampling_interval = "10 s"\n' + SOUND.replace("10 s", "9900 s") + "count = 9998\n",
        [":1: ", "sampling_interval", "at most 2000000 rows", "9999 flows and links"],
    ),
    "10,000 flows under each of 100 conditions": (
        SOUND + f'count = 10000\n[grid]\n"flows.a.rtt" = {[f"{i} ms" for i in range(1, 101)]}\n',
        [":11: grid: ", "more than 300000 flows"],
    ),
    "10,000 flows over 5,000 links each": (
        SOUND.replace("[bottleneck]", "").replace(QUEUE, "").replace(LINK, "")
        + f"count = 10000\npath = {[f'l{i}' for i in range(5_000)]}\n"
        + "".join(f'[[links]]\nname = "l{i}"\nrate = "1 Mbit/s"\n{QUEUE}' for i in range(5_000)),
        ["flows.a.path", "50000000 links on the ways of all flows — at most 1000000"],
    ),
    "a way of 140,000 unknown links": (
        SOUND.replace("[bottleneck]", '[[links]]\nname = "l"')
        + f"path = {[str(i) for i in range(100_000)]}\n",
        ["flows.a.path", 'there is no link "0"'],
    ),
    "1,000 points that no constraint leaves": (
        SOUND + '[sample]\npoints = 1000\nwhere = ["flows.a.rtt < 2 ms"]\n'
        '"flows.a.rtt" = { from = "1 ms", to = "10000 s" }\n',
        ["sample.where", "points that were drawn satisfy all of these"],
    ),
    "every ACK at 100 Gbit/s": (
        'record = "acks"\n' + SOUND.replace("10 Mbit/s", "100 Gbit/s"),
        [":1: ", "record", "50000000"],
    ),
    "jitter each nanosecond": (
        SOUND.replace(LINK, LINK + JITTER),
        [":5: ", "bottleneck.jitter.correlation", '"1 us"'],
    ),
    "outages each nanosecond": (
        SOUND.replace(LINK, LINK + OUTAGE),
        [":5: ", "bottleneck.outage.every", '"1 us"'],
    ),
    "updates each nanosecond": (
        SOUND.replace('"drop_tail"', '"pie", update = "1 ns"'),
        [":5: ", "bottleneck.queue.update", "1 us"],
    ),
    "more repeats than a million": ("repeats = 1000001\n" + SOUND, [":1: ", "repeats", "1000000"]),
    "a million repeats of two conditions": (
        "repeats = 1000000\n" + SOUND + '[grid]\n"flows.a.rtt" = ["1 ms", "2 ms"]\n',
        ["repeats", "500000"],
    ),
    "a dotted key of 40 kB": (".".join(["a"] * 20_000) + " = 1\n" + SOUND, ["nested too deeply"]),
    "a dotted key before what is no TOML": (
        ".".join(["a"] * 20_000) + " = 1\n=\n" + SOUND,
        ["TOML"],
    ),
    "a time with a hundred thousand blanks": (
        SOUND.replace('"40 ms"', f'"40{" " * 100_000}ms x"'),
        [":9: ", "flows.a.rtt", "100006 characters"],
    ),
    "20,000 unknown keys": (
        SOUND + "".join(f"k{i} = 1\n" for i in range(20_000)),
        ["flows.0", "20003 keys — at most 5000"],
    ),
    "5,000 unknown keys": (
        SOUND + "".join(f"k{i} = 1\n" for i in range(4_900)),
        [":10: ", "flows.a.k0: unknown key"],
    ),
    "10,000 flows with an unknown key": (
        SOUND + "".join(FLOW.format(i) + "k = 1\n" for i in range(10_000)),
        ["flows.0.k: unknown key"],
    ),
    "9,900 flows that wait for one that has no end": (
        SOUND + "".join(SEQUEL.format(i) for i in range(9_900)),
        [":14: ", 'flows.0.after: "a" has no end'],
    ),
    "20,000 phases": (SOUND + phases(20_000), ["phases", "at most 5000"]),
    "2,000 phases": (SOUND + phases(2_000), ["phases", "1000"]),
    "a hundred thousand phases": (SOUND + phases(100_000), [":10: phases: ", "larger than 1 MB"]),
    "ten thousand flows and one": (
        SOUND.replace('name = "a"', 'name = "a"\ncount = 10000') + FLOW.format("b"),
        [":8: ", "flows.a.count", "10001 flows in all — at most 10000"],
    ),
    "a hundred thousand flows": (
        SOUND.replace('name = "a"', 'name = "a"\ncount = 100000'),
        [":8: ", "flows.a.count", "at most 10000"],
    ),
    "60,000 values of a grid": (
        SOUND + f'[grid]\n"flows.a.rtt" = {[f"{i} us" for i in range(1, 60_001)]}\n',
        [":11: ", 'grid."flows.a.rtt"', "60000 combinations are more than 10000"],
    ),
    "arrays nested 400 deep": ("x = " + "[" * 400 + "]" * 400 + "\n" + SOUND, ["too deeply"]),
    "tables nested 400 deep": ("x = " + "{a=" * 400 + "1" + "}" * 400 + "\n", ["too deeply"]),
    "a number of 5,000 digits": ("seed = " + "9" * 5_000 + "\n" + SOUND, ["digits"]),
    "a number of 900,000 hexadecimal digits": (
        "seed = 0x" + "f" * 900_000 + "\n" + SOUND,
        [":1: ", "seed", "300 digits"],
    ),
    "40,000 numbers beyond 64 bits": (
        f"x = [{'99999999999999999999, ' * 40_000}]\n" + SOUND,
        ["64 bits"],
    ),
    "a title of 900,000 characters": (
        f'title = "{"x" * 900_000}"\n' + SOUND,
        [":1: ", "title", "900000 characters — at most 1000"],
    ),
    "a controller of 900,000 characters": (
        SOUND.replace('"cubic"', f'"{"x" * 900_000}"'),
        [":8: ", "flows.a.controller", "there is no controller"],
    ),
    "a key of 900,000 characters": (f"{'x' * 900_000} = 1\n" + SOUND, [":1: ", "unknown key"]),
    "a text that never ends": ("x = " + '"\\' * 100_000 + "\n" + SOUND, ["TOML"]),
    "a megabyte of quotes": ("x = " + '\\"""' * 200_000 + "\n" + SOUND, ["TOML"]),
}


@pytest.mark.parametrize("what", TEXTS)
def test_a_small_scenario(what: str, limited: Limited, tmp_path: Path) -> None:
    text, expected = TEXTS[what]
    (tmp_path / "s.toml").write_text(text)
    code, said = limited(["run", "--store", "none", "s.toml"], tmp_path)
    assert code == 2, said[-2000:]
    assert [part for part in expected if part not in said] == [], said[:2000]
    assert "Traceback" not in said
    # A foreign file is not quoted at length.
    assert all(len(line) < 2_000 for line in said.splitlines())


def test_more_repeats_on_the_command_line_than_results_can_be_kept_of(
    limited: Limited, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(SOUND)
    for command in (
        ["run", "s.toml", "--store", "none"],
        ["study", "run", "geo-solo", "-o", "page/"],
    ):
        code, said = limited([*command, "--repeats", str(10**9)], tmp_path)
        assert code == 2, said[-2000:]
        assert "repeats: 1000000000" in said, said
        assert "too many runs — at most" in said, said


HUGE_BYTES = 600 * 10**6


def spoil(path: Path, how: str) -> str:
    """Put something else where a file should be; return what is said of it."""
    if how == "device":
        path.symlink_to("/dev/zero")
        return "not a regular file"
    if how == "pipe":
        os.mkfifo(path)
        return "not a regular file"
    with path.open("wb") as file:
        file.truncate(HUGE_BYTES)
    return "larger than"


SPOILT = pytest.mark.parametrize("how", ["device", "pipe", "huge"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4294967295\n", "4.29e+07 steps: at most 2000000"),
        ("icmp_seq=1 " * 80_000, "no reply"),
        (
            "".join(f"64 bytes: icmp_seq={n} ttl=57 time=12 ms\n" for n in (1, 999999999)),
            "999999999 pings: at most 2000000 are read",
        ),
        (
            "".join(f"64 bytes: icmp_seq={n % 2 * 30000} time=1 ms\n" for n in range(20_000)),
            "pings: at most 2000000 are read",
        ),
    ],
)
def test_a_small_recording(text: str, expected: str, limited: Limited, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text)
    (tmp_path / "s.toml").write_text(SOUND.replace(LINK, 'rate = { file = "x" }\n'))
    code, said = limited(["run", "--store", "none", "s.toml"], tmp_path)
    assert (code, expected in said) == (2, True), said


@SPOILT
def test_what_is_no_scenario(how: str, limited: Limited, tmp_path: Path) -> None:
    expected = spoil(tmp_path / "s.toml", how)
    code, said = limited(["run", "--store", "none", "s.toml"], tmp_path)
    assert (code, expected in said) == (2, True), said


@SPOILT
def test_what_is_no_trace(how: str, limited: Limited, tmp_path: Path) -> None:
    expected = spoil(tmp_path / "x", how)
    (tmp_path / "s.toml").write_text(SOUND.replace(LINK, 'trace = "x"\n'))
    code, said = limited(["run", "--store", "none", "s.toml"], tmp_path)
    assert (code, expected in said) == (2, True), said
    assert "s.toml:4: bottleneck.trace: " in said


@SPOILT
def test_what_is_no_table(how: str, limited: Limited, tmp_path: Path) -> None:
    expected = spoil(tmp_path / "x", how)
    controller = 'controller = { name = "remy", table = "x" }'
    (tmp_path / "s.toml").write_text(SOUND.replace('controller = "cubic"', controller))
    code, said = limited(["run", "--store", "none", "s.toml"], tmp_path)
    assert (code, expected in said) == (2, True), said
    assert "s.toml:8: flows.a.controller.table: " in said


@SPOILT
def test_what_is_no_python_module(how: str, limited: Limited, tmp_path: Path) -> None:
    spoil(tmp_path / "mine.py", how)
    (tmp_path / "s.toml").write_text(SOUND.replace('"cubic"', '"mine:Mine"'))
    code, said = limited(["run", "--store", "none", "--allow-code", "s.toml"], tmp_path)
    assert (code, "flows.a.controller" in said) == (2, True), said


@SPOILT
def test_what_is_no_study(how: str, limited: Limited, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    spoil(tmp_path / "mine" / "study.toml", how)
    code, said = limited(["study", "run", "./mine", "-o", "page/"], tmp_path)
    assert (code, "Traceback" in said) == (2, False), said


@SPOILT
def test_what_is_no_link_file(how: str, limited: Limited, tmp_path: Path) -> None:
    expected = spoil(tmp_path / "l.toml", how)
    code, said = limited(["link", "emulate", "l.toml", "--", "true"], tmp_path)
    assert (code, expected in said) == (2, True), said


@SPOILT
def test_what_is_no_manifest(how: str, limited: Limited, tmp_path: Path) -> None:
    short = SOUND.replace("10 s", "100 ms")
    (tmp_path / "s.toml").write_text(short)
    from jostle.scenario import load_text
    from jostle.store.store import Store

    store = Store(tmp_path / "store")
    from jostle.backends.sim import SimBackend

    run = store.put(SimBackend().run(load_text(short).plan().runs[0].spec))
    manifest = tmp_path / "store" / run.run_id / "manifest.json"
    manifest.unlink()
    expected = spoil(manifest, how)
    # It is moved aside, and the run carried out anew.
    with pytest.warns(UserWarning, match=f"(?i){expected}"):
        assert Store(tmp_path / "store").get(run.run_id) is None


def test_a_run_without_room_ends_alone(limited: Limited, tmp_path: Path) -> None:
    # 500,000 bins of a flow and a link take 266 MB.
    text = 'sampling_interval = "20 us"\n' + SOUND.replace('rate = "10', 'rate = "1')
    grid = '[grid]\nsampling_interval = ["20 us", "1 s"]\n'
    (tmp_path / "s.toml").write_text(text + grid)
    command = ["run", "--store", "none", "--jobs", "1", "s.toml"]
    code, said = limited(command, tmp_path, cpu_s=60, memory_bytes=2 * 10**8)
    assert code == 1, said
    assert "there is no room in memory for the series of this run, 1000000 rows" in said
    assert said.count("run failed (") == 1
    assert "cubic" in said


SECRET = "hunter2hunter2:$6$abcdef:\n"


@pytest.mark.parametrize(
    "keys",
    [
        'trace = "{}"',
        'rate = {{ file = "{}" }}',
        'rate = {{ file = "{}", where = {{ x = "1" }} }}',
        'rate = "1 Mbit/s"\ndelay = {{ file = "{}" }}',
    ],
)
@pytest.mark.parametrize("secret", [SECRET, SECRET.replace(":", ",")])
def test_the_content_of_what_is_no_trace_is_not_printed(
    keys: str, secret: str, limited: Limited, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(secret * 3)
    (tmp_path / "s.toml").write_text(SOUND.replace(LINK, keys.format(tmp_path / "secret") + "\n"))
    code, said = limited(["run", "--store", "none", "s.toml"], tmp_path)
    assert (code, "line 1" in said or "where is of tables" in said) == (2, True), said
    assert "hunter2" not in said, said
    assert "abcdef" not in said, said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rtt =", 'size = {{ distribution = "empirical", file = "{}" }}\nrtt ='),
        ("rtt =", 'arrivals = {{ file = "{}" }}\nsize = "1 kB"\nrtt ='),
        ("rtt =", 'source = {{ kind = "trace", file = "{}" }}\nrtt ='),
        ('controller = "cubic"', 'controller = {{ name = "remy", table = "{}" }}'),
    ],
)
def test_the_content_of_what_is_no_file_of_a_flow_is_not_printed(
    old: str, new: str, limited: Limited, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "s.toml").write_text(SOUND.replace(old, new.format(tmp_path / "secret")))
    code, said = limited(["run", "--store", "none", "s.toml"], tmp_path)
    assert (code, "secret" in said) == (2, True), said
    assert "hunter2" not in said, said


@pytest.mark.parametrize("text", [SECRET, f"{SECRET} x", f'"{SECRET}"', f"[{SECRET}"])
def test_the_content_of_what_is_no_graph_is_not_printed(
    text: str, limited: Limited, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(text)
    graph = f'duration = "1 s"\n[graph]\nfile = "{tmp_path / "secret"}"\nqueue = "codel"\n'
    (tmp_path / "s.toml").write_text(f'{graph}{FLOW.format("a")}from = "x"\nto = "y"\n')
    code, said = limited(["run", "--store", "none", "s.toml"], tmp_path)
    assert (code, "graph.file" in said) == (2, True), said
    assert "hunter2" not in said, said
