"""Calibrators of probabilities: binary at the nodes, multiclass over the classes."""
