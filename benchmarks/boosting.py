"""Boosted trees at all nodes together, against one clone of scikit-learn's per node."""

from __future__ import annotations

from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from benchmarks import problems
from benchmarks.against_clones import HEADER, race
from benchmarks.race import arguments, report
from dichotomies import HistAdaBoostClassifier

TEXT = """
# Boosted trees

How many times as long one clone of scikit-learn's `AdaBoostClassifier` per node takes on the same tree, by
plain recursion: fifty trees of depth 3, discrete boosting on both sides. One thread on either side;
processor time. Calibrated clones: three folds, scikit-learn's own sigmoid, one more fit on all rows.
"""


def main() -> None:
    options = arguments(__doc__, repeats=3)
    theirs = AdaBoostClassifier(DecisionTreeClassifier(max_depth=3, random_state=0), n_estimators=50)
    rows = [
        race("discrete AdaBoost", problem, HistAdaBoostClassifier(), theirs, repeats=options.repeats)
        for problem in (problems.letter(), problems.omniglot(100))
    ]
    report("boosting", TEXT, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
