"""Controllers written in Python: found, digested, made."""
