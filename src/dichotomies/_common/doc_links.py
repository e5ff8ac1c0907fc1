"""Links to the documentation in the HTML representation of estimators."""

from __future__ import annotations

from typing import Any

#: Folder of the pages.
DOCS = "https://github.com/dichotomies/dichotomies/blob/main/docs/"


def documented(page: str) -> Any:
    """Class decorator: let scikit-learn's HTML representation link to a page."""

    def link(cls: Any) -> Any:
        cls._doc_link_module = "dichotomies"
        cls._doc_link_template = DOCS + page
        return cls

    return link
