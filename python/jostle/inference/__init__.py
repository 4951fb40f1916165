"""Inference from measurements: sender, network, and recommended settings."""
