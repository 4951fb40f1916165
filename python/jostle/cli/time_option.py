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
