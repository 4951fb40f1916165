"""Every place where a file could name code, attacked: nothing runs without --allow-code."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import py_compile
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import hostile_folder
import jostle
import pytest
from jostle.cli import status
from jostle.quic.recipes import Programs, recipes
from jostle.safe_io.code_consent import (
    ALLOW_CODE,
    CODE_SOURCES,
    ConsentError,
    Rule,
    admit,
    require_consent,
)
from limited import Limited

HERE = Path(__file__).parent
# With -P, which children inherit, there would be less to attack.
JOSTLE = [sys.executable, str(Path(sysconfig.get_path("scripts"), "jostle"))]
STORE = Path(".jostle", "store")
EVIL = """
from pathlib import Path

Path(__file__).with_name("ran").touch()


class Evil:
    def __init__(self):
        self.cwnd = 10
        self.ssthresh = None

    def on_ack(self, ack): ...

    def on_congestion_event(self, signal):
        self.ssthresh = self.cwnd
"""
SCENARIO = """duration = "1 s"
[bottleneck]
rate = "5 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "download"
controller = CONTROLLER
rtt = "20 ms"
"""
CLASS = '"evil:Evil"'
LINE = 7
"""Of the controller in the scenario."""


@dataclass(frozen=True)
class Attack:
    """A command that opens a hostile file.

    Attributes
    ----------
    words
        The command, without `jostle`.
    names
        What the refusal must contain beside what would run.
    runs
        Whether the code runs here once it is allowed: the attack is a real one.
    succeeds
        Whether the command does what it is for, without the code.
    started
        Whether a process that starts is attacked; others are forked from one that has started.
    """

    words: list[str]
    names: list[str] = field(default_factory=list)
    runs: bool = True
    succeeds: bool = False
    started: bool = False


def write_scenario(folder: Path, controller: str = CLASS, more: str = "") -> str:
    (folder / "evil.py").write_text(EVIL, "utf-8")
    text = SCENARIO.replace("CONTROLLER", controller) + more
    (folder / "evil.toml").write_text(text, "utf-8")
    return "evil.toml"


def write_programs(folder: Path, table: str) -> str:
    more = f'transport = {{ kind = "quic", implementation = {table} }}\n'
    return write_scenario(folder, '"cubic"', more)


def copy_data(folder: Path, kind: str) -> Path:
    """Copy the small study or suite of the tests, with the hostile module inside."""
    there = folder / kind / "small"
    shutil.copytree(HERE / kind / "small", there)
    (there / "evil.py").write_text(EVIL, "utf-8")
    return there


def by_python_controller(folder: Path) -> Attack:
    return Attack(["run", write_scenario(folder)], [f"evil.toml:{LINE}:", "the class Evil of /"])


def by_quic_programs(folder: Path) -> Attack:
    # The case of the audit.
    table = (
        '{ name = "sh", server = ["/bin/sh", "-c", "touch ran; sleep 1", "{address}"], '
        'client = ["/bin/sh", "-c", "sleep 2"] }'
    )
    file = write_programs(folder, table)
    words = ["run", file, "--backend", "kernel", "--store", "none"]
    return Attack(words, ["evil.toml:9:", "/bin/sh -c 'touch ran; sleep 1'"], runs=False)


def by_recipe_words(folder: Path) -> Attack:
    recipe = recipes()["ngtcp2"]
    server = json.dumps([*recipe.server, "--log=/etc/cron.d/evil"])
    table = f'{{ name = "ngtcp2", server = {server}, client = {json.dumps(recipe.client)} }}'
    names = ["evil.toml:9:", "--log=/etc/cron.d/evil"]
    return Attack(["run", write_programs(folder, table)], names, runs=False)


def by_grid(folder: Path) -> Attack:
    more = f'[grid]\n"flows.download.controller" = ["reno", {CLASS}]\n'
    return Attack(["run", write_scenario(folder, '"reno"', more)], ["evil.toml:10:"])


def by_tune(folder: Path) -> Attack:
    more = '[grid]\n"bottleneck.rate" = ["5 Mbit/s", "6 Mbit/s"]\n'
    file = write_scenario(folder, more=more)
    given = [
        "--vary",
        "flows.download.rtt=['10 ms', '20 ms']",
        "--maximize",
        "goodput of download",
    ]
    return Attack(["search", "tune", file, *given, "--trials", "1"], [f"evil.toml:{LINE}:"])


def by_boundary(folder: Path) -> Attack:
    more = '[sample]\npoints = 8\n"bottleneck.rate" = { from = "1 Mbit/s", to = "9 Mbit/s" }\n'
    file = write_scenario(folder, more=more)
    claim = ["--claim", "goodput of download >= 1 Mbit/s", "--points", "8"]
    return Attack(["search", "boundary", file, *claim], [f"evil.toml:{LINE}:"])


def by_fit(folder: Path) -> Attack:
    write_scenario(folder, '"reno"')
    assert status(["run", str(folder / "evil.toml"), "--store", str(folder / STORE)]) == 0
    (plan,) = (folder / STORE / ".plans").glob("*.json")
    measured = json.loads(plan.read_text("utf-8"))["runs"][0][2]
    file = write_scenario(folder)
    given = ["--data", measured, "--vary", "bottleneck.rate", "--trials", "10"]
    return Attack(["fit", file, *given], [f"evil.toml:{LINE}:"])


def by_advise(folder: Path) -> Attack:
    file = write_scenario(folder)
    given = ["--goal", "bulk", "--candidates", "reno", "--repeats", "2", "--senders", "none"]
    return Attack(["advise", file, *given], [f"evil.toml:{LINE}:"])


def by_study(folder: Path) -> Attack:
    there = copy_data(folder, "studies")
    text = (there / "transfer.toml").read_text("utf-8")
    assert '"reno"' in text
    (there / "transfer.toml").write_text(text.replace('"reno"', CLASS), "utf-8")
    return Attack(["study", "run", "./studies/small"], ["transfer.toml:"])


def by_coverage(folder: Path) -> Attack:
    made = by_study(folder)
    # A table of figures needs no runs, so nothing of the class is executed.
    return Attack(["study", "coverage", made.words[2]], made.names, runs=False)


def by_setup(folder: Path) -> Attack:
    there = copy_data(folder, "studies")
    text = (there / "study.toml").read_text("utf-8")
    table = f"""
[[setups]]
id = "evil"
title = "another sender"
text = "The sender is another."
support = [{{ quote = "another", source = "section 1" }}]
changes = [{{ set = {{ "flows.download.controller" = {CLASS} }}, experiments = ["transfer"] }}]
"""
    (there / "study.toml").write_text(text + table, "utf-8")
    return Attack(["study", "run", "./studies/small"], ["study.toml:"])


def by_suite(folder: Path) -> Attack:
    there = copy_data(folder, "suites")
    other = f'\n[[flows]]\nname = "other"\ncontroller = {CLASS}\nrtt = "20 ms"\n\n[grid]'
    text = (there / "alone.toml").read_text("utf-8")
    (there / "alone.toml").write_text(text.replace("\n[grid]", other), "utf-8")
    words = ["suite", "run", "./suites/small", "--controller", "reno", "--quick"]
    return Attack(words, ["alone.toml:"])


def by_subject(folder: Path) -> Attack:
    copy_data(folder, "suites")
    (folder / "evil.py").write_text(EVIL, "utf-8")
    words = ["suite", "run", "./suites/small", "--controller", "evil.py:Evil", "--quick"]
    return Attack(words, ["the class Evil of"])


def by_resumed_sweep(folder: Path) -> Attack:
    file = write_scenario(folder)
    # Long enough to be stopped before its end.
    words = [
        *JOSTLE,
        "run",
        file,
        ALLOW_CODE,
        "--detach",
        "--repeats",
        "1000",
        "--set",
        "duration=20 s",
    ]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    for _ in range(600):
        if (folder / "ran").exists():
            break
        time.sleep(0.05)
    subprocess.run([*JOSTLE, "sweep", "stop"], cwd=folder, check=True, capture_output=True)
    (folder / "ran").unlink()
    return Attack(["sweep", "resume"])


def by_stored_sweep(folder: Path) -> Attack:
    place = folder / STORE / ".sweeps" / "0123abcd"
    place.mkdir(parents=True)
    write_scenario(folder)
    command = {
        "format": "jostle.sweep/1",
        "words": ["evil.toml", ALLOW_CODE],
        "folder": str(folder),
        "files": {},
        "host": "there",
        "process": 1,
        "began_s": 1.0,
    }
    (place / "command.json").write_text(json.dumps(command), "utf-8")
    return Attack(["sweep", "resume", "0123abcd", ALLOW_CODE], ["0123abcd"])


def by_stored_run(folder: Path) -> Attack:
    file = write_scenario(folder)
    scenario = str(folder / file)
    assert status(["run", scenario, ALLOW_CODE, "--store", str(folder / STORE)]) == 0
    (folder / "ran").unlink()
    # Another process has the specification, and nothing that was admitted.
    program = (
        "import json, jostle; from jostle.backends import SimBackend; "
        "spec = json.loads(open('spec.json').read()); SimBackend().run(spec)"
    )
    plan = jostle.load(scenario, allow_code=True).plan()
    (folder / "spec.json").write_text(json.dumps(plan.runs[0].spec), "utf-8")
    assert not (folder / "ran").exists(), "reading a scenario runs nothing"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=folder, check=False, capture_output=True
    )
    assert b"is not known here" in done.stderr
    return Attack(["store", "check"], runs=False)


def by_stored_plan(folder: Path) -> Attack:
    write_scenario(folder, '"reno"')
    assert status(["run", str(folder / "evil.toml"), "--store", str(folder / STORE)]) == 0
    (plan,) = (folder / STORE / ".plans").glob("*.json")
    document = json.loads(plan.read_text("utf-8"))
    document["title"] = "__import__('os').system('touch ran')"
    plan.write_text(json.dumps(document), "utf-8")
    return Attack(["store", "check"], runs=False)


def by_kernel_module(folder: Path) -> Attack:
    # A module beside the scenario is never loaded, only one that the user has compiled.
    (folder / "evil.ko").write_bytes(b"\x7fELF")
    words = ["run", write_scenario(folder, '"kernel:evil"'), "--backend", "kernel"]
    return Attack(words, [f"evil.toml:{LINE}:", "evil inside a kernel"], runs=False)


def by_crate(folder: Path) -> Attack:
    crate = folder / "evil"
    (crate / "src").mkdir(parents=True)
    (crate / "src" / "lib.rs").touch()
    (crate / "Cargo.toml").write_text('[package]\nname = "evil"\n', "utf-8")
    (crate / "build.rs").write_text('fn main() { std::fs::File::create("ran").unwrap(); }', "utf-8")
    # It would be compiled for half a minute first; tests/test_controller_crates.py lets one run.
    words = ["run", write_scenario(folder, '"crate:evil"')]
    return Attack(words, [f"evil.toml:{LINE}:", "the crate /", "evil, and what"], runs=False)


class Pickled:
    """Becomes a call when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch ran",)


def file_of_parameter(folder: Path, name: str, parameter: str) -> Attack:
    (folder / "data").write_bytes(pickle.dumps(Pickled()))
    controller = f'{{ name = "{name}", {parameter} = "data" }}'
    return Attack(["run", write_scenario(folder, controller), ALLOW_CODE], [parameter])


def by_policy(folder: Path) -> Attack:
    return file_of_parameter(folder, "learned", "policy")


def by_remy_table(folder: Path) -> Attack:
    return file_of_parameter(folder, "remy", "table")


def by_graph(folder: Path) -> Attack:
    text = "graph [ node [ id 0 label \"__import__('os').system('touch ran')\" ] ]"
    (folder / "evil.gml").write_text(text, "utf-8")
    file = "evil.toml"
    scenario = SCENARIO.replace("CONTROLLER", '"reno"').replace('rtt = "20 ms"', "")
    network = scenario.replace("[bottleneck]", '[graph]\nfile = "evil.gml"')
    (folder / file).write_text(network + 'from = "a"\nto = "b"\n', "utf-8")
    return Attack(["run", file, ALLOW_CODE], ["evil.toml"])


def by_trace(folder: Path) -> Attack:
    (folder / "evil.csv").write_text("time,rate\n0,__import__('os').system('touch ran')\n", "utf-8")
    file = write_scenario(folder, '"reno"')
    words = ["run", file, "--set", "bottleneck.rate={ trace = 'evil.csv' }", ALLOW_CODE]
    return Attack(words, ["bottleneck.rate"])


def by_capture(folder: Path) -> Attack:
    (folder / "evil.pcap").write_bytes(pickle.dumps(Pickled()))
    return Attack(["analyze", "evil.pcap"], ["evil.pcap"])


def by_claim_file(folder: Path) -> Attack:
    more = '[sample]\npoints = 8\n"bottleneck.rate" = { from = "1 Mbit/s", to = "9 Mbit/s" }\n'
    file = write_scenario(folder, '"reno"', more)
    measure = "__import__('os').system('touch ran')"
    (folder / "claim.toml").write_text(
        f'parts = [{{ left = {{ measure = "{measure}" }}, relation = "above", right = 1 }}]\n',
        "utf-8",
    )
    return Attack(["search", "boundary", file, "--claim", "claim.toml"], ["no measure"])


def by_distribution(folder: Path) -> Attack:
    (folder / "sizes.cdf").write_text("__import__('os').system('touch ran') 1\n", "utf-8")
    more = (
        'source = { kind = "request_response", think_time = "1 s", '
        'size = { distribution = "empirical", file = "sizes.cdf" } }\n'
    )
    return Attack(["run", write_scenario(folder, '"reno"', more), ALLOW_CODE], ["sizes.cdf"])


def by_workload(folder: Path) -> Attack:
    (folder / "flows.txt").write_text("0 __import__('os').system('touch ran')\n", "utf-8")
    more = 'source = { kind = "fixed", size = "1 kB" }\narrivals = { file = "flows.txt" }\n'
    return Attack(["run", write_scenario(folder, '"reno"', more), ALLOW_CODE], ["flows.txt"])


def by_template(folder: Path) -> Attack:
    code = "{{ cycler.__init__.__globals__.os.system('touch ran') }}{% include 'evil.html' %}"
    (folder / "evil.html").write_text(code, "utf-8")
    file = write_scenario(folder, '"reno"')
    text = (folder / file).read_text("utf-8")
    (folder / file).write_text(f'title = "{code}"\n{text}', "utf-8")
    return Attack(["run", file, "-o", "report.html"], succeeds=True)


def by_byte_code(folder: Path) -> Attack:
    file = write_scenario(folder)
    (folder / "evil.py").write_text(EVIL.replace(".touch()", ""), "utf-8")
    (folder / "other.py").write_text(EVIL, "utf-8")
    py_compile.compile(
        str(folder / "other.py"),
        importlib.util.cache_from_source(str(folder / "evil.py")),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    return Attack(["run", file, ALLOW_CODE], succeeds=True, started=True)


def by_quic_recipe(folder: Path) -> Attack:
    hostile_folder.fill(folder)
    return Attack(["setup", "quic", "mine"], ["no recipe `mine`"], started=True)


def by_environment(folder: Path) -> Attack:
    hostile_folder.fill(folder)
    return Attack(["setup", "status"], succeeds=True, started=True)


def by_settings(folder: Path) -> Attack:
    hostile_folder.fill(folder)
    return Attack(
        ["run", write_scenario(folder, '"reno"'), "-o", "figures/"], succeeds=True, started=True
    )


def by_installed_module(folder: Path) -> Attack:
    hostile_folder.fill(folder)
    return Attack(
        ["run", write_scenario(folder, '"reno"'), "--executor", "processes"],
        succeeds=True,
        started=True,
    )


def by_network_file(folder: Path) -> Attack:
    link = 'rtt = "20 ms"\n' + SCENARIO[SCENARIO.index("[bott") : SCENARIO.index("[[flows")]
    commands = '[[commands]]\nhost = "server"\nserve = "touch ran"\n'
    commands += '[[commands]]\nhost = "client"\nrun = "touch ran"\n'
    (folder / "evil.toml").write_text(link + commands, "utf-8")
    # What runs in the guest writes to a folder of the guest.
    return Attack(["exec", "evil.toml"], ["`touch ran` on server"], runs=False)


def by_link_file(folder: Path) -> Attack:
    text = 'rate = "5 Mbit/s"\ncommand = ["touch", "ran"]\n'
    (folder / "LINK.toml").write_text(text, "utf-8")
    return Attack(["link", "emulate", "LINK.toml", "--", "true"], ["command"])


ATTACKS: dict[str, Callable[[Path], Attack]] = {
    source.name: globals()[f"by_{source.name.replace('-', '_')}"] for source in CODE_SOURCES
}
CONSENTED = [source.name for source in CODE_SOURCES if source.rule is Rule.CONSENT]
NEVER = [source.name for source in CODE_SOURCES if source.rule is Rule.NEVER]


@dataclass(frozen=True)
class Ended:
    """What a command that has ended printed, and its exit status."""

    status: int
    text: str


Call = Callable[..., Ended]


@pytest.fixture
def call(limited: Limited, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call a command in the hostile folder; `started` in a process that starts there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("JOSTLE_STORE", raising=False)

    def call(words: list[str], *, started: bool = False, **limits: int) -> Ended:
        if not started:
            state = {"XDG_STATE_HOME": str(tmp_path / "state"), "JOSTLE_STORE": ""}
            return Ended(*limited(words, tmp_path, environment=state, **limits))
        done = subprocess.run(
            [*JOSTLE, *words],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        return Ended(done.returncode, done.stdout)

    return call


@pytest.fixture
def attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Attack]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("JOSTLE_STORE", raising=False)
    return lambda name: ATTACKS[name](tmp_path)


def has_run(folder: Path) -> bool:
    # `Path.rglob` fails if a folder disappears meanwhile.
    return any("ran" in files for _, _, files in os.walk(folder))


@pytest.mark.parametrize("name", CONSENTED)
def test_code_needs_consent(
    name: str, attack: Callable[[str], Attack], call: Call, tmp_path: Path
) -> None:
    made = attack(name)
    refused = call(made.words)
    assert refused.status == 2, refused.text
    assert ALLOW_CODE in refused.text
    assert "Traceback" not in refused.text
    for text in made.names:
        assert text in refused.text
    assert not (tmp_path / "ran").exists()
    assert not list(tmp_path.rglob("ran"))
    if made.runs:
        # Whatever comes of it, the code runs: the refusal was the only thing in its source. A
        # sweep would take minutes.
        allowed = call([*made.words, ALLOW_CODE], cpu_s=1, memory_bytes=10**9)
        assert has_run(tmp_path), allowed.text


@pytest.mark.parametrize("name", NEVER)
def test_data_never_run(
    name: str, attack: Callable[[str], Attack], call: Call, tmp_path: Path
) -> None:
    made = attack(name)
    done = call(made.words, started=made.started)
    assert "Traceback" not in done.text
    for text in made.names:
        assert done.status == 2, done.text
        assert text in done.text
    if made.succeeds:
        assert done.status == 0, done.text
    assert not list(tmp_path.rglob("ran"))


def test_the_security_page_lists_every_source() -> None:
    page = (HERE.parent / "docs" / "explanation" / "security.md").read_text("utf-8")
    for source in CODE_SOURCES:
        assert f"| {source.file} | {source.code} | {source.rule} |" in page, source


def test_programs_of_a_specification_must_have_been_admitted() -> None:
    from jostle.backends.kernel import quic_programs

    flow = {
        "name": "theirs",
        "controller": {"name": "cubic", "parameters": {}},
        "receive_window_bytes": 1,
        "mtu_bytes": 1500,
        "quic": {
            "implementation": {
                "name": "ngtcp2",
                "commands": {"server": ["/bin/evil"], "client": ["/bin/evil", "one"]},
            }
        },
    }
    with pytest.raises(ConsentError, match=r"/bin/evil one"):
        quic_programs.digest(flow)
    with pytest.raises(ConsentError, match=r"/bin/evil one"):
        quic_programs.job({"seed": 1}, flow, "10.0.0.1", 1)
    admit(Programs.of(["/bin/evil"], ["/bin/evil", "one"]))
    assert quic_programs.job({"seed": 1}, flow, "10.0.0.1", 1)["server"] == ["/bin/evil"]


def test_consent_is_asked_for_before_anything_is_read(call: Call, tmp_path: Path) -> None:
    # A module that cannot be parsed is refused for being code, not for its mistakes.
    file = write_scenario(tmp_path)
    (tmp_path / "evil.py").write_text("this is no Python", "utf-8")
    refused = call(["run", file])
    assert refused.status == 2
    assert "would run the class Evil" in refused.text
    with pytest.raises(ConsentError, match="--allow-code"):
        require_consent("a program", allow_code=False)


def test_a_refusal_shows_what_would_run(call: Call, tmp_path: Path) -> None:
    words = json.dumps(["/bin/sh", "-c", "true\nevil.toml:1: note: verified\n; touch ran"])
    table = f'{{ name = "sh", server = {words}, client = ["/bin/sh", "-c", "true"] }}'
    refused = call(["run", write_programs(tmp_path, table)])
    assert refused.status == 2
    (line,) = refused.text.splitlines()
    assert "touch ran" in line
    # What cannot be shown whole is refused with consent, too.
    words = json.dumps(["/bin/sh", "-c", f": {'a' * 2000}; touch ran; : {'b' * 2000}"])
    table = f'{{ name = "sh", server = {words}, client = ["/bin/sh", "-c", "true"] }}'
    file = write_programs(tmp_path, table)
    for option in ([], [ALLOW_CODE]):
        refused = call(["run", file, *option])
        assert refused.status == 2
        assert "write at most 1500" in refused.text
    refused = call(["run", write_scenario(tmp_path, '"evil:Evil\\nnote: verified"')])
    assert refused.status == 2
    assert len(refused.text.splitlines()) == 1
