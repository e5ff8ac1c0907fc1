"""Every format shows the same numbers, in the same places."""

import json
import re
from html.parser import HTMLParser

import pytest

from experiments.pages import RENDERERS, terminal
from experiments.pages.grid import Grid, Line, Words
from experiments.reproduce.grids import grids, signed
from experiments.reproduce.tables import TABLES

GRID = Grid(
    "poor-nll/as-printed",
    "Caption with 5 % & more_",
    ("Dataset", "A", "B"),
    1,
    (
        Line((Words("letter"), Words("1.500 (0.10)", bold=True), Words("−2.0")), rule_above=True),
        Line((Words("paper, on x_y"), Words("13.14 (–)", muted=True), Words("", muted=True))),
    ),
)
PLAIN = [["Dataset", "A", "B"], ["letter", "1.500 (0.10)", "−2.0"], ["paper, on x_y", "13.14 (–)", ""]]


class TableReader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows, self.bold, self.classes = [], [], []
        self._tag = None

    def handle_starttag(self, tag, attributes):
        self.classes += [value for name, value in attributes if name == "class"]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
        self._tag = tag

    def handle_data(self, data):
        if self._tag in ("th", "td", "b") and data.strip():
            self.rows[-1][-1] += data
            if self._tag == "b":
                self.bold.append(data)


def from_markdown(text):
    lines = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [[re.sub(r"\*\*|</?sub>", "", cell) for cell in line] for line in cells]


def from_latex(text):
    rows = [line.removesuffix(r"\\") for line in text.splitlines() if line.endswith(r"\\")]
    plain = [re.sub(r"\\text(bf|color\{gray\})\{(.*?)\}", r"\2", row) for row in rows]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)&", row)] for row in plain]
    back = {"$-$": "−", "--": "–", r"\_": "_"}
    for old, new in back.items():
        cells = [[cell.replace(old, new) for cell in row] for row in cells]
    return cells


def from_terminal(text):
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if re.search(r"\w", line)]
    return [line + [""] * (3 - len(line)) for line in lines if len(line) > 1]


def from_json(text):
    (grid,) = json.loads(text)
    return [grid["header"], *([words["text"] for words in line["words"]] for line in grid["lines"])]


def from_html(text):
    reader = TableReader()
    reader.feed(text)
    return reader.rows


READERS = {
    "markdown": from_markdown,
    "latex": from_latex,
    "html": from_html,
    "terminal": from_terminal,
    "json": from_json,
}


@pytest.mark.parametrize("name", RENDERERS)
def test_what_is_rendered_reads_back_as_it_was(name):
    assert READERS[name](RENDERERS[name]([GRID])) == PLAIN


def test_bold_and_muted_words_are_marked():
    assert "| **1.500 (0.10)** | −2.0 |" in RENDERERS["markdown"]([GRID])
    assert "<sub>13.14 (–)</sub>" in RENDERERS["markdown"]([GRID])
    assert r"\textbf{1.500 (0.10)} & $-$2.0" in RENDERERS["latex"]([GRID])
    assert r"\textcolor{gray}{13.14 (--)}" in RENDERERS["latex"]([GRID])
    page = TableReader()
    page.feed(RENDERERS["html"]([GRID]))
    assert page.bold == ["1.500 (0.10)"]
    assert page.classes.count("muted") == 2
    assert "\x1b[1m1.500 (0.10)" in terminal.render([GRID], colour=True)
    assert "\x1b" not in terminal.render([GRID])


def test_latex_escapes_what_it_would_misread():
    assert r"Caption with 5 \% \& more\_" in RENDERERS["latex"]([GRID])


def test_latex_sets_sentences_as_paragraphs():
    grid = Grid("x", "", ("a", "b", "c"), 2, (Line((Words("word"), Words("word " * 20), Words("1"))),))
    assert r"\begin{tabular}{lp{0.25\linewidth}c}" in RENDERERS["latex"]([grid])


def test_html_escapes_what_it_would_misread():
    grid = Grid("x", "a < b", ("c & d",), 1, (Line((Words("<script>"),)),))
    text = RENDERERS["html"]([grid])
    assert "<script>" not in text
    assert from_html(text) == [["c & d"], ["<script>"]]


@pytest.mark.parametrize("name", RENDERERS)
def test_every_number_of_the_results_is_in_every_format(name, make_result):
    results = [make_result(nll=1.2344, accuracy=0.4321), make_result(nll=21.5678, dataset="nhcd")]
    text = RENDERERS[name](grids(results, list(TABLES.values()), ["as-numbers-imply"]))
    for shown in ("1.234 (", "21.57 (", "2.338 (0.08)", "13.14 (0.59)", "0.432 ("):
        assert shown in text
    assert "13.8" in text  # (1.2344 - 2.338) / 0.08
    assert "1 of 2" not in text  # NLL and accuracy both differ by more than two deviations


def test_differences_have_a_sign_unless_they_vanish():
    assert [signed(x) for x in (0.04, -0.04, 2.25, -17.0)] == ["0.0", "0.0", "+2.2", "−17.0"]
