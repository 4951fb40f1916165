"""Carrying plans out: where runs happen, what is looked up, what is kept."""
