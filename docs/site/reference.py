"""Pages of the reference: one for each public module, with a table of its names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from docs.site.public import SECTIONS, Section

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
    pages = {section.module: page(section) for section in SECTIONS}
    pages["index"] = _INDEX + "".join(f"   {name}\n" for name in pages)
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def page(section: Section) -> str:
    """The page of one module."""
    title = f"{section.title}: ``{section.module}``"
    lines = [title, "=" * len(title), "", f".. module:: {section.module}", ""]
    lines += [import_module(section.module).__doc__ or "", "", f"Guide: :doc:`/{section.page}`.", ""]
    for kind, heading in (("class", "Classes"), ("function", "Functions")):
        names = section.of_kind(kind)
        if names:
            lines += [heading, "-" * len(heading), "", ".. autosummary::", "   :toctree: generated"]
            lines += ["   :nosignatures:", "", *(f"   {name}" for name in names), ""]
    constants = section.of_kind("constant")
    if constants:
        lines += ["Registries and constants", "-" * 24, ""]
        lines += [line for name in constants for line in (f".. autodata:: {name}", "   :no-value:", "")]
    return "\n".join(lines)
