"""Controllers written in Python: source files, digests, import and instantiation."""
