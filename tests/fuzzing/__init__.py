"""Fuzzing of every reader of files through the public commands."""
