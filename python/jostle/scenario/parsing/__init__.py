"""Parsing of scenario text: the TOML document, lines of its keys, quantities, problems."""
