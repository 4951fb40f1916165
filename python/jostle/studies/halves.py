"""Which claims of a study are for the fit of its testbed, and which test what was fitted.

Drawn and not chosen: by figure and table of the paper, of each as many for one half as for the
other, and within each by the digest of a seed and the claim's name. The draw is decided by these
alone, and is the same wherever and whenever it is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from jostle.studies.study import Study


@dataclass(frozen=True)
class Halves:
    """Names of a study's claims.

    Attributes
    ----------
    fit
        Which may be seen by the fit.
    held_out
        Which test it.
    """

    fit: tuple[str, ...]
    held_out: tuple[str, ...]


def draw(study: Study, experiments: Collection[str], seed: int) -> Halves:
    """Draw the halves.

    Parameters
    ----------
    study
        The study.
    experiments
        Those whose claims take part; a claim about any other one does not.
    seed
        Of the draw.
    """
    taking_part = [
        claim.id
        for claim in study.file.claims
        if all(study.experiment_of(value)[0] in experiments for value in claim.values)
    ]
    places: dict[str, list[str]] = {}
    for name in taking_part:
        places.setdefault(_place(study, name), []).append(name)
    ordered = [
        name
        for place in sorted(places, key=lambda place: _digest(study, seed, f"figure {place}"))
        for name in sorted(places[place], key=lambda name: _digest(study, seed, name))
    ]
    # Every second one: of each figure half, and of all claims half.
    fit = set(ordered[::2])
    return Halves(
        tuple(name for name in taking_part if name in fit),
        tuple(name for name in taking_part if name not in fit),
    )


def _place(study: Study, claim: str) -> str:
    """Name the figure or table that a claim is about; empty if it is of the text alone."""
    return next((one.item for one in study.file.coverage if claim in one.ours), "")


def _digest(study: Study, seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {study.id} {name}".encode()).hexdigest()
