"""Where a file can be written: not over a folder, nor over what is no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def check_place(path: Path) -> None:
    """Refuse a place that no file can be moved to, and one where a device or a pipe would be replaced."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the path of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to save {path.name} in; make it first.")
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is a device or a pipe, which a file would replace; give the path of a file.")
