"""A congestion-control laboratory."""
