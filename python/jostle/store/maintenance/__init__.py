"""Looking after a store: checking, tidying up, converting it, and asking it in SQL."""

from __future__ import annotations
