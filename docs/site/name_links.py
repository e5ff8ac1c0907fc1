"""Links from code words to the reference: `NestedDichotomyClassifier` leads to its page.

The pages are plain Markdown that also reads well in the repository; no markup is needed for a link.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

from docs.site.inventories import INVENTORIES
from docs.site.public import SECTIONS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: A name, perhaps of a module, perhaps called.
_NAME = re.compile(r"(?:[a-z_]+\.)*([A-Za-z_]\w+)(?:\(.*\))?", flags=re.DOTALL)
#: Names that are words of their own, or the name of several things.
_WORDS = {"Auto", "load", "save", "choose", "evaluate", "accuracy", "make", "resolve", "ledger", "Parameters"}


def targets() -> dict[str, str]:
    """Full names by the word that stands for them on the pages."""
    found = {}
    for inventory in INVENTORIES:
        for names in inventory.names.values():
            found |= {name.rpartition(".")[2]: name for name in names.split()}
    for section in SECTIONS:
        found |= {name: f"{section.module}.{name}" for name in section.names() if name not in _WORDS}
    return found


class NameLinks(SphinxTransform):
    """Turn literal text that is a public name into a reference."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        """Replace the literals that are not links or headings already."""
        known = targets()
        for literal in list(self.document.findall(nodes.literal)):
            match = _NAME.fullmatch(literal.astext())
            taken = isinstance(literal.parent, nodes.reference | nodes.title | pending_xref)
            if match and match[1] in known and not taken:
                self._link(literal, known[match[1]])

    def _link(self, literal: nodes.literal, name: str) -> None:
        reference = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=name, refexplicit=True, refdoc=self.env.docname
        )
        literal.replace_self(reference)
        reference += literal


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(NameLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
