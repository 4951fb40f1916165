"""Errors that a user can act on. Each knows the exit status that the command line ends with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_LEAST_SIMILARITY = 0.5
_MOST_SIMILAR = 5
_SHORTEST_PART = 3
"""Letters from which on a part of a name stands for the whole."""
_LONGEST_LINE = 2_000
"""Of what is printed; lists of all that is known have a thousand characters."""


def close_to(name: str, known: Iterable[str]) -> list[str]:
    """Return those of `known` that `name` may mean, whatever the case, the likeliest first."""
    import difflib

    folded = {each.casefold(): each for each in known}
    given = name.casefold()
    if given in folded:
        return [folded[given]]
    parts = [each for key, each in folded.items() if given in key]
    if parts and len(given) >= _SHORTEST_PART:
        return parts
    near = difflib.get_close_matches(given, folded, _MOST_SIMILAR, _LEAST_SIMILARITY)
    return [folded[key] for key in near]


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Say that there is no such thing, and what was probably meant."""
    names = list(dict.fromkeys(known))
    close = close_to(name, names)
    if close:
        return f"no {what} `{name}`; did you mean {' or '.join(f'`{c}`' for c in close)}?"
    return f"no {what} `{name}`: there is {', '.join(names) or 'none'}"


def brief(text: str) -> str:
    """Shorten lines that quote a file of other people at length, and leave others as they are."""
    lines = text.split("\n")
    return "\n".join(
        line
        if len(line) <= _LONGEST_LINE
        else f"{line[: _LONGEST_LINE // 2]} … {line[-_LONGEST_LINE // 4 :]}"
        for line in lines
    )


class JostleError(Exception):
    """Something that the user can act on; its text is the whole message."""

    exit_status = 1


class InputError(JostleError):
    """What the user gave cannot be used."""

    exit_status = 2


@contextmanager
def name_source(source: str) -> Iterator[None]:
    """Begin refusals with the name of the file, or the option, whose content is refused."""
    try:
        yield
    except InputError as error:
        # Subclasses are about something else, such as a store, or name their file already.
        if not source or type(error) is not InputError or str(error).startswith(source):
            raise
        raise InputError(f"{source}: {error}") from error


class EngineError(JostleError):
    """The compiled engine is missing or too old for this package."""


class StoreError(InputError):
    """The store's folder cannot be used."""


class StoreFullError(StoreError):
    """There is no room left for another run; everything stored before is intact."""

    exit_status = 1


class EmulationError(JostleError):
    """A link cannot be emulated here, or an emulation broke off."""


class RunCancelledError(JostleError):
    """A run was stopped before its end, because the user asked for it."""


class LostExecutorError(JostleError):
    """What carried runs out is gone, as Dask's scheduler; what was finished is stored.

    Parameters
    ----------
    kept
        Runs of the plan that are in the store; None without a store.
    total
        Runs of the plan, or of the shard.
    """

    def __init__(self, kept: int | None, total: int) -> None:
        runs = "nothing is kept without a store"
        if kept is not None:
            runs = (
                f"{kept} of {total} runs are in the store; start a scheduler and workers, and give "
                "the same command again to go on from there"
            )
        super().__init__(f"the scheduler was lost, and with it what it had been given: {runs}")


class InterruptedRunError(JostleError):
    """The user interrupted a plan; what was finished is stored.

    Parameters
    ----------
    kept
        Runs of the plan that are in the store; None without a store.
    total
        Runs of the plan, or of the shard.
    shard
        Which part of the plan was asked for; None if all of it.
    """

    exit_status = 130

    def __init__(self, kept: int | None, total: int, shard: object = None) -> None:
        runs = f"{total} runs" if shard is None else f"{total} runs of shard {shard}"
        if kept is None:
            text = f"interrupted: none of the {runs} is kept without a store"
        else:
            text = (
                f"interrupted: {kept} of {runs} are in the store; "
                "give the same command again to go on from there"
            )
        super().__init__(text)
        self.kept = kept
        self.total = total
