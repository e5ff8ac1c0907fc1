"""Markdown pages whose marked regions are made of results."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dichotomies.cli.printing import tell
from dichotomies.experiments import page

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def check(path: Path) -> None:
    """Refuse, before anything is run, a page that could not be updated when it is finished."""
    page.updated(_text_of(path), {})  # raises where a region has no end
    if not may_write(path):
        raise PermissionError(f"The page {path} cannot be written to: see that the file is yours.")


def may_write(path: Path) -> bool:
    """Whether a file can be written, or made where there is none."""
    return os.access(path if path.exists() else path.absolute().parent, os.W_OK)


def update(path: Path, contents: Mapping[str, str]) -> None:
    """Replace the regions of a page that `contents` names, and say which were left as they were."""
    text = _text_of(path)
    names = page.regions(text)
    path.write_bytes(page.updated(text, contents).encode("utf-8"))
    missing = [name for name in names if name not in contents]
    tell(f"Replaced {len(names) - len(missing)} tables in {path}.")
    if missing:
        tell(f"Nothing in the store for {', '.join(missing)}: left as they were.")


def _text_of(path: Path) -> str:
    """A page with its line ends as they are."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no page {path} to update: name a Markdown file that marks tables.")
    return path.read_bytes().decode("utf-8")
