"""An earlier commit against the present one: the same problems, in processes that take turns.

``python -m benchmarks.versions COMMIT`` needs the repository's history. It runs the problems of
`benchmarks.naive_bayes`, `.logistic` and `.boosting`, without their clones.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from benchmarks import problems
from benchmarks.race import report
from dichotomies import HistAdaBoostClassifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.problems import Problem

ROOT = Path(__file__).parent.parent
HEADER = ["learner", "data", "size", "fit", "fit with 3-fold Platt", "predict_proba", "predict_proba, Platt"]
TEXT = """
# This version against commit {commit}

Time of the earlier commit divided by ours: above 1, we are faster. Random tree, one thread, processor time,
warm; new processes of either version take turns, {repeats} each; the median of their ratios.
"""

#: Runs in either version, so it uses only what both have.
_WORKER = """
import json, pickle, sys, warnings
from time import process_time
from threadpoolctl import threadpool_limits
from dichotomies import NestedDichotomyClassifier

warnings.simplefilter("ignore")
estimator, X, y, X_test = pickle.load(open(sys.argv[1], "rb"))

def seconds(work):
    work()  # compiles, and fills what is remembered
    begun = process_time()
    work()
    return process_time() - begun

found = []
with threadpool_limits(1):
    for internal in (None, "platt"):
        model = NestedDichotomyClassifier(
            estimator, "random", internal_calibration=internal, external_calibration=None, random_state=0
        )
        found.append((seconds(lambda: model.fit(X, y)), seconds(lambda: model.predict_proba(X_test))))
print(json.dumps([fit for fit, _ in found] + [predict for _, predict in found]))
"""


def cases() -> Iterator[tuple[str, Any, Problem]]:
    """Name of the learner, estimator, problem."""
    yield "multinomial naive Bayes", MultinomialNB(), problems.text("onet_titles", weighted=False)
    yield "multinomial naive Bayes", MultinomialNB(), problems.text("wordnet", weighted=False)
    yield "Gaussian naive Bayes", GaussianNB(), problems.omniglot()
    yield "Gaussian naive Bayes", GaussianNB(), problems.kanji_fonts()
    yield "logistic, dense", LogisticRegression(), problems.letter()
    yield "logistic, dense", LogisticRegression(), problems.omniglot()
    yield "logistic, dense", LogisticRegression(), problems.kanji_fonts(1_000)
    yield "logistic, sparse", LogisticRegression(), problems.text("onet_titles", weighted=True)
    yield "logistic, sparse", LogisticRegression(), problems.text("wordnet", weighted=True, n_classes=1_500)
    yield "AdaBoost", HistAdaBoostClassifier(), problems.letter()
    yield "AdaBoost", HistAdaBoostClassifier(), problems.omniglot(100)


def ratios(estimator: Any, problem: Problem, sources: list[Path], repeats: int) -> list[float]:
    """Times of the first version divided by those of the second, in the order of `HEADER`."""
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump((estimator, problem.X, problem.y, problem.X_test[:2000]), file)
        file.flush()
        pairs = [[_times(source, file.name) for source in sources] for _ in range(repeats)]
    found = [[old / new for old, new in zip(*pair, strict=True)] for pair in pairs]
    return [median(column) for column in zip(*found, strict=True)]


def _times(source: Path, problem: str) -> list[float]:
    environment = os.environ | {"PYTHONPATH": str(source)}
    command = [sys.executable, "-c", _WORKER, problem]
    done = subprocess.run(command, env=environment, cwd=source, stdout=subprocess.PIPE, check=True, text=True)
    times: list[float] = json.loads(done.stdout)
    return times


def _checked_out(commit: str, folder: Path) -> Path:
    """The package at a commit, extracted to `folder`."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the earlier version")
    parser.add_argument("--repeats", type=int, default=3, help="processes of either version")
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        sources = [_checked_out(options.commit, Path(folder)), ROOT / "src"]
        for title, estimator, problem in cases():
            found = ratios(estimator, problem, sources, options.repeats)
            rows.append([title, problem.name, problem.size, *(f"{ratio:.2f}x" for ratio in found)])
            print(*rows[-1], sep=" | ", flush=True)
    text = TEXT.format(commit=options.commit, repeats=options.repeats)
    report("versions", text, HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
