"""Standard output: tables for people, one JSON document for programs."""

import json
import math
import sys
from collections.abc import Sequence
from typing import Any


def print_json(document: Any) -> None:
    """Print one JSON document; NaN and infinity become null."""
    print(json.dumps(_plain(document), ensure_ascii=False, indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with text in the first column and numbers in the others; lines are never wrapped."""
    lines = [columns, *rows]
    full = [line for line in lines if len(line) == len(columns)]
    widths = [max(len(line[place]) for line in full) for place in range(len(columns))]
    widths[0] = max(len(line[0]) for line in lines)
    for line in lines:
        if len(line) < len(columns):
            print(f"{line[0].ljust(widths[0])}  {line[1]}")
            continue
        cells = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join([line[0].ljust(widths[0]), *cells]).rstrip())


def printable(text: str) -> str:
    """Return a text without control characters, by which labels could command a terminal."""
    return "".join(mark if mark.isprintable() or mark == "\n" else repr(mark)[1:-1] for mark in text)


def tell(text: str) -> None:
    """Print a message to stderr."""
    print(text, file=sys.stderr, flush=True)


def plural(number: int, thing: str) -> str:
    """Format a count with the singular or plural of its unit."""
    if number == 1:
        return f"1 {thing}"
    return f"{number:,} {thing}{'es' if thing.endswith('s') else 's'}"


def size_of(n_bytes: int) -> str:
    """Format a number of bytes."""
    for unit, size in {"MB": 1e6, "kB": 1e3}.items():
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"
