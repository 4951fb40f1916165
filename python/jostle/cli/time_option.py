"""Parser of times with units in options."""

from __future__ import annotations

from jostle.errors import InputError


def seconds(option: str, text: str, otherwise: float) -> float:
    """Return the seconds of a time such as `1.5 s`, or `otherwise` if the text is empty.

    Raises
    ------
    InputError
        If the text is not a time.
    """
    from jostle.scenario.parsing.quantities import parse_span

    try:
        return parse_span(text) / 1e9 if text else otherwise
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error


def integer_seconds(option: str, text: str, least: int, most: int) -> int:
    """Return a time as a whole number of seconds.

    Raises
    ------
    InputError
        If the text is not a time, or not a whole number of seconds in this range.
    """
    value = seconds(option, text, 0.0)
    if value != int(value) or not least <= value <= most:
        raise InputError(f"{option} {text}: give whole seconds from {least} s to {most} s")
    return int(value)
