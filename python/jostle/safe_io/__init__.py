"""Reading of untrusted files and text, atomic writes, locks and scratch folders."""
