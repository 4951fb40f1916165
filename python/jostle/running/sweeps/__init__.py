"""Sweeps: commands that carry plans out in a store, as other shells see, stop and resume them."""
