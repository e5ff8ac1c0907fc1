"""Formatting of numbers, names and labels for readers."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Maximum length of names, so that the page stays small with a thousand of them.
LONGEST_NAME = 160
LONGEST_EXAMPLE = 400

_NO_BREAK = "\u00a0"


def percent(share: float, digits: int = 0) -> str:
    """Format a share in per cent; 100 % and 0 % only if exact."""
    if np.isnan(share):
        return "–"
    text = f"{100 * share:.{digits}f}"
    if digits < 3 and ((float(text) == 100 and share < 1) or (float(text) == 0 and share > 0)):
        return percent(share, digits + 1)
    if digits >= 3 and float(text) in (0, 100) and share not in (0, 1):
        return f"{'under' if share < 0.5 else 'over'} {'0.001' if share < 0.5 else '99.999'}{_NO_BREAK}%"
    return f"{text}{_NO_BREAK}%"


def percents(lower: float, upper: float, digits: int = 0) -> str:
    """Format an interval of shares."""
    return f"{percent(lower, digits)} to {percent(upper, digits)}"


def count(n: float) -> str:
    """Format a number of rows, which need not be an integer with weights."""
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.1f}"


def plural(n: float, one: str, many: str) -> str:
    """Format a number with the singular or plural of its unit."""
    return f"{count(n)} {one if n == 1 else many}"


def name_of(label: Any) -> str:
    """Format a class label: never empty, and of limited length."""
    text = str(label.item() if isinstance(label, np.generic) else label)
    return _cut(text, LONGEST_NAME) if text.strip() else repr(text)


def example_text(example: Any) -> str:
    """Format the user's name of a row."""
    return _cut(str(example), LONGEST_EXAMPLE)


def _cut(text: str, longest: int) -> str:
    readable = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be encoded
    return readable if len(readable) <= longest else readable[: longest - 1] + "…"
