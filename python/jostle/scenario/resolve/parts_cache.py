"""Cache of the parts of a scenario that do not change from one condition of a grid to the next."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, TypeVar

from jostle.scenario.models import LINK_TABLES, ScenarioFile
from jostle.scenario.parsing.problems import Report

__all__ = ["PartsCache", "exact_key"]

T = TypeVar("T")

_WITHOUT_REFERENCES: Final = 2
"""Version of `marshal` whose bytes depend on the value only, not on objects that it shares."""


def exact_key(value: Any) -> bytes | None:
    """Return a key that only equal values of equal types have; None if `value` is not plain data.

    Keys of tables count in their order, and `1`, `1.0` and `true` differ.
    """
    try:
        return marshal.dumps(value, _WITHOUT_REFERENCES)
    except ValueError:
        return None


class PartsCache:
    """Parts that were resolved without a problem, by everything on which they depend.

    A part is shared by all conditions that have it, so no caller may change it.
    """

    def __init__(self) -> None:
        self._parts: dict[Hashable, tuple[Any, object]] = {}

    def once(
        self, key: Hashable, report: Report, make: Callable[[], T], *, keep: object = None
    ) -> T:
        """Return `make()`, or its result for an earlier equal key.

        Parameters
        ----------
        key
            Everything on which the result depends. If it contains an `id`, pass the object as
            `keep`, so that no other object gets this `id`.
        report
            The problems that `make` reports. A result with a problem is not kept, because another
            condition has to report it again.
        make
            Resolves the part.
        keep
            Object to keep alive.
        """
        found = self._parts.get(key)
        if found is not None:
            part: T = found[0]
            return part
        before = report.count
        part = make()
        if report.count == before:
            self._parts[key] = part, keep
        return part

    def validated(self, document: Mapping[str, Any]) -> ScenarioFile:
        """Validate a document, except for links and flows that an earlier document had as well.

        Raises
        ------
        ValidationError
            If the document has problems.
        """
        filled = dict(document)
        new: list[tuple[Hashable, str, int | None]] = []

        def known(table: Any, field: str, index: int | None = None) -> Any:
            data = exact_key(table)
            if data is None:
                return table
            key = ("link" if index is None else field, data)
            model = self._parts.get(key)
            if model is None:
                new.append((key, field, index))
                return table
            return model[0]

        for field in LINK_TABLES:
            if field in filled:
                filled[field] = known(filled[field], field)
        for field in ("links", "flows"):
            if isinstance(filled.get(field), list):
                tables = enumerate(filled[field])
                filled[field] = [known(table, field, index) for index, table in tables]
        file = ScenarioFile.model_validate(filled)
        for key, field, index in new:
            value = getattr(file, field)
            self._parts[key] = (value if index is None else value[index]), None
        return file
