"""Numba loops: arrays in, `out` last, no Python objects."""
