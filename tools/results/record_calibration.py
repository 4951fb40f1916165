"""Calibrates the probabilities of `jostle identify` on captures of Linux over random paths.

    python tools/results/record_calibration.py STORE [CAPTURES] [FIRST]

runs a random controller of Linux on the kernel in virtual time over each of CAPTURES random paths
(300 by default), unless STORE contains the run, and identifies it from its capture alone. Paths
have cross traffic and thinned ACKs. Captures lack TCP options, or a snap length cuts them. They are
from either end, or from the middle of the path. FIRST is the number of the first path: paths from
10000 on are held out, for tests of new constants. Writes a line per capture to
`STORE/calibration.jsonl`, which later calls continue. If FIRST is at least 10000, the calibration
curve is written to `calibration-results.inc`. Otherwise, the most likely constants of
`jostle/inference/identify.py` are printed.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jostle
import numpy as np
from jostle.backends import SimBackend, load_engine
from jostle.errors import JostleError
from jostle.inference import run_context
from jostle.inference.candidates import chosen_names
from jostle.inference.identify import identify, probabilities
from jostle.inference.missing_evidence import of_network
from jostle.inference.observed_flow import observe
from jostle.results.number_format import percent
from jostle.runner.executors import local
from jostle.runner.session import Session
from record_identification import ALIKE, SENDERS, without
from scipy.optimize import isotonic_regression, minimize

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import rewritten
from rewritten import Frame

TARGET = Path(__file__).parents[2] / "docs" / "results" / "data" / "calibration-results.inc"
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
"""Limits of the probabilities of a row of the curve."""
HELD_OUT = 10_000
"""Number of the first path that does not calibrate."""
STRANGERS = 0.25
"""Weight of the cases without the sender among the candidates: they are a fifth of all."""
UNCALIBRATED = ((0.0, 0.0), (1.0, 1.0))
SURE = 0.8
"""Probability from which an answer counts as one."""
WHOLE = 65_535
SACK_PERMITTED, SACK, TIMESTAMPS = 4, 5, 8
OPTIONS = {"all": (), "no SACK": (SACK_PERMITTED, SACK), "no timestamps": (TIMESTAMPS,)}
"""TCP options that a capture lacks."""
KINDS: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "at the sender": lambda row: row["end"] == "sender",
    "in the middle": lambda row: row["end"] == "middle",
    "at the receiver": lambda row: row["end"] == "receiver",
    "without cross traffic and thinned ACKs": lambda row: not row["cross"] and not row["max_acks"],
    "with cross traffic": lambda row: row["cross"],
    "with thinned ACKs": lambda row: row["max_acks"] > 0,
    "snap length below 96, or an option missing": lambda row: (
        row["snap"] < 96 or row["options"] != "all"
    ),
}
"""Kinds of captures that have a row each."""
SNAPS = (54, 66, 78, 96, WHOLE, WHOLE)


def main() -> None:
    """Run, identify, write."""
    store = Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    results = store / "calibration.jsonl"
    lines = results.read_text("utf-8").splitlines() if results.exists() else []
    known = {row["path"]: row for row in map(json.loads, lines)}
    for number in range(first, first + count):
        if number not in known:
            known[number] = row = recorded(number, store)
            store.mkdir(parents=True, exist_ok=True)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)
    rows = [known[number] for number in range(first, first + count)]
    if first >= HELD_OUT:
        TARGET.write_text("\n".join(page(rows)) + "\n", "utf-8")
    else:
        fitted = constants(rows)
        print("sharpness {:.2f}, strange {:.4f}, rivalry {:.2f}".format(*fitted))
        print(
            "calibration", *("({:.2f}, {:.2f})".format(*one) for one in calibration(rows, fitted))
        )


def path_of(number: int) -> dict[str, Any]:
    """Draw a path, its sender and its capture."""
    chance = np.random.default_rng([number, 40])
    return {
        "sender": str(chance.choice(SENDERS)),
        "mbps": round(float(np.exp(chance.uniform(np.log(1), np.log(50)))), 2),
        "rtt_ms": round(float(np.exp(chance.uniform(np.log(15), np.log(200))))),
        "bdp": round(float(np.exp(chance.uniform(np.log(0.5), np.log(4)))), 2),
        "seconds": int(chance.choice([20, 40, 60])),
        "snap": int(chance.choice(SNAPS)),
        "options": str(chance.choice(["all", "all", "all", "no SACK", "no timestamps"])),
        "end": str(chance.choice(["sender", "sender", "receiver", "middle"])),
        "share": round(float(chance.uniform(0.1, 0.8)), 2),
        "max_acks": int(chance.choice([0, 0, 0, 8])),
        "cross": bool(chance.random() < 0.2),
    }


def scenario_of(path: dict[str, Any]) -> jostle.Scenario:
    """Return the scenario of a path."""
    limit = max(path["bdp"] * path["mbps"] * path["rtt_ms"] * 125, 15_000)
    one = {"name": "download", "controller": path["sender"], "rtt": f"{path['rtt_ms']} ms"}
    other = {
        "name": "cross", "controller": "cubic", "rtt": "30 ms", "start": "5 s",
        "source": {"kind": "on_off", "on": "1 s", "off": "4 s"},
    }  # fmt: skip
    thinning = {"max_acks": path["max_acks"], "max_delay": "10 ms"}
    queue = {"kind": "drop_tail", "limit": "1000 packets"}
    return jostle.Scenario.from_dict({
        "title": "Calibration",
        "duration": f"{path['seconds']} s",
        "capture": True,
        "downlink": {
            "rate": f"{path['mbps']} Mbit/s",
            "queue": {"kind": "drop_tail", "limit": f"{limit:.0f} B"},
        },
        "uplink": {
            "rate": "1 Gbit/s", "queue": queue,
            **({"ack_thinning": thinning} if path["max_acks"] else {}),
        },
        "flows": [one, *([other] if path["cross"] else [])],
    })  # fmt: skip


def frames_of(captures: Mapping[str, Path], path: dict[str, Any]) -> list[Frame]:
    """Return the packets of a capture at the place of a path, with the options of the path.

    In the middle, ACKs pass earlier than they arrive at the sender: by a share of the base RTT.
    """
    end = "receiver" if path["end"] == "receiver" else "sender"
    frames = rewritten.frames(captures[f"download.{end}"])
    for kind in OPTIONS[path["options"]]:
        frames = [rewritten.without_option(kind)(frame) for frame in frames]
    if path["end"] != "middle":
        return frames
    return rewritten.in_the_middle(frames, round(path["share"] * path["rtt_ms"] * 1e6))


def recorded(number: int, store: Path) -> dict[str, Any]:
    """Capture a sender on a path and identify it; `answer` is None if it cannot be identified."""
    path = path_of(number)
    row: dict[str, Any] = {"path": number, **path, "answer": None, "probability": 0.0}
    run = jostle.run(scenario_of(path), backend="kernel", store=str(store), repeats=1)
    frames = frames_of(run.results[0].run.captures, path)
    executor = local()
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "capture.pcap"
            file.write_bytes(rewritten.pcap(frames, snap=path["snap"]))
            observed = observe(jostle.analyze(file).results[0].run)
            around = run_context.spec_from_estimate(observed)
            rate = observed.link_rate
            assert rate is not None
            session = Session(SimBackend(load_engine()), executor, None)
            found = identify(
                observed, around, chosen_names("linux"), session, rate_error=rate.relative_error,
                alternatives=run_context.alternative_networks(around, observed),
            )  # fmt: skip
    except JostleError as error:
        return row | {"error": str(error)}
    finally:
        executor.shutdown()
    best = found.ranking[0]
    alike = (best.controller, *ALIKE.get(best.controller, ()))
    return row | {
        "answer": best.controller,
        "probability": sum(one.probability for one in found.ranking if one.controller in alike),
        "none_of_these": found.none_of_these,
        "distances": {one.controller: one.distance for one in found.ranking},
        "rate": [rate.low_bps, rate.rate_bps, rate.high_bps],
        "missing": [*found.missing, *of_network(rate)],
    }


def constants(rows: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """Return the most likely sharpness, distance of "none of these" and rivalry."""
    answered = [row for row in rows if row["answer"]]

    def surprise(at: np.ndarray) -> float:
        fitted = (*np.exp(at[:2]), at[2])
        total = 0.0
        for row in answered:
            *shares, _ = probabilities(list(row["distances"].values()), *fitted, UNCALIBRATED)
            alike = (row["sender"], *ALIKE.get(row["sender"], ()))
            ranked = zip(row["distances"], shares, strict=True)
            total -= np.log(sum(share for name, share in ranked if name in alike) + 1e-9)
            total -= STRANGERS * np.log(strangeness(row, (*fitted, UNCALIBRATED))[0] + 1e-9)
        return float(total)

    best = minimize(surprise, [np.log(3.0), np.log(0.03), 0.4], method="Nelder-Mead")
    sharpness, strange = np.exp(best.x[:2])
    return float(sharpness), float(strange), float(best.x[2])


def calibration(
    rows: Sequence[dict[str, Any]], fitted: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """Yield shares of the first answer, and how often it is right: an isotonic regression.

    Half a right and half a wrong answer are added to each point, so that none is certain.
    """
    cases = []
    for row in (row for row in rows if row["answer"]):
        stranger = without(row["sender"], row["distances"])
        for asked, weight in ((row["distances"], 1.0), (stranger, STRANGERS)):
            *shares, _ = probabilities(list(asked.values()), *fitted, UNCALIBRATED)
            best = min(asked, key=lambda name: asked[name])
            alike = (best, *ALIKE.get(best, ()))
            ranked = zip(asked, shares, strict=True)
            share = sum(share for name, share in ranked if name in alike)
            cases.append((share, float(row["sender"] in alike), weight))
    share, right, weight = np.array(sorted(cases)).T
    blocks = isotonic_regression(right, weights=weight).blocks
    for part in (slice(*ends) for ends in itertools.pairwise(blocks)):
        total = weight[part].sum()
        middle = share[part] @ weight[part] / total
        yield middle, (right[part] @ weight[part] + 0.5) / (total + 1)


def strangeness(row: dict[str, Any], fitted: Sequence[Any] = ()) -> tuple[float, bool]:
    """Return the probability of "none of these" without the sender among the candidates.

    The second value is whether it is the likeliest answer.
    """
    rest = without(row["sender"], row["distances"])
    *shares, none = probabilities(list(rest.values()), *fitted)
    best = min(rest, key=lambda name: rest[name])
    alike = (best, *ALIKE.get(best, ()))
    return none, none > sum(
        share for name, share in zip(rest, shares, strict=True) if name in alike
    )


def is_right(row: dict[str, Any]) -> bool:
    """Return whether the answer is the sender, or acts like it on a separate queue."""
    return row["answer"] in (row["sender"], *ALIKE.get(row["sender"], ()))


def page(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the curve."""
    yield "| Probability of the first | Captures | Mean probability | Right |"
    yield "| --- | ---: | ---: | ---: |"
    answered = [one for one in rows if one["answer"]]
    for low, high in itertools.pairwise(EDGES):
        inside = [
            one for one in answered
            if low <= one["probability"] < high or one["probability"] == high == 1.0
        ]  # fmt: skip
        if inside:
            mean = np.mean([one["probability"] for one in inside])
            span = f"{percent(low, 0)} to {percent(high, 0)}"
            yield f"| {span} | {len(inside)} | {percent(mean, 0)} | {_right(inside)} |"
    sure = [one for one in answered if one["probability"] >= SURE]
    yield ""
    yield (
        f"Of {len(rows)} captures, {len(sure)} get an answer with at least {percent(SURE, 0)}; of "
        f"these, {_right(sure)} are right. The first of the {len(answered)} ranked captures is "
        f"right in {_right(answered)}. {len(rows) - len(answered)} captures cannot be identified: "
        "they show no bottleneck or no RTT."
    )
    yield ""
    strange = np.mean([strangeness(one)[1] for one in answered])
    yield (
        'If the sender is left out of the candidates, "none of these" is the likeliest answer in '
        f"{percent(strange, 0)}."
    )
    yield ""
    yield "| Where and what | Captures | Ranked | First is right | At least 80 % | Right of these |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for words, chosen in KINDS.items():
        of_kind = [one for one in rows if chosen(one)]
        ranked = [one for one in of_kind if one["answer"]]
        sure = [one for one in ranked if one["probability"] >= SURE]
        counts = f"{len(of_kind)} | {len(ranked)} | {_right(ranked)}"
        yield f"| {words} | {counts} | {len(sure)} | {_right(sure)} |"


def _right(rows: Sequence[dict[str, Any]]) -> str:
    return percent(np.mean([is_right(one) for one in rows]), 0) if rows else "–"


if __name__ == "__main__":
    main()
