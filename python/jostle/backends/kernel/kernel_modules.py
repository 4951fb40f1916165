"""Loadable modules that a run needs in kernels without built-in drivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from jostle.backends.base import Spec
from jostle.backends.kernel import tc_queues

_ALWAYS = ("veth", "sch_htb", "sch_netem")


def needed(spec: Spec) -> list[str]:
    """Return the names of a run's modules, which may be built in."""
    names = list(_ALWAYS)
    for link in spec["links"]:
        names.append(
            f"sch_{tc_queues.command(link['queue'], tc_queues.QueueContext(1)).split()[0]}"
        )
    if any(flow.get("dscp") for flow in spec["flows"]):
        names += ["sch_ingress", "cls_matchall", "act_pedit", "act_csum"]
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
    """Return the files of modules and their dependencies, in loading order.

    Parameters
    ----------
    folder
        Folder with `modules.dep`. Modules that are not listed there are assumed to be built in.
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
