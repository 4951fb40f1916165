"""BibTeX of the registry, of studies and of runs."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jostle.backends import load_engine
from jostle.cli import status
from jostle.cli.registry_names import papers_of
from jostle.results.citations import keys_of, names_of, references, software_entry
from jostle.store.store import Reader

ROOT = Path(__file__).parents[1]
REQUIRED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "mastersthesis": {"author", "title", "school", "year"},
    "techreport": {"author", "title", "institution", "year"},
    "misc": {"author", "title", "howpublished"},
    "software": {"author", "title"},
}
"""Fields without which BibTeX warns, or a reader finds nothing."""
FIELD = re.compile(r"^  (\w+) += \{(.*)\},$")


def sources() -> dict[str, str]:
    """Every source of the registry, and every paper of a study."""
    registry = json.loads(load_engine().registry())
    rows = [row for rows in registry.values() for row in rows if row.get("source")]
    assert len({row["name"] for row in rows}) == len(rows)
    return papers_of() | {row["name"]: row["source"] for row in rows}


def fields(key: str) -> dict[str, str]:
    """Fields of an entry."""
    return fields_of(references()[key].text)[2]


def fields_of(entry: str) -> tuple[str, str, dict[str, str]]:
    """Type, key and fields of an entry, whose structure is checked."""
    head, *lines, tail = entry.splitlines()
    start = re.fullmatch(r"@([a-z]+)\{([\w.-]+),", head)
    assert start, entry
    assert tail == "}", entry
    found = {}
    for line in lines:
        field = FIELD.fullmatch(line)
        assert field, line
        assert field[1] not in found, entry
        found[field[1]] = field[2]
        depth = 0
        for brace in re.findall(r"[{}]", field[2]):
            depth += 1 if brace == "{" else -1
            assert depth >= 0, line
        assert depth == 0, line
        # These characters have a meaning in TeX.
        if field[1] not in ("doi", "url") and r"\url" not in line:
            assert not re.search(r"(?<!\\)[&%$#_~^]", field[2]), line
    return start[1], start[2], found


def surnames(authors: str) -> list[str]:
    """Surnames in an author field, without accents."""
    people = authors.strip("{}").split(" and ")
    return [plain(one.split(",")[0] if "," in one else one.split()[-1]) for one in people]


def plain(text: str) -> str:
    """Text without accents."""
    folded = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in folded if not unicodedata.combining(letter))


def test_entries_are_complete_bibtex() -> None:
    text = (ROOT / "python/jostle/results/references.bib").read_text("utf-8")
    keys = re.findall(r"^@\w+\{([^,]+),$", text, re.MULTILINE)
    assert len(keys) == len(set(keys)) == len(references())
    for key, reference in references().items():
        kind, named, found = fields_of(reference.text)
        assert named == key
        assert REQUIRED[kind] <= found.keys(), key
        assert re.fullmatch(r"(19|20)\d\d", found.get("year", "2000")), key
        assert re.fullmatch(r"10\.\d{4,}/\S+", found.get("doi", "10.1000/x")), key


def test_every_source_has_entries_that_agree_with_it() -> None:
    papers = papers_of()
    for name, source in sources().items():
        keys = keys_of(name, source)
        years = re.findall(r"\b(?:19|20)\d\d\b", source)
        if not keys:
            # A process without a publication, or a study of our own.
            assert not re.search(r"\d|\.[ch]\b", source), name
        cited = {key: fields(key) for key in keys}
        for key, found in cited.items():
            if key.startswith(("rfc", "draft-", "linux-")):
                continue
            people = surnames(found["author"])
            if re.search(rf"{re.escape(people[0])} et al", plain(source)):
                people = people[:1]
            if not found["author"].startswith("{"):
                assert [one for one in people if one not in plain(source)] == [], (name, key)
            if "year" in found:
                assert found["year"] in years, (name, key)
        if name not in papers:
            assert set(years) <= {found.get("year") for found in cited.values()}, name


def test_every_rfc_draft_and_kernel_of_a_source_has_an_entry() -> None:
    for name, source in sources().items():
        keys = keys_of(name, source)
        for rfc in re.findall(r"RFC (\d+)", source):
            assert f"rfc{rfc}" in keys, name
        for draft in re.findall(r"draft-[\w-]+", source):
            assert any(key.startswith(draft) for key in keys), (name, draft)
        assert keys.keys() <= references().keys(), name
        if re.search(r"(^|; )Linux [\d./a-z]", source) and "port of" not in source:
            assert any(files for files in keys.values()), name


def test_every_entry_is_cited_by_something_that_exists() -> None:
    known = sources()
    used = {key for name, source in known.items() for key in keys_of(name, source)}
    kernels = {name for name in references() if name.startswith("linux-")}
    assert references().keys() - used == {"jostle", *kernels} - used
    keywords = {name for key, each in references().items() for name in each.names - kernels}
    assert {name for name in keywords if not name.startswith("Linux ")} <= known.keys()


def test_the_entry_of_jostle_is_that_of_the_citation_file() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    found = fields("jostle")
    assert f'\ntitle: "{found["title"].strip("{}")}"\n' in citation
    assert f"\nauthors:\n  - name: {found['author'].strip('{}')}\nkeywords:" in citation


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, output and errors of `jostle info`."""
    code = status(["info", *arguments])
    return code, *capsys.readouterr()


def test_names_are_cited_once(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = shown(capsys, "--cite", "dctcp", "--cite", "step_mark", "--cite", "geo-solo")
    assert (code, err) == (0, "")
    head, *entries = out.rstrip().split("\n\n")
    assert head == "% Cite 4 entries for dctcp, step_mark, geo-solo."
    parsed = [(entry.split("\n")[0], fields_of(entry.split("\n", 1)[1])) for entry in entries]
    assert [(names, key) for names, (_, key, _) in parsed] == [
        ("% dctcp, step_mark", "alizadeh2010dctcp"),
        ("% dctcp, step_mark", "rfc8257"),
        ("% dctcp, step_mark", "linux-6.1"),
        ("% geo-solo", "claypool2021satellite"),
    ]
    assert parsed[2][1][2]["note"] == r"tcp\_dctcp.c, include/net/codel\_impl.h"


def test_a_name_without_a_publication_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = shown(capsys, "--cite", "jitter")
    assert (code, out) == (0, "% Nothing to cite: jitter.\n% Without a publication: jitter.\n")


def test_a_run_is_cited_with_its_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = ROOT / "scenarios" / "first.toml"
    short = ["--set", "duration=6 s", "--set", "phases={}", "--store", str(tmp_path)]
    assert status(["run", str(scenario), *short]) == 0
    capsys.readouterr()
    (run,) = Reader(tmp_path).names()
    code, out, err = shown(capsys, "--cite", run, "--store", str(tmp_path))
    assert (code, err) == (0, "")
    head, software, *entries = out.rstrip().split("\n\n")
    assert head == f"% Cite 7 entries for run {run}."
    version = load_engine().ENGINE_VERSION
    kind, key, found = fields_of(software.split("\n", 1)[1])
    assert (kind, key) == ("software", f"jostle-{version.replace('+', '-')}")
    assert found["version"] == version.split("+")[0]
    assert found["note"] == f"backend sim {version}"
    cited = {name for entry in entries for name in entry.split("\n")[0].strip("% ").split(", ")}
    assert cited == {"cubic", "hystart", "bbr", "drop_tail"}


def test_a_run_on_the_kernel_of_this_machine_is_valid_bibtex() -> None:
    version = "native-6.1.0-#1 SMP PREEMPT_DYNAMIC 6.1.1-1 (2026-01-01)+2c.3d"
    made_by = {"backend": "kernel", "backend_version": version, "jostle": "0.1.0"}
    kind, key, found = fields_of(software_entry(made_by).split("\n", 1)[1])
    assert (kind, found["version"]) == ("software", "0.1.0")
    assert key.startswith("jostle-native-6.1.0-1-SMP")
    assert found["note"] == "backend kernel " + version.replace("#", r"\#").replace("_", r"\_")


def test_every_part_of_a_run_has_a_name() -> None:
    flow: dict[str, Any] = {"transport": "tcp", "controller": {"name": "mine:Mine"}}
    quic = {**flow, "transport": "quic", "quic": {"implementation": {"name": "quiche"}}}
    flows = [
        {**flow, "slow_start": {"name": "suss"}, "memory": {"name": "stateful"}},
        {**quic, "slow_start": None},
        {"transport": "udp", "controller": {"name": "reno"}},
    ]
    link = {
        "queue": {"kind": "drr"},
        "classes": [{"queue": {"kind": "pie"}}],
        "loss": {"kind": "gilbert_elliott"},
        "capacity": {"kind": "trace"},
        "delay": {"jitter": {"correlation_ns": 1}},
    }
    made_by = {"backend": "kernel", "backend_version": "virtual-6.12.117-0a1b+2c.3d"}
    run: Any = SimpleNamespace(spec={"flows": flows, "links": [link]}, provenance=made_by)
    assert names_of(run) == [
        "mine:Mine", "suss", "stateful", "quiche", "drr", "pie", "gilbert_elliott", "trace",
        "jitter", "Linux 6.12",
    ]  # fmt: skip
    (kernel,) = keys_of("Linux 6.12", "")
    assert kernel == "linux-6.12"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--cite", "cubik"),
            "no registry entry, study or stored run `cubik`; did you mean `cubic`",
        ),
        (("--cite", "cubic", "list"), "--cite: leave out the command `list`"),
        (("--store", "x"), "give a name, as in `jostle info --cite cubic`"),
    ],
)
def test_errors(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = shown(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
