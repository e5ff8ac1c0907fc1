"""Speed claims, one command each; every number is a ratio of two sides measured in one run."""
