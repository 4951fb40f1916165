"""Flows that open one after the other, as studies look at them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jostle
import polars as pl
import pytest
from jostle.scenario import parse
from jostle.studies.windows import RunView

STUDIES = Path(__file__).parents[2] / "studies"
