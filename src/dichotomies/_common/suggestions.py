"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Sentence that suggests the closest name, to be appended to an error message; empty if none is close.

    Examples
    --------
    >>> from dichotomies._common.suggestions import did_you_mean
    >>> did_you_mean("isotoni", ["platt", "isotonic"]), did_you_mean("x", ["platt"])
    (" Did you mean 'isotonic'?", '')
    """
    close = get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
