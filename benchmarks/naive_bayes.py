"""Naive Bayes at all nodes together, against one clone per node."""

from __future__ import annotations

from sklearn.naive_bayes import GaussianNB, MultinomialNB

from benchmarks import problems
from benchmarks.against_clones import HEADER, race
from benchmarks.race import arguments, report

TEXT = """
# Naive Bayes

How many times as long one scikit-learn clone per node takes on the same tree, by plain recursion. One
thread on either side; processor time. Calibrated clones: three folds, log-odds, scikit-learn's own sigmoid,
one more fit on all rows.
"""


def main() -> None:
    options = arguments(__doc__, repeats=9)
    cases = [
        ("multinomial", MultinomialNB(), problems.text("onet_titles", weighted=False)),
        ("multinomial", MultinomialNB(), problems.text("wordnet", weighted=False)),
        ("Gaussian", GaussianNB(), problems.omniglot()),
        ("Gaussian", GaussianNB(), problems.kanji_fonts()),
    ]
    rows = [race(kind, problem, model, repeats=options.repeats) for kind, model, problem in cases]
    report("naive_bayes", TEXT, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
