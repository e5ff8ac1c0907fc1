"""Kernels that search a tree for the most probable classes of each row."""
