"""Writes the results of the page on identifying controllers on known links.

    python tools/results/record_identification.py STORE

runs every controller of Linux on the kernel in virtual time, unless STORE contains the runs. Writes
`identify-results.inc` with its figure.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jostle
import numpy as np
from draw_identification import draw
from jostle.backends import SimBackend, load_engine
from jostle.inference import run_context
from jostle.inference.candidates import chosen_names
from jostle.inference.identify import closest_runs, observe_candidates, probabilities
from jostle.inference.observed_flow import observe
from jostle.results.number_format import percent
from jostle.runner.executors import local
from jostle.runner.session import Session

TARGET = Path(__file__).parents[2] / "docs" / "results" / "data" / "identify-results.inc"
SENDERS = [
    "reno", "bic", "cubic", "highspeed", "scalable", "htcp", "westwood", "hybla", "vegas", "veno",
    "yeah", "illinois", "cdg", "lp", "nv", "bbr",
]  # fmt: skip
ASKED = ("reno", "cubic", "bbr", "vegas", "hybla", "westwood", "illinois", "htcp")
"""Controllers that users commonly ask for."""
ALIKE = {"reno": ("lp",), "lp": ("reno",)}
"""Candidates that behave identically on a separate queue."""

Link = tuple[str, str, str, str]
LOSSY: Link = ("30 Mbit/s", "60 ms", "1 BDP", "0.01 %")
TESTING: tuple[Link, ...] = (
    ("16 Mbit/s", "60 ms", "1.5 BDP", ""),
    ("8 Mbit/s", "120 ms", "1 BDP", ""),
    ("30 Mbit/s", "25 ms", "3 BDP", ""),
    ("40 Mbit/s", "100 ms", "0.7 BDP", ""),
)
"""Rate, RTT, drop-tail queue, random loss."""

Unknown = tuple[str, dict[str, float]]
"""A sender, and the distance of each candidate's closest run."""


def main() -> None:
    """Run, compare, write."""
    store = sys.argv[1]
    names = chosen_names("linux")
    tested = {link: distances(link, names, store, capture=True) for link in TESTING}
    lossy = distances(LOSSY, names, store, capture=False)
    TARGET.write_text("\n".join(page(tested, lossy)) + "\n", "utf-8")
    draw()


def distances(link: Link, names: Sequence[str], store: str, *, capture: bool) -> list[Unknown]:
    """Compare every sender's run on the kernel with the candidates on the same link."""
    rate, rtt, limit, loss = link
    bottleneck: dict[str, Any] = {
        "rate": rate,
        "queue": {"kind": "drop_tail", "limit": limit},
        **({"loss": loss} if loss else {}),
    }
    document = {
        "title": f"{rate}, {rtt}, {limit}",
        "duration": "60 s",
        "sampling_interval": "100 ms",
        "bottleneck": bottleneck,
        "flows": [
            {"name": "download", "controller": "cubic", "rtt": rtt, "start_jitter": "100 ms"}
        ],
        "grid": {"flows.download.controller": SENDERS},
        **({"capture": True} if capture else {}),
    }
    scenario = jostle.Scenario.from_dict(document)
    unknown = jostle.run(scenario, backend="kernel", store=store, repeats=1)
    executor = local()
    session = Session(SimBackend(load_engine()), executor, None)
    # Use another seed than the kernel's run, because its random losses are not known.
    around = run_context.spec_from_run(unknown.results[0].run, "download")
    around["seed"] += 1000
    seen = observe_candidates(around, "download", names, session, on_time=True)
    executor.shutdown()
    found = []
    for result in unknown.results:
        runs = closest_runs(observe(result.run), seen)
        closest = {name: distance for name, (distance, _) in runs.items()}
        found.append((unknown.conditions[result.condition]["flows.download.controller"], closest))
        print(link, *found[-1][:1], min(closest, key=lambda name: closest[name]), flush=True)
    return found


def page(tested: Mapping[Link, Sequence[Unknown]], lossy: Sequence[Unknown]) -> Iterator[str]:
    """Yield the lines of the tables."""
    every = [one for found in tested.values() for one in found]
    yield "| link | right of 8 that are asked for | right of all 16 | taken for another |"
    yield "| --- | ---: | ---: | --- |"
    for (rate, rtt, limit, _), found in tested.items():
        asked = [one for one in found if one[0] in ASKED]
        wrong = [f"{sender} for {first(closest)}" for sender, closest in found
                 if first(closest) != sender]  # fmt: skip
        yield (
            f"| {rate}, {rtt}, {limit} | {right(asked)} | {right(found)} | "
            f"{', '.join(wrong) or 'none'} |"
        )
    asked = [one for one in every if one[0] in ASKED]
    yield (
        f"| **all** | **{right(asked)} of {len(asked)}** | **{right(every)} of {len(every)}** | |"
    )
    yield ""
    left_out = [
        probabilities(list(without(sender, closest).values()))[-1] for sender, closest in every
    ]
    surest = [share_of(first(closest), closest) for _, closest in every]
    correct, surely = percent(right(every) / len(every), 0), percent(np.mean(surest), 0)
    missing = percent(np.mean(np.array(left_out) > 0.5), 0)
    yield (
        f"Where the sender is among the candidates, the first is given {surely} on average, "
        f"and is right in {correct} of the cases. "
        f'Where it is left out, "none of these" gets more than half in {missing}.'
    )
    yield ""
    yield (
        f"On a link with random loss of 0.01 % ({', '.join(LOSSY[:3])}), {right(lossy)} of "
        f"{len(lossy)} are right: which packets are lost decides about the curve."
    )
    yield ""
    yield "| sender | taken for, on the links that test | with a probability of |"
    yield "| --- | --- | ---: |"
    for sender in SENDERS:
        mine = [closest for name, closest in every if name == sender]
        taken = Counter(first(closest) for closest in mine)
        shares = [share_of(sender, closest) for closest in mine]
        words = ", ".join(f"{name} {count}" for name, count in taken.most_common())
        yield f"| {sender} | {words} | {percent(np.mean(shares), 0)} |"


def without(sender: str, closest: Mapping[str, float]) -> dict[str, float]:
    """Return the candidates without the sender and those with identical behaviour."""
    gone = (sender, *ALIKE.get(sender, ()))
    return {name: distance for name, distance in closest.items() if name not in gone}


def share_of(name: str, closest: Mapping[str, float]) -> float:
    """Return the probability of a candidate and those with identical behaviour."""
    alike = (name, *ALIKE.get(name, ()))
    shares = zip(closest, probabilities(list(closest.values())), strict=False)
    return sum(share for each, share in shares if each in alike)


def first(closest: Mapping[str, float]) -> str:
    """Return the closest candidate."""
    return min(closest, key=lambda name: closest[name])


def right(found: Sequence[Unknown]) -> int:
    """Count the senders that are identified correctly."""
    return sum(first(closest) == sender for sender, closest in found)


if __name__ == "__main__":
    main()
