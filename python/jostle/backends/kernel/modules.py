"""Loadable modules that a run needs of a kernel that does not have everything built in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from jostle.backends.base import Spec
from jostle.backends.kernel import queues

_ALWAYS = ("veth", "sch_htb", "sch_netem")


def needed(spec: Spec) -> list[str]:
    """List the modules of a run by name; what is built in may be among them."""
    names = list(_ALWAYS)
    for link in spec["links"]:
        names.append(f"sch_{queues.command(link['queue'], queues.Place(1)).split()[0]}")
    for flow in spec["flows"]:
        if flow["transport"] != "tcp":
            continue
        names.append(f"tcp_{flow['controller']['name']}")
        if flow["pacing"]:
            names.append("sch_fq")
        if flow["nic_rate_bps"] is not None:
            names.append("sch_tbf")
    return list(dict.fromkeys(names))


def files(names: list[str], folder: Path) -> list[str]:
    """Find the files of modules and of those they depend on, in the order of loading.

    Parameters
    ----------
    folder
        Holds `modules.dep`. What it does not list is taken to be built in.
    """
    dependencies = _dependencies(folder)
    by_name = {Path(file).stem.replace("-", "_"): file for file in dependencies}
    ordered: dict[str, None] = {}

    def add(file: str) -> None:
        for other in dependencies.get(file, []):
            add(other)
        ordered[str(folder / file)] = None

    for name in names:
        if name in by_name:
            add(by_name[name])
    return list(ordered)


def _dependencies(folder: Path) -> Mapping[str, list[str]]:
    def read() -> Iterator[tuple[str, list[str]]]:
        for line in (folder / "modules.dep").read_text().splitlines():
            file, _, others = line.partition(":")
            yield file, others.split()

    return dict(read())
