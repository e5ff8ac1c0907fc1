"""Plumbing shared by every room: array types, registries, parallel loops."""
