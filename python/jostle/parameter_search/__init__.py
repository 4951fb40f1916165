"""Questions that choose their runs: which keys matter, what is best, where claims end."""
