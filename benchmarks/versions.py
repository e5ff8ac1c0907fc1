"""An earlier commit against the present one: the same problems, in processes that take turns.

``python -m benchmarks.versions COMMIT`` needs the repository's history. It runs the problems of
`benchmarks.naive_bayes`, `.logistic` and `.boosting`, without their clones; estimator, tree, calibrators and
folds are named, so that both versions do the same work. Results are stored: an interrupted run goes on where
it stopped.
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
from typing import TYPE_CHECKING

from benchmarks import problems
from benchmarks.race import Store, report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.problems import Problem

ROOT = Path(__file__).parent.parent
HEADER = ["learner", "data", "size", "fit", "fit with 3-fold Platt", "predict_proba", "predict_proba, Platt"]
TEXT = """
# This version against commit {commit}

Time of the earlier commit divided by ours: above 1, we are faster. Random tree, one thread, processor time,
warm; new processes of either version take turns, {repeats} each; the median of their ratios. Estimator, tree,
calibrators and folds are named, so that both do the same work; 2,000 rows are predicted. Cases that have not
been measured are left out. Fits of a few hundredths of a second, as of logistic regression on letter, are
mostly fixed costs.
"""

#: Runs in either version, so it uses only what both have.
_WORKER = """
import json, pickle, sys, warnings
from time import process_time
from inspect import signature
from threadpoolctl import threadpool_limits
from dichotomies import NestedDichotomyClassifier
from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

warnings.simplefilter("ignore")
name, settings, X, y, X_test = pickle.load(open(sys.argv[1], "rb"))
kind = globals()[name]
known = signature(kind).parameters
estimator = kind(**{key: value for key, value in settings.items() if key in known})

def seconds(work):
    work()  # compiles, and fills what is remembered
    begun = process_time()
    work()
    return process_time() - begun

found = []
with threadpool_limits(1):
    for internal in (None, "platt"):
        model = NestedDichotomyClassifier(
            estimator, "random", internal_calibration=internal, external_calibration=None, cv=3,
            random_state=0,
        )
        found.append((seconds(lambda: model.fit(X, y)), seconds(lambda: model.predict_proba(X_test))))
print(json.dumps([fit for fit, _ in found] + [predict for _, predict in found]))
"""

#: Gradient boosting as it was before there were other settings.
_SHALLOW: dict[str, object] = {
    "n_estimators": 50, "max_depth": 3, "learning_rate": 0.1, "l2_regularization": 0.0,
    "max_leaf_nodes": None, "min_child_weight": 1e-3, "subsample": 1.0, "max_tree_features": 1.0,
}  # fmt: skip


def cases() -> Iterator[tuple[str, str, dict[str, object], str, Callable[[], Problem]]]:
    """Name of the learner, class and settings of the estimator, name of the data, and the problem."""
    for name, problem in {
        "onet_titles": lambda: problems.text("onet_titles", weighted=False),
        "wordnet": lambda: problems.text("wordnet", weighted=False),
    }.items():
        yield "multinomial naive Bayes", "MultinomialNB", {}, name, problem
    for name, problem in {"omniglot": problems.omniglot, "kanji_fonts": problems.kanji_fonts}.items():
        yield "Gaussian naive Bayes", "GaussianNB", {}, name, problem
    for name, problem in {
        "letter": problems.letter,
        "omniglot": problems.omniglot,
        "kanji_fonts": lambda: problems.kanji_fonts(1_000),
    }.items():
        yield "logistic, dense", "LogisticRegression", {}, name, problem
    for name, problem in {
        "onet_titles": lambda: problems.text("onet_titles", weighted=True),
        "wordnet": lambda: problems.text("wordnet", weighted=True, n_classes=1_500),
    }.items():
        yield "logistic, sparse", "LogisticRegression", {}, name, problem
    for name, problem in {"letter": problems.letter, "omniglot": lambda: problems.omniglot(100)}.items():
        yield "AdaBoost", "HistAdaBoostClassifier", {}, name, problem
        yield "gradient boosting, depth 3", "HistGradientBoostClassifier", _SHALLOW, name, problem


def ratios(
    name: str, settings: dict[str, object], problem: Problem, sources: list[Path], repeats: int
) -> list[float]:
    """Times of the first version divided by those of the second, in the order of `HEADER`."""
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump((name, settings, problem.X, problem.y, problem.X_test[:2000]), file)
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
    parser.add_argument(
        "--learner", help="only the problems of this learner, or those whose name contains this"
    )
    parser.add_argument("--save", action="store_true", help="write what is stored to docs/benchmarks/")
    options = parser.parse_args()
    store = Store("versions")
    titles = []
    with tempfile.TemporaryDirectory() as folder:
        sources = [_checked_out(options.commit, Path(folder)), ROOT / "src"]
        for learner, name, settings, data, make in cases():
            titles.append(f"{options.commit}, {learner}, {data}")
            if titles[-1] in store or (options.learner or "") not in learner:
                continue
            problem = make()
            found = ratios(name, settings, problem, sources, options.repeats)
            store.keep(titles[-1], [learner, data, problem.size, *(f"{ratio:.2f}x" for ratio in found)])
    text = TEXT.format(commit=options.commit, repeats=options.repeats)
    report("versions", text, HEADER, [store[each] for each in titles if each in store], save=options.save)


if __name__ == "__main__":
    main()
