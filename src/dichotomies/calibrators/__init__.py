"""How probabilities are corrected: at the nodes (binary) and at the classes (multiclass)."""
