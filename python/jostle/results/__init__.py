"""Results of finished runs: the ResultSet, its frames, tables and figures."""

from __future__ import annotations

from jostle.results.compared_phase import OVERALL
from jostle.results.finished_runs import ConditionRun, Failure, FinishedRuns, Phase
from jostle.results.result_set import ResultSet
from jostle.results.summary_document import SCHEMA

__all__ = ["OVERALL", "SCHEMA", "ConditionRun", "Failure", "FinishedRuns", "Phase", "ResultSet"]
