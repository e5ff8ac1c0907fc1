"""Grids as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.pages.grid import Grid


def render(grids: Sequence[Grid]) -> str:
    """All grids, as a list of objects."""
    return json.dumps([asdict(grid) for grid in grids], ensure_ascii=False, indent=1) + "\n"
