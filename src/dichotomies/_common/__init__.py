"""Utilities shared by all packages: array types, registries, parallel loops, files."""
