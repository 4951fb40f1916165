"""Times with their units, as options have them."""

from __future__ import annotations

from jostle.errors import InputError


def seconds(option: str, text: str, otherwise: float) -> float:
    """Read a time such as `1.5 s`; another one if there is no text.

    Raises
    ------
    InputError
        When it is none.
    """
    from jostle.scenario.text.units import parse_span

    try:
        return parse_span(text) / 1e9 if text else otherwise
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error
