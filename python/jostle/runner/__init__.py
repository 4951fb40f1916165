"""Carries out plans: sessions, executors, sweeps."""
