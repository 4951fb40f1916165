"""What finished runs answer: the ResultSet, its frames, tables and figures."""

from __future__ import annotations

from jostle.results.result_set import OVERALL, SCHEMA, Failure, Phase, Result, ResultSet

__all__ = ["OVERALL", "SCHEMA", "Failure", "Phase", "Result", "ResultSet"]
