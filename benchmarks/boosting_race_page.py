"""The page and the figure of the boosting race."""

from __future__ import annotations


def write_page(done):
    pass
