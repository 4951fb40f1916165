"""What `jostle exec` says about how commands ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from jostle.programs.network_file import Command, load
from jostle.programs.outcome import CommandOutcome, LinkCounters, Outcome, document, junit, verdict

SERVER = CommandOutcome(Command("server", "serve", is_server=True), None, 0.0, 3.0)
CLIENT = CommandOutcome(Command("client", "get\x1b it"), 0, 0.0, 2.5, stdout="got\n")


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    path = tmp_path / "net.toml"
    path.write_text(
        'title = "Net"\n[bottleneck]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n'
        'queue = { kind = "drop_tail", limit = "1 MB" }\n',
        "utf-8",
    )
    links = [LinkCounters("bottleneck", 9, 1, 0)]
    return Outcome(load(path), [SERVER, CLIENT], 2.5, 1.0, links=links, kernel="6.1")


def test_success_is_a_sentence_and_a_document(outcome):
    assert verdict(outcome) == (
        "`get\\u001b it` on client ended with status 0 after 2.500 s of virtual time, 1.0 s of "
        "wall time"
    )
    found = document(outcome)
    assert found["ok"] is True
    assert found["links"] == [{"name": "bottleneck", "packets": 9, "drops": 1, "lost": 0}]
    assert [command["ended"] for command in found["commands"]] == [
        "was ended after the other commands", "ended with status 0",
    ]  # fmt: skip
    suite = Xml.fromstring(junit(outcome)).find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")
    assert suite.find("testcase[2]").get("name") == "get\\u001b it"
    assert suite.find("testcase[2]/system-out").text == "got\n"


@pytest.mark.parametrize(
    ("status", "stderr", "words", "hint"),
    [
        (127, "", "ended with status 127", "no such program on the PATH"),
        (6, "Could not resolve host: a.example", "status 6", "know only each other's names"),
        (1, "OSError: [Errno 30] Read-only file system", "status 1", "$TMPDIR"),
        (1, "connect: Network is unreachable", "status 1", "reach only each other"),
        (1, "open /dev/kvm: No such device", "status 1", "no devices"),
        (1, "certificate is not yet valid", "status 1", "--date"),
        (-9, "MemoryError", "was ended by SIGKILL", "--memory"),
        (3, "my own reason", "ended with status 3", None),
    ],
)
def test_a_failure_has_a_hint(outcome, status, stderr, words, hint):
    failed = replace(outcome, commands=[SERVER, replace(CLIENT, status=status, stderr=stderr)])
    assert not failed.ok
    assert verdict(failed).startswith("FAILED: `get\\u001b it` on client ")
    assert words in verdict(failed)
    found = failed.commands[1].hint
    assert (found is None) if hint is None else (hint in found)
    failure = Xml.fromstring(junit(failed)).find("testsuite/testcase[2]/failure")
    assert words in failure.get("message")


def test_a_server_that_ended_early_is_a_failure_unless_with_status_0(outcome):
    crashed = replace(SERVER, status=1, ended_early=True)
    assert not replace(outcome, commands=[crashed, CLIENT]).ok
    assert replace(outcome, commands=[replace(crashed, status=0), CLIENT]).ok
    deaf = replace(SERVER, failure="did not listen at a port within 10 s")
    waiting = CommandOutcome(CLIENT.command)
    said = verdict(replace(outcome, commands=[deaf, waiting]))
    assert said.startswith("FAILED: `serve` on server did not listen at a port within 10 s after")


def test_limits(outcome):
    running = replace(CLIENT, status=None)
    late = replace(outcome, commands=[SERVER, running], limit="virtual time")
    assert verdict(late).startswith("STOPPED: `get\\u001b it` on client still ran after 2.500 s")
    assert not replace(outcome, limit="wall time").ok
    assert "the limit of wall time" in verdict(replace(outcome, limit="wall time"))
