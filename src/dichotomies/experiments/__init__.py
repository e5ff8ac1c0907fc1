"""Experiments that can be stopped and resumed, and the tables made of them."""
