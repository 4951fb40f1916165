"""A scenario as text: the TOML document, where its keys stand, its quantities, its problems."""
