"""Naive Bayes at the nodes of a tree from the statistics of classes."""
