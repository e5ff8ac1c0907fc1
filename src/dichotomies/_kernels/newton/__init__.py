"""Logistic regression at the nodes of a tree by Newton steps."""
