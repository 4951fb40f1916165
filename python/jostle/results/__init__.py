"""What finished runs answer: the ResultSet, its frames, tables and figures."""

from __future__ import annotations

from jostle.results.document import SCHEMA
from jostle.results.finished import OVERALL, Failure, FinishedRuns, Phase, Result
from jostle.results.result_set import ResultSet

__all__ = ["OVERALL", "SCHEMA", "Failure", "FinishedRuns", "Phase", "Result", "ResultSet"]
