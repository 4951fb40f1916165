"""Published values, by the runs and the measure that they describe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from jostle.studies.models import Value
from jostle.studies.study import Study

_NOT_COMPARED: Final = frozenset({"experiment", "where", "window", "display"})
_COMPARED: Final = tuple(name for name in Value.model_fields if name not in _NOT_COMPARED)

_Key = tuple[str, frozenset[int], tuple[Any, ...]]


@dataclass(frozen=True)
class _Published:
    key: _Key
    window: str
    number: float


class PublishedValues:
    """All values that the paper of a study publishes.

    They are the numbers with a published value and the claims about a number.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._all = [
            _Published(self._key(value), value.window, number)
            for value, number in (*_of_numbers(study), *_of_claims(study))
        ]

    def of(self, value: Value) -> float | None:
        """Return the published value, in the unit of tables; None if there is none."""
        return self.by_window(value).get(value.window)

    def by_window(self, value: Value) -> dict[str, float]:
        """Return the published values in all time windows, by name of the window."""
        key = self._key(value)
        return {one.window: one.number for one in self._all if one.key == key}

    def _key(self, value: Value) -> _Key:
        name, _ = self._study.experiment_of(value)
        compared = tuple(repr(getattr(value, field)) for field in _COMPARED)
        return name, frozenset(self._study.conditions(value)), compared


def _of_numbers(study: Study) -> Iterator[tuple[Value, float]]:
    for number in study.file.numbers:
        if number.published is None or number.statistic != "value":
            continue
        if not isinstance(number.published, dict):
            yield number, number.published
            continue
        assert number.measured_by is not None, "a table of published values is by a key"
        for label, published in number.published.items():
            where = {**number.where, number.measured_by: label}
            yield number.model_copy(update={"where": where}), published


def _of_claims(study: Study) -> Iterator[tuple[Value, float]]:
    for claim in study.file.claims:
        for part in claim.parts:
            if part.origin is not None and part.left is not None and isinstance(part.right, float):
                yield part.left, part.factor * part.right + part.margin
