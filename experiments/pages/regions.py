"""Regions of a Markdown page that are made of results, replaced where they stand.

A region begins with a line ``<!-- table: NAME -->`` and ends with a line ``<!-- end -->``. Everything else
on the page is left as it is, to the last byte; what is put in ends its lines as the region's first line does.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from dichotomies.cli.failures import tell

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_BEGIN = re.compile(r"<!-- table: (?P<name>\S+) -->")
_END = "<!-- end -->"


def updated(page: str, contents: Mapping[str, str]) -> str:
    r"""The page with each region that `contents` names replaced, and the others as they were.

    Parameters
    ----------
    page : str
        The page's text.
    contents : mapping of str to str
        New text of the regions, by their names.

    Examples
    --------
    >>> from experiments.pages.regions import updated
    >>> print(updated("<!-- table: mine -->\nold\n<!-- end -->\n", {"mine": "new"}), end="")
    <!-- table: mine -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- end -->
    """
    made: list[str] = []
    inside: str | None = None
    for line in page.splitlines(keepends=True):
        begins = _BEGIN.fullmatch(line.strip())
        if begins and inside is not None:
            raise ValueError(f"The region {inside!r} has no line {_END!r} before the next one begins.")
        if begins:
            inside = begins["name"]
            made += [line, *_lines(contents, inside, line_end=line[len(line.rstrip("\r\n")) :])]
        elif line.strip() == _END:
            inside = None
        if not begins and (inside is None or inside not in contents):
            made.append(line)
    if inside is not None:
        raise ValueError(f"The region {inside!r} has no line {_END!r}.")
    return "".join(made)


def _lines(contents: Mapping[str, str], name: str, line_end: str) -> list[str]:
    """Lines of a region, with an empty line above and below."""
    lines = ["", *contents[name].strip("\n").splitlines(), ""] if name in contents else []
    return [line + line_end for line in lines]


def region_names(page: str) -> list[str]:
    """The names of the regions on a page, in their order."""
    found = (_BEGIN.fullmatch(line.strip()) for line in page.splitlines())
    return [match["name"] for match in found if match]


def check_page(path: Path) -> None:
    """Refuse, before anything is run, a page that could not be updated when it is finished."""
    updated(_text_of(path), {})  # raises where a region has no end
    if not may_write(path):
        raise PermissionError(f"The page {path} cannot be written to: see that the file is yours.")


def may_write(path: Path) -> bool:
    """Return True if a file can be written, or made where there is none."""
    return os.access(path if path.exists() else path.absolute().parent, os.W_OK)


def update_page(path: Path, contents: Mapping[str, str]) -> None:
    """Replace the regions of a page that `contents` names, and say which were left as they were."""
    text = _text_of(path)
    names = region_names(text)
    path.write_bytes(updated(text, contents).encode("utf-8"))
    missing = [name for name in names if name not in contents]
    tell(f"Replaced {len(names) - len(missing)} tables in {path}.")
    if missing:
        tell(f"Nothing in the store for {', '.join(missing)}: left as they were.")


def _text_of(path: Path) -> str:
    """A page with its line ends as they are."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no page {path} to update: name a Markdown file that marks tables.")
    return path.read_bytes().decode("utf-8")
