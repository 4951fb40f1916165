"""Recordings that never were: a Markov chain of states, each with the samples that were seen in it.

States are shares of what the first column takes on, its rate if there is one, equally often each.
From a state the chain goes on as the recording did. A step's sample is one of those of its state at
random, with all of its columns, so that rate, delay and loss stay together. The distribution of the
recording is kept, and its memory as far as states remember it: within one, samples are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.scenario.text.units import QuantityError
from jostle.scenario.traces.recording import Column, Floats, Recording, check_steps

__all__ = ["Chain", "between", "fitted"]

Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True)
class Chain:
    """A Markov chain whose states hold samples.

    Attributes
    ----------
    step_s
        How long a sample lasts.
    moves
        Shape (states, states): with which probability one follows another.
    often
        Shape (states,): with which probability the first step is in it.
    members
        Samples of each state, as positions.
    columns
        What the samples are.
    source
        File that it was fitted to.
    """

    step_s: float
    moves: Floats
    often: Floats
    members: tuple[Ints, ...]
    columns: tuple[Column, ...]
    source: str = "synthetic"

    def recording(self, duration_s: float, seed: int) -> Recording:
        """Draw a recording; the same seed gives the same one.

        Raises
        ------
        QuantityError
            If it would have too many steps.
        """
        check_steps(duration_s / self.step_s, self.source)
        steps = max(1, round(duration_s / self.step_s))
        # Nothing but uniform numbers: their stream is the same in every version of NumPy.
        uniform = np.random.Generator(np.random.PCG64(seed)).random((steps, 2))
        reach = np.cumsum(self.moves, axis=1)
        state = int(np.searchsorted(np.cumsum(self.often), uniform[0, 0]))
        last = len(self.members) - 1
        chosen = np.empty(steps, dtype=np.int64)
        for step in range(steps):
            if step:
                state = int(np.searchsorted(reach[state], uniform[step, 0], side="right"))
            state = min(state, last)
            members = self.members[state]
            chosen[step] = members[int(uniform[step, 1] * members.size)]
        start_s: Floats = np.arange(steps, dtype=np.float64) * self.step_s
        columns = tuple(Column(one.name, one.quantity, one.values[chosen]) for one in self.columns)
        end_s: Floats = start_s + self.step_s
        return Recording("synthetic", "synthetic", start_s, end_s, columns)


def fitted(recording: Recording, states: int) -> Chain:
    """Fit a chain of at most so many states to a recording.

    Parameters
    ----------
    recording
        What the chain is to be like; its samples are taken to last equally long.
    states
        Of fewer different values there are fewer.

    Raises
    ------
    QuantityError
        If it has no column of a rate, a delay or a loss, or too few samples.
    """
    if not recording.columns:
        raise QuantityError(f'trace "{recording.source}": no rate, delay or loss in it')
    first = next((c for c in recording.columns if c.quantity == "rate"), recording.columns[0])
    whole = ~np.any([np.isnan(one.values) for one in recording.columns], axis=0)
    # A probe that was lost has no delay, and says so: its row stays, with the delay before it.
    columns = tuple(_filled(one) for one in recording.columns) if not whole.all() else None
    columns = columns or recording.columns
    values = next(one.values for one in columns if one.name == first.name)
    if values.size < 2:
        raise QuantityError(f'trace "{recording.source}": a single sample — nothing to be fitted')
    edges = np.unique(np.quantile(values, np.linspace(0, 1, states + 1)[1:-1]))
    found = np.searchsorted(edges, values, side="right")
    present, state = np.unique(found, return_inverse=True)
    count = present.size
    lasting = recording.end_s - recording.start_s
    step_s = float(np.median(lasting[lasting > 0]))
    joined = recording.start_s[1:] - recording.end_s[:-1] <= 0.01 * step_s
    moves = np.zeros((count, count))
    np.add.at(moves, (state[:-1][joined], state[1:][joined]), 1.0)
    often = np.bincount(state, minlength=count) / state.size
    # A state that nothing was seen to follow goes on anywhere.
    moves[moves.sum(axis=1) == 0] = often
    moves /= moves.sum(axis=1, keepdims=True)
    members = tuple(np.flatnonzero(state == one) for one in range(count))
    return Chain(step_s, moves, often, members, columns, recording.source)


def between(rates_bps: Sequence[float], stay_s: float, step_s: float) -> Chain:
    """Make a chain that stays at a rate for a time of mean `stay_s`, and takes any other then."""
    count = len(rates_bps)
    leave = min(1.0, step_s / stay_s) if count > 1 else 0.0
    moves = np.full((count, count), leave / max(count - 1, 1))
    np.fill_diagonal(moves, 1 - leave)
    members = tuple(np.array([one]) for one in range(count))
    columns = (Column("rate", "rate", np.array(rates_bps, dtype=np.float64)),)
    return Chain(step_s, moves, np.full(count, 1 / count), members, columns)


def _filled(column: Column) -> Column:
    present = np.flatnonzero(~np.isnan(column.values))
    at = np.searchsorted(present, np.arange(column.values.size), side="right") - 1
    return Column(column.name, column.quantity, column.values[present[np.maximum(at, 0)]])
