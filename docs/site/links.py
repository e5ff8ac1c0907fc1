"""Check the links inside the built site: every page, file and anchor that is pointed at must be there.

Run with ``python -m docs.site.links docs/_build/html``.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Anchors and links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect ids and what is pointed at."""
        named = dict(attrs)
        self.anchors |= {value for value in (named.get("id"), named.get("name")) if value}
        target = named.get("href") if tag in ("a", "link") else named.get("src")
        if target:
            self.links.append(target)


def broken_links(site: Path) -> list[str]:
    """Links that lead nowhere, each with the page that has it."""
    others = {site / "reports", site / "_static"}  # pages of their own, and templates of the theme
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html") if others.isdisjoint(path.parents)}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            is_there = target.is_file()
            # Sphinx links source code to the right page, but to one module's anchors only.
            is_source = "_modules" in path.parts
            if is_there and parts.fragment and target in pages and not is_source:
                is_there = unquote(parts.fragment) in pages[target].anchors
            if not is_there:
                found.append(f"{path.relative_to(site.resolve())}: {link}")
    return sorted(set(found))


def main() -> None:
    """Print the broken links and fail if there are any."""
    broken = broken_links(Path(sys.argv[1]))
    if broken:
        sys.exit("\n".join([f"{len(broken)} links inside the site lead nowhere:", *broken]))
    print("All links inside the site lead somewhere.")


if __name__ == "__main__":
    main()
