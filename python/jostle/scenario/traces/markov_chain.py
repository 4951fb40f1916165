"""Synthetic recordings from a Markov chain over the samples of a recording.

States are quantile bins of one column: the rate if there is one, else the first. Transitions have
the frequencies of the recording. Each step takes a random sample of its state with all of its
columns, so that rate, delay and loss stay together. This keeps the distribution of the recording
and its correlation across states; samples within a state are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.traces.recording import Column, Floats, Recording, check_steps

__all__ = ["MarkovChain", "chain_between_rates", "fit_chain"]

Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True)
class MarkovChain:
    """A Markov chain with recorded samples per state.

    Attributes
    ----------
    step_s
        Duration of a step.
    moves
        Transition probabilities, shape (states, states).
    often
        Probability of each state for the first step, shape (states,).
    members
        Indices of the samples of each state.
    columns
        Sampled columns.
    source
        File to which the chain was fitted.
    """

    step_s: float
    moves: Floats
    often: Floats
    members: tuple[Ints, ...]
    columns: tuple[Column, ...]
    source: str = "synthetic"

    def recording(self, duration_s: float, seed: int) -> Recording:
        """Generate a recording; the same seed gives the same recording.

        Raises
        ------
        QuantityError
            If the recording would have too many steps.
        """
        check_steps(duration_s / self.step_s, self.source)
        steps = max(1, round(duration_s / self.step_s))
        # Use uniform numbers only: their stream is the same in all versions of NumPy.
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


def fit_chain(recording: Recording, states: int) -> MarkovChain:
    """Fit a chain with at most `states` states to a recording.

    Parameters
    ----------
    recording
        Recording to imitate. Its samples are assumed to have equal length.
    states
        Maximum number of states; fewer if there are fewer distinct values.

    Raises
    ------
    QuantityError
        If the recording has no column of a rate, delay or loss, or too few samples.
    """
    if not recording.columns:
        raise QuantityError(f'trace "{recording.source}": no rate, delay or loss in it')
    first = next((c for c in recording.columns if c.quantity == "rate"), recording.columns[0])
    whole = ~np.any([np.isnan(one.values) for one in recording.columns], axis=0)
    # A lost probe has a loss but no delay: keep its row, with the previous delay.
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
    # From a state without a recorded transition, any state may follow.
    moves[moves.sum(axis=1) == 0] = often
    moves /= moves.sum(axis=1, keepdims=True)
    members = tuple(np.flatnonzero(state == one) for one in range(count))
    return MarkovChain(step_s, moves, often, members, columns, recording.source)


def chain_between_rates(rates_bps: Sequence[float], stay_s: float, step_s: float) -> MarkovChain:
    """Return a chain that keeps a rate for a mean time `stay_s`, then switches to another one."""
    count = len(rates_bps)
    leave = min(1.0, step_s / stay_s) if count > 1 else 0.0
    moves = np.full((count, count), leave / max(count - 1, 1))
    np.fill_diagonal(moves, 1 - leave)
    members = tuple(np.array([one]) for one in range(count))
    columns = (Column("rate", "rate", np.array(rates_bps, dtype=np.float64)),)
    return MarkovChain(step_s, moves, np.full(count, 1 / count), members, columns)


def _filled(column: Column) -> Column:
    present = np.flatnonzero(~np.isnan(column.values))
    at = np.searchsorted(present, np.arange(column.values.size), side="right") - 1
    return Column(column.name, column.quantity, column.values[present[np.maximum(at, 0)]])
