"""Recordings of links by other tools: parsing, extraction, summary, conversion and synthesis."""
