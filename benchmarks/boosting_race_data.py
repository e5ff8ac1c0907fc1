"""The datasets of the boosting race, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import problems
from experiments.datasets import load

if TYPE_CHECKING:
    from collections.abc import Callable


def optdigits() -> problems.Problem:
    """Digits, 64 features; every fourth row is for testing."""
    data = load("optdigits")
    return problems._divided("optdigits", data.X.astype(float), data.y, np.arange(len(data.y)) % 4 == 0)


def nhcd() -> problems.Problem:
    """Handwritten characters, 1,296 features; every fourth row is for testing."""
    data = load("nhcd")
    return problems._divided("nhcd", data.X.astype(float), data.y, np.arange(len(data.y)) % 4 == 0)


def table(n_classes: int = 60, n_rows: int = 12_000) -> problems.Problem:
    """A generated table: 20 numbers, a tenth of them missing, and 10 columns of 5 to 200 categories."""
    import pandas  # type: ignore[import-untyped]

    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_rows)
    X = rng.normal(size=(n_rows, 20)) + rng.normal(size=(n_classes, 20))[y]
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 0] = np.where(rng.random(n_rows) < (y % 3) / 4, np.nan, X[:, 0])  # being missing tells something
    columns: dict[str, Any] = {f"number {i}": X[:, i] for i in range(20)}
    for i, n_values in enumerate(np.linspace(5, 200, 10).astype(int)):
        usual = rng.integers(n_values, size=n_classes)[y]
        value = np.where(rng.random(n_rows) < 0.5, rng.integers(n_values, size=n_rows), usual)
        columns[f"category {i}"] = pandas.Categorical([f"c{v}" for v in value])
    frame, test = pandas.DataFrame(columns), np.arange(n_rows) % 4 == 0
    return problems.Problem("table", frame[~test], y[~test], frame[test], y[test])


def forest_cover(n_rows: int = 40_000) -> problems.Problem:
    """Rows of the shape of covtype: 10 numbers, 44 indicators, 7 classes of very different sizes."""
    rng = np.random.default_rng(0)
    y = rng.choice(7, size=n_rows, p=[0.365, 0.488, 0.061, 0.005, 0.016, 0.03, 0.035])
    soil = (5 * y + rng.integers(0, 14, size=n_rows)) % 40
    numbers = rng.normal(size=(n_rows, 10)) + rng.normal(size=(7, 10))[y] * rng.random(10)
    numbers[:, 1] = numbers[:, 0] * numbers[:, 2] + 0.3 * y
    X = np.hstack([numbers, np.eye(40)[soil], np.eye(4)[(y + rng.integers(0, 3, size=n_rows)) % 4]])
    return problems._divided("covtype-like", X, y, np.arange(n_rows) % 4 == 0)


DATA: dict[str, Callable[[], problems.Problem]] = {
    "optdigits": optdigits,
    "letter": problems.letter,
    "omniglot-100": lambda: problems.omniglot(100),
    "omniglot-400": lambda: problems.omniglot(400),
    "table": table,
    "covtype-like": forest_cover,
    "kanji_fonts-26": lambda: problems.kanji_fonts(26),
    "kanji_fonts-100": lambda: problems.kanji_fonts(100),
    "kanji_fonts-200": lambda: problems.kanji_fonts(200),
    "kanji_fonts-400": lambda: problems.kanji_fonts(400),
    "nhcd": nhcd,
    "omniglot-1623": problems.omniglot,
    "kanji_fonts-1600": lambda: problems.kanji_fonts(1600),
    "kanji_fonts-6355": problems.kanji_fonts,
}
