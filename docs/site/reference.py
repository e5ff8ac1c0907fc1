"""Pages of the reference: one for each public module, with a table of its names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from docs.site.public import ROOMS, Room

if TYPE_CHECKING:
    from pathlib import Path

_INDEX = """
Reference
=========

Every public name, generated from the code. The :doc:`user guide </guide>` explains how they are used
together, the :doc:`gallery </examples/index>` shows them at work.

.. toctree::
   :maxdepth: 1

"""


def write_reference(folder: Path) -> None:
    """Write the pages, where their text has changed: Sphinx reads only those again."""
    folder.mkdir(exist_ok=True)
    pages = {room.module: page(room) for room in ROOMS}
    pages["index"] = _INDEX + "".join(f"   {name}\n" for name in pages)
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def page(room: Room) -> str:
    """The page of one module."""
    title = f"{room.title}: ``{room.module}``"
    lines = [title, "=" * len(title), "", f".. module:: {room.module}", ""]
    lines += [import_module(room.module).__doc__ or "", "", f"Guide: :doc:`/{room.page}`.", ""]
    for kind, heading in (("class", "Classes"), ("function", "Functions")):
        names = room.of_kind(kind)
        if names:
            lines += [heading, "-" * len(heading), "", ".. autosummary::", "   :toctree: generated"]
            lines += ["   :nosignatures:", "", *(f"   {name}" for name in names), ""]
    constants = room.of_kind("constant")
    if constants:
        lines += ["Registries and constants", "-" * 24, ""]
        lines += [line for name in constants for line in (f".. autodata:: {name}", "   :no-value:", "")]
    return "\n".join(lines)
