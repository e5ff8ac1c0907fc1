"""Rendering of the content dictionary as one self-contained HTML page, and `Report`, which holds it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np

from dichotomies._common.atomic_files import replaced_when_done

#: Maximum length of names, so that the page stays small with a thousand of them.
LONGEST_NAME = 160
LONGEST_EXAMPLE = 400

_NO_BREAK = "\u00a0"


def percent(share: float, digits: int = 0) -> str:
    """Format a share in per cent; 100 % and 0 % only if exact."""
    if np.isnan(share):
        return "–"
    text = f"{100 * share:.{digits}f}"
    if digits < 3 and ((float(text) == 100 and share < 1) or (float(text) == 0 and share > 0)):
        return percent(share, digits + 1)
    if digits >= 3 and float(text) in (0, 100) and share not in (0, 1):
        return f"{'under' if share < 0.5 else 'over'} {'0.001' if share < 0.5 else '99.999'}{_NO_BREAK}%"
    return f"{text}{_NO_BREAK}%"


def percents(lower: float, upper: float, digits: int = 0) -> str:
    """Format an interval of shares."""
    return f"{percent(lower, digits)} to {percent(upper, digits)}"


def count(n: float) -> str:
    """Format a number of rows, which need not be an integer with weights."""
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.1f}"


def plural(n: float, one: str, many: str) -> str:
    """Format a number with the singular or plural of its unit."""
    return f"{count(n)} {one if n == 1 else many}"


def name_of(label: Any) -> str:
    """Format a class label: never empty, and of limited length."""
    text = str(label.item() if isinstance(label, np.generic) else label)
    return _cut(text, LONGEST_NAME) if text.strip() else repr(text)


def example_text(example: Any) -> str:
    """Format the user's name of a row."""
    return _cut(str(example), LONGEST_EXAMPLE)


def _cut(text: str, longest: int) -> str:
    readable = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be encoded
    return readable if len(readable) <= longest else readable[: longest - 1] + "…"


#: Concatenated to one script in this order; each uses definitions of those before it.
_SCRIPTS = ("common.js", "reliability.js", "acceptance.js", "tree.js", "search.js", "scrolling.js")
_FRAME_HEIGHT = 760


@dataclass(frozen=True, repr=False)
class Report:
    """A finished report; notebooks display it inline.

    Attributes
    ----------
    html : str
        The page: one HTML document with its styles, scripts and data.
    content : dict
        The content of the page, as plain texts, lists and numbers.
    """

    html: str
    content: dict[str, Any] = field(compare=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, and return its `path`.

        The file appears whole or not at all: a report that was there before is replaced only by a complete
        one.
        """
        with replaced_when_done(path) as unfinished:
            unfinished.write_text(self.html, encoding="utf-8", newline="\n")
        return Path(path)

    def _repr_html_(self) -> str:
        """Return the page in an iframe, so that its styles and the notebook's stay separate."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="{html.escape(self.content["title"])}" '
            f'sandbox="allow-scripts allow-popups allow-modals" loading="lazy" '
            f'style="width: 100%; height: {_FRAME_HEIGHT}px; border: 1px solid #8884; border-radius: 8px">'
            "</iframe>"
        )

    def __repr__(self) -> str:
        size = len(self.html.encode()) / 1e6
        return f"<Report: {self.content['subtitle']}, {size:.1f} MB; save(path) writes it as HTML>"


def require_jinja2() -> Any:
    """Import the template engine; raise with installation instructions if it is missing."""
    try:
        return import_module("jinja2")
    except ImportError as error:
        raise ImportError("A report needs jinja2: pip install 'dichotomies[report]'.") from error


def page_of(content: dict[str, Any]) -> str:
    """Render the HTML page."""
    jinja2 = require_jinja2()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    script = "\n".join(_asset("assets", name) for name in _SCRIPTS)
    library, theme_script = _asset("vendor", "echarts.min.js"), _asset("assets", "theme.js")
    page: str = environment.from_string(_asset("assets", "page.html")).render(
        {**content, "data": as_json(content["data"])},
        policy=_policy(theme_script, library, script),
        style=_asset("assets", "style.css"),
        theme_script=theme_script,
        library=library,
        script=script,
    )
    return page


def as_json(data: Any) -> str:
    """Return JSON that is safe inside a script element: no character can end the element or open another."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(*scripts: str) -> str:
    """Return the content security policy: only these scripts, and no network access."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(folder: str, name: str) -> str:
    text = resources.files("dichotomies.report").joinpath(folder, name).read_text(encoding="utf-8")
    # HTML parsers normalise these line endings, which would change the script's digest.
    return text.replace("\r\n", "\n")
