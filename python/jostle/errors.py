"""Errors for the user. Each has the exit status with which the command line ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_LEAST_SIMILARITY = 0.5
_MOST_SIMILAR = 5
_SHORTEST_PART = 3
"""Minimum length of a partial name that is accepted as a match."""
_LONGEST_LINE = 2_000
"""Maximum length of a printed line; lists of known names have up to a thousand characters."""


def close_to(name: str, known: Iterable[str]) -> list[str]:
    """Return the names in `known` that `name` may mean, ignoring case, the most similar first."""
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


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """Return a message that a name does not exist, with the most similar names."""
    names = list(dict.fromkeys(known))
    close = close_to(name, names) if isinstance(name, str) else []
    if close:
        return f"no {what} `{name}`; did you mean {' or '.join(f'`{c}`' for c in close)}?"
    return f"no {what} `{name}`: there is {', '.join(names) or 'none'}"


def brief(text: str) -> str:
    """Shorten very long lines, such as quotations of untrusted files."""
    lines = text.split("\n")
    return "\n".join(
        line
        if len(line) <= _LONGEST_LINE
        else f"{line[: _LONGEST_LINE // 2]} … {line[-_LONGEST_LINE // 4 :]}"
        for line in lines
    )


class JostleError(Exception):
    """Base class of errors that the user can fix; the text is the complete message."""

    exit_status = 1


class InputError(JostleError):
    """The user's input is invalid."""

    exit_status = 2


@contextmanager
def name_source(source: str) -> Iterator[None]:
    """Begin refusals with the name of the file, or the option, whose content is refused."""
    try:
        yield
    except InputError as error:
        # Subclasses are about something else, such as a store, or name their file already.
        kind = type(error)
        named = not source or str(error).startswith(source)
        if named or kind not in (InputError, FailedRunsError):
            raise
        raise kind(f"{source}: {error}") from error


class FailedRunsError(InputError):
    """All runs failed, so that there is nothing to show; the text says why they failed."""

    exit_status = 1


class EngineError(JostleError):
    """The compiled engine is missing or too old for this package."""


class StoreError(InputError):
    """The store's folder cannot be used."""


class StoreFullError(StoreError):
    """The store has no space for another run; all stored runs are intact."""

    exit_status = 1


class EmulationError(JostleError):
    """A link cannot be emulated here, or an emulation was aborted."""


class RunCancelledError(JostleError):
    """A run was cancelled by the user before its end."""


class LostExecutorError(JostleError):
    """The executor was lost, such as Dask's scheduler; finished runs are stored.

    Parameters
    ----------
    kept
        Number of the plan's runs that are in the store; None without a store.
    total
        Number of runs of the plan, or of the shard.
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
    """The user interrupted a plan; finished runs are stored.

    Parameters
    ----------
    kept
        Number of the plan's runs that are in the store; None without a store.
    total
        Number of runs of the plan, or of the shard.
    shard
        Requested shard of the plan; None for all runs.
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
