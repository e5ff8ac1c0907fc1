"""From trained nodes to class probabilities."""
