"""Sweeps: commands that carry plans out in a store. Other shells show, stop and resume them."""
