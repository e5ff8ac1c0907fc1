"""Logistic regression at all nodes together, against one clone per node."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from benchmarks import problems
from benchmarks.against_clones import HEADER, race
from benchmarks.race import arguments, report

TEXT = """
# Logistic regression

How many times as long one scikit-learn clone per node takes on the same tree, by plain recursion. One
thread on either side; processor time. Both have scikit-learn's default parameters. Calibrated clones: three
folds, scikit- learn's own sigmoid, one more fit on all rows.
"""


def main() -> None:
    options = arguments(__doc__, repeats=3)
    warnings.simplefilter("ignore", ConvergenceWarning)  # of the clones
    cases = [
        ("dense", problems.letter()),
        ("dense", problems.omniglot()),
        ("dense", problems.kanji_fonts(1_000)),
        ("sparse", problems.text("onet_titles", weighted=True)),
        ("sparse", problems.text("wordnet", weighted=True, n_classes=1_500)),
    ]
    rows = [race(kind, problem, LogisticRegression(), repeats=options.repeats) for kind, problem in cases]
    report("logistic", TEXT, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
