"""NETWORK.toml: what it gives, what is refused, and where."""

from __future__ import annotations

from pathlib import Path

import pytest
from jostle.errors import InputError
from jostle.programs.network_file import Command, NetworkFile, load
from jostle.safe_io.code_consent import ConsentError, admitted
from jostle.scenario.parsing.problems import ScenarioError

LINK = """[bottleneck]
rate = "20 Mbit/s"
delay = "20 ms"
queue = { kind = "drop_tail", limit = "1 BDP" }
"""
HOSTS = """[[hosts]]
name = "origin"
controller = "bbr"
[[hosts]]
name = "phone"
down = ["bottleneck"]
up = ["reverse"]
"""
COMMANDS = """[[commands]]
host = "server"
serve = "serve-it"
[[commands]]
host = "client"
run = "get-it"
start = "2 s"
"""


def read(folder: Path, text: str) -> NetworkFile:
    path = folder / "network.toml"
    path.write_text(text, "utf-8")
    return load(path)


def test_a_file_of_links_has_a_server_and_a_client(tmp_path):
    found = read(tmp_path, LINK)
    server, client = found.hosts
    assert (server.name, server.down, server.up) == ("server", (), ())
    assert (client.name, client.down, client.up) == ("client", (0,), (1,))
    assert [link["name"] for link in found.links] == ["bottleneck", "reverse"]
    assert found.commands == []
    assert (found.title, found.seed, found.duration_ns) == ("network", 1, 600 * 10**9)


def test_a_default_reverse_link_that_no_host_uses_is_left_out(tmp_path):
    both = LINK.replace("[bottleneck]", '[[links]]\nname = "down"')
    both += both.replace('"down"', '"up"') + HOSTS.replace("bottleneck", "down")
    found = read(tmp_path, both.replace('"reverse"', '"up"'))
    assert [link["name"] for link in found.links] == ["down", "up"]
    found = read(tmp_path, both)
    assert [link["name"] for link in found.links] == ["down", "up", "reverse"]


def test_hosts_and_commands_of_the_file(tmp_path):
    found = read(tmp_path, 'duration = "1 min"\n' + LINK + HOSTS)
    assert [(host.name, host.controller) for host in found.hosts] == [
        ("origin", "bbr"), ("phone", "cubic"),
    ]  # fmt: skip
    assert found.duration_ns == 60 * 10**9
    server, client = read(tmp_path, LINK + COMMANDS).commands
    assert (server.text, server.is_server, server.start_ns) == ("serve-it", True, 0)
    assert (client.text, client.is_server, client.start_ns) == ("get-it", False, 2 * 10**9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1: : no link — write a [bottleneck] table, or [[links]]"]),
        ("rat = 1\n" + LINK, ['1: rat: unknown key — did you mean "rtt"?']),
        (
            'duration = "0 s"\n' + LINK,
            ['1: duration: give a time up to 24 hours, such as "2 min"'],
        ),
        (
            LINK + '[[flows]]\nname = "one"\ncontroller = "cubic"\n',
            [
                "5: flows: no flows run here — commands make the traffic, and `iperf3` on more "
                "hosts cross traffic"
            ],
        ),
        (
            LINK.replace('"drop_tail", limit = "1 BDP"', '"drr", limit = "1 BDP"'),
            [
                '4: bottleneck.queue.kind: "drr": commands have no flows for its classes — '
                "fq_codel or cake"
            ],
        ),
        (
            LINK + HOSTS.replace('"phone"', '"My Phone"').replace("bbr", "bbr9"),
            [
                '7: hosts[0].controller: not of this kernel — did you mean "bbr"?',
                '9: hosts[1].name: "My Phone": commands use it as a host name — lower-case '
                'letters, digits, "-"',
            ],
        ),
        (
            LINK + HOSTS.replace('"phone"', '"localhost"'),
            [
                '9: hosts[1].name: "localhost": commands use it as a host name — lower-case '
                'letters, digits, "-"'
            ],
        ),
        (
            LINK + HOSTS.replace('"phone"', '"origin"'),
            ['9: hosts[1].name: there is another host "origin"'],
        ),
        (
            LINK + HOSTS.replace('["reverse"]', '["revers"]'),
            ['11: hosts[1].up: no link "revers" — did you mean "reverse"?'],
        ),
        (
            LINK + HOSTS.replace('["reverse"]', '["bottleneck"]'),
            ['11: hosts[1].up: "bottleneck" is in a `down`, too — a link has one direction'],
        ),
        (
            LINK + HOSTS.replace('["reverse"]', '"reverse"'),
            ["11: hosts[1].up: write a list of links' names"],
        ),
        (
            LINK + '[[hosts]]\nname = "alone"\n',
            ["5: hosts: one host alone has no network — write two or more"],
        ),
        (LINK + "hosts = 1\n", ["5: bottleneck.hosts: unknown key"]),
        (
            LINK + COMMANDS.replace('"client"', '"clint"').replace("run", "start_it"),
            [
                '9: commands[1].host: no host — did you mean "client"?',
                '10: commands[1].start_it: unknown key — did you mean "start"?',
                '8: commands[1]: no command — write run = "…", or serve = "…"',
            ],
        ),
        (
            LINK + COMMANDS.replace("run", "serve"),
            ["11: commands[1].start: servers are started first — remove it"],
        ),
        (
            LINK + COMMANDS.replace('start = "2 s"', "start = 2"),
            ['11: commands[1].start: 2 has no unit — write for example "2 ms" or "2 s"'],
        ),
        (LINK + COMMANDS.replace('"get-it"', "7"), ["10: commands[1].run: write a text in quotes"]),
        (LINK + COMMANDS.replace('"get-it"', '" "'), ["10: commands[1].run: empty"]),
    ],
)
def test_a_bad_file_says_where_and_what(tmp_path, text, expected):
    with pytest.raises(ScenarioError) as refused:
        read(tmp_path, text)
    found = [f"{p.line}: {p.key}: {p.message}" for p in refused.value.problems]
    assert len(found) == len(expected), found
    for line in expected:
        assert any(one.startswith(line) for one in found), (line, found)


def test_a_link_that_two_hosts_use_leads_to_one_next_link(tmp_path):
    text = """[[links]]
name = "down"
rate = "9 Mbit/s"
queue = { kind = "drop_tail", limit = "1 MB" }
[[reverse]]
name = "up"
rate = "9 Mbit/s"
queue = { kind = "drop_tail", limit = "1 MB" }
[[reverse]]
name = "core"
rate = "9 Mbit/s"
queue = { kind = "drop_tail", limit = "1 MB" }
[[hosts]]
name = "a"
up = ["up", "core"]
[[hosts]]
name = "b"
up = ["up"]
"""
    with pytest.raises(ScenarioError, match=r'hosts\[1\].up: "up" is followed by another link'):
        read(tmp_path, text)


def test_typed_commands_replace_those_of_the_file(tmp_path):
    found = read(tmp_path, LINK + COMMANDS)
    mine = found.with_commands([Command("client", "true")])
    assert [command.text for command in mine.commands] == ["true"]
    mine.admit_commands(allow_code=False)
    with pytest.raises(InputError, match=r'--on clint: no host of .* did you mean "client"'):
        found.with_commands([Command("clint", "true")])
    with pytest.raises(InputError, match="--serve server: empty"):
        found.with_commands([Command("server", " ", is_server=True)])


def test_commands_of_the_file_need_consent(tmp_path):
    found = read(tmp_path, LINK + COMMANDS.replace("get-it", "get-it-with-consent"))
    with pytest.raises(ConsentError, match=r"`serve-it` on server, `get-it-with-consent` on cli"):
        found.admit_commands(allow_code=False)
    assert admitted(found.commands[1].digest()) is None
    found.admit_commands(allow_code=True)
    assert admitted(found.commands[1].digest()) is not None
