"""BibTeX entries of what a run, or an entry of the registry, is based on.

`references.bib` has the facts of each publication once. An entry belongs to a name of the registry
if its keyword is that name, or if the source of the registry names its RFC or Internet-Draft. Files
of Linux are in the source alone; they become the note of an entry for the version of the kernel.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jostle.backends import SimBackend

if TYPE_CHECKING:
    from jostle.store.run_folder import StoredRun
    from jostle.store.segments.reader import SegmentRun

SOFTWARE: Final = "jostle"
"""Key of jostle's own entry."""
_KERNEL: Final = "6.1"
"""Version of Linux for files that the registry names without a version."""
_LINUX: Final = re.compile(r"\b\d\.\d+\b")
_NAMED: Final = re.compile(r"RFC (\d+)|(draft-[a-z0-9-]*[a-z0-9])")
_KEYWORDS: Final = re.compile(r"\n *keywords *= \{(.*)\},")


@dataclass(frozen=True)
class Reference:
    """An entry of `references.bib`: its text, and the names of the registry as its keywords."""

    text: str
    names: frozenset[str]


@functools.cache
def references() -> Mapping[str, Reference]:
    """Return the entries of `references.bib` by their keys."""
    text = Path(__file__).with_name("references.bib").read_text("utf-8")
    found = {}
    for entry in text.strip().split("\n\n"):
        key = entry[entry.index("{") + 1 : entry.index(",")]
        named = _KEYWORDS.search(entry)
        names = frozenset(named[1].split(", ")) if named else frozenset[str]()
        found[key] = Reference(_KEYWORDS.sub("", entry), names)
    return found


def keys_of(name: str, source: str) -> dict[str, list[str]]:
    """Return the keys of a name's entries, each with the files that are named.

    Parameters
    ----------
    name
        Name in the registry, or of a study.
    source
        Its source, as text.
    """
    named = [f"rfc{rfc}" if rfc else draft for rfc, draft in _NAMED.findall(source)]
    # The version of an Internet-Draft may be missing.
    keys: dict[str, list[str]] = {
        key: []
        for key, reference in references().items()
        if name in reference.names or re.sub(r"-\d\d$", "", key) in named or key in named
    }
    for part in source.split("; "):
        files = re.findall(r"[\w/]+\.[ch]\b", part)
        if part.startswith("Linux ") and files:
            for version in _LINUX.findall(part) or [_KERNEL]:
                keys.setdefault(f"linux-{version}", []).extend(files)
    return keys


def bibliography(sources: Mapping[str, str]) -> list[str]:
    """Return the entries of several names, each once, below a comment with these names.

    Parameters
    ----------
    sources
        Source by name.
    """
    names: dict[str, list[str]] = {}
    files: dict[str, list[str]] = {}
    for name, source in sources.items():
        for key, named in keys_of(name, source).items():
            names.setdefault(key, []).append(name)
            files.setdefault(key, []).extend(named)
    return [
        f"% {', '.join(based)}\n{_entry(key, note=', '.join(dict.fromkeys(files[key])))}"
        for key, based in names.items()
    ]


def software_entry(made_by: Mapping[str, str]) -> str:
    """Return jostle's own entry for a run, given the run's provenance."""
    backend, version = made_by["backend"], made_by["backend_version"]
    # The engine's version begins with jostle's, also if a later version has merged the segment.
    release = version.partition("+")[0] if backend == SimBackend.name else made_by["jostle"]
    entry = _entry(SOFTWARE, version=release, note=f"backend {backend} {version}")
    key = re.sub(r"[^\w.]+", "-", f"{SOFTWARE}-{version}")
    return f"% {SOFTWARE}\n{entry.replace(SOFTWARE, key, 1)}"


def names_of(run: StoredRun | SegmentRun) -> list[str]:
    """Return the names of all algorithms, queues, models and programs that a run used."""
    spec, made_by = run.spec, run.provenance
    flows = [flow for flow in spec["flows"] if flow["transport"] != "udp"]
    links = spec["links"]
    used: list[Any] = [flow["controller"] for flow in flows]
    used += [flow.get(key) for key in ("slow_start", "memory") for flow in flows]
    used += [quic.get("implementation") for flow in flows if (quic := flow.get("quic"))]
    used += [link["queue"] for link in links]
    used += [each["queue"] for link in links for each in link.get("classes") or ()]
    used += [link.get("loss") for link in links]
    used += [link["capacity"] for link in links]
    used += [{"kind": "jitter"} for link in links if link["delay"].get("jitter")]
    if made_by["backend"] != SimBackend.name:
        used += [
            {"name": f"Linux {each}"} for each in _LINUX.findall(made_by["backend_version"])[:1]
        ]
    return list(dict.fromkeys(part.get("name") or part["kind"] for part in used if part))


def _entry(key: str, **fields: str) -> str:
    """Return the text of an entry with additional fields, except empty ones."""
    text = references()[key].text.removesuffix("}")
    for field, value in fields.items():
        if value:
            # These characters have a meaning in TeX.
            escaped = re.sub(r"([&%$#_])", r"\\\1", value)
            text += f"  {field:<12} = {{{escaped}}},\n"
    return text + "}"
