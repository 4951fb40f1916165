"""Tests of the kernel backend. A package, so that its conftest is not taken for another."""
