"""Split of a study's claims into those that fit its testbed and those that test the fit.

The split is deterministic: claims are ordered by figure or table of the paper and by a digest of
the seed and their names, and every second one is used in the fit. So half of the claims of each
figure are used in the fit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from jostle.studies.study import Study


@dataclass(frozen=True)
class ClaimSplit:
    """Names of a study's claims.

    Attributes
    ----------
    fit
        Claims for the fit.
    held_out
        Claims that test the fit.
    """

    fit: tuple[str, ...]
    held_out: tuple[str, ...]


def draw(study: Study, experiments: Collection[str], seed: int) -> ClaimSplit:
    """Split the claims.

    Parameters
    ----------
    study
        The study.
    experiments
        Experiments that are run; claims about other experiments are not used.
    seed
        Seed of the order.
    """
    taking_part = [
        claim.id
        for claim in study.file.claims
        if all(study.experiment_of(value)[0] in experiments for value in claim.values)
    ]
    places: dict[str, list[str]] = {}
    for name in taking_part:
        places.setdefault(_paper_item(study, name), []).append(name)
    ordered = [
        name
        for place in sorted(places, key=lambda place: _digest(study, seed, f"figure {place}"))
        for name in sorted(places[place], key=lambda name: _digest(study, seed, name))
    ]
    # Every second claim: half of each figure's claims, and half of all claims.
    fit = set(ordered[::2])
    return ClaimSplit(
        tuple(name for name in taking_part if name in fit),
        tuple(name for name in taking_part if name not in fit),
    )


def _paper_item(study: Study, claim: str) -> str:
    """Return the figure or table that a claim is about; empty if it is about the text."""
    return next((one.item for one in study.file.coverage if claim in one.ours), "")


def _digest(study: Study, seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {study.id} {name}".encode()).hexdigest()
