"""The family tree of the controllers: as data, in the terminal, as a figure."""

from __future__ import annotations

import json

import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.figures import draw
from jostle.figures.family_tree import family_tree, tree_lines
from matplotlib.patches import FancyArrowPatch

ROWS = [
    {"name": "reno", "class": "loss", "based_on": []},
    {"name": "vegas", "class": "delay", "based_on": ["reno"]},
    {"name": "scalable", "class": "loss", "based_on": ["reno"]},
    {"name": "yeah", "class": "hybrid", "based_on": ["scalable", "vegas"]},
    {"name": "bbr", "class": "hybrid", "based_on": []},
    {"name": "dctcp", "class": "ecn", "based_on": ["reno"]},
]


def test_ancestors_stand_above_their_descendants() -> None:
    data = family_tree(ROWS)
    assert data.groups == ("loss", "hybrid", "delay", "ecn")
    places = {member.name: (member.group, member.row) for member in data.members}
    assert places == {
        "reno": (0, 0), "scalable": (0, 1), "yeah": (1, 0), "bbr": (1, 1), "vegas": (2, 0),
        "dctcp": (3, 0),
    }  # fmt: skip
    assert ("vegas", "yeah") in data.descents
    assert ("scalable", "yeah") in data.descents


def test_a_descent_that_follows_from_others_is_left_out() -> None:
    rows = [*ROWS, {"name": "veno", "class": "hybrid", "based_on": ["reno", "vegas"]}]
    ancestors = [above for above, below in family_tree(rows).descents if below == "veno"]
    assert ancestors == ["vegas"]


def test_branches_of_the_terminal_tree() -> None:
    assert [branch + row["name"] for branch, row in tree_lines(ROWS)] == [
        "reno", "├─ vegas", "├─ scalable", "│  └─ yeah", "└─ dctcp", "bbr",
    ]  # fmt: skip


def test_every_controller_is_in_the_tree_once_and_drawn() -> None:
    rows = json.loads(_core.registry())["controllers"]
    names = sorted([*(row["name"] for row in rows), "ar"])
    data = family_tree(rows)
    assert sorted(member.name for member in data.members) == names
    assert [member.name for member in data.members if not member.here] == ["ar"]
    assert sorted(row["name"] for _, row in tree_lines(rows)) == names
    axis = draw.family(data).axes[0]
    drawn = {text.get_text() for text in axis.texts}
    assert drawn.issuperset({*names, *data.groups})
    arrows = [patch for patch in axis.patches if isinstance(patch, FancyArrowPatch)]
    assert len(arrows) == len(data.descents)


def test_the_groups_and_branches_are_those_of_the_classification() -> None:
    """Turkovic, Kuipers, Uhlig, TMA 2019, Fig. 1 and the text around it."""
    rows = json.loads(_core.registry())["controllers"]
    data = family_tree(rows)
    group = {member.name: data.groups[member.group] for member in data.members}
    for name in ("vegas", "vegas-a", "vegas+", "fast", "vfast", "new-vegas", "lola", "timely"):
        assert group[name] == "delay", name
    for name in ("tcpw", "westwood", "tcpw-a", "log-westwood+", "hybla", "bic", "cubic"):
        assert group[name] == "loss", name
    for name in (
        "veno",
        "africa",
        "compound",
        "yeah",
        "illinois",
        "ar",
        "fusion",
        "areno",
        "libra",
    ):
        assert group[name] == "hybrid", name
    assert {("tcpw", "westwood"), ("ar", "areno")} <= set(data.descents)


def test_what_is_only_named_stands_with_its_heir() -> None:
    row = {"name": "areno", "class": "hybrid", "based_on": ["reno"]}
    assert [member.name for member in family_tree([*ROWS, row]).members if not member.here] == [
        "ar"
    ]
    assert all(member.here for member in family_tree(ROWS).members)


def test_the_command_prints_and_draws_it(tmp_path, capsys) -> None:
    target = tmp_path / "tree.png"
    arguments = ["info", "list", "controllers", "--tree", "-o", str(target)]
    assert status(arguments, Environment(_core)) == 0
    assert "─ vegas" in capsys.readouterr().out
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["info", "list", "controllers", "-o", "x.png"], "--tree"),
        (["info", "list", "scenarios", "--tree"], "no family tree"),
        (["info", "list", "controllers", "--tree", "-o", "x.bmp"], "bmp"),
    ],
)
def test_what_cannot_be_drawn_is_told(arguments: list[str], words: str, capsys) -> None:
    assert status(arguments, Environment(_core)) == 2
    assert words in capsys.readouterr().err
