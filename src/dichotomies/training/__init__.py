"""Training the nodes of trees, calibrated inside and outside."""
