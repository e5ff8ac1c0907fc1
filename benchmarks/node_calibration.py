"""Calibrating all nodes of a tree together, against a loop of scikit-learn calibrators over the nodes."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from threadpoolctl import threadpool_limits

from benchmarks.race import arguments, ratio, report
from dichotomies.calibrators.binary import BINARY, Segments
from dichotomies.structures import STRUCTURES
from experiments.datasets import load

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, LabelArray
    from dichotomies.calibrators.binary import ScoreMaps

TEXT = """
# Calibration of the nodes

How many times as long a loop takes that fits one scikit-learn calibrator at every node
(`_SigmoidCalibration`, `IsotonicRegression`), and how many times as long the loop takes to calibrate the
same scores with them. The nodes are those of a random tree over the dataset's classes, with every row at
every node of its path; the scores are drawn, too sure by a factor of 2. One thread on either side, sorting
included. Of the largest case scikit-learn does 100 of the 5,000 nodes, and its time is multiplied by 50.
The difference is that of probabilities, where scikit-learn's isotonic regression does not answer 0 or 1.
"""

REFERENCES = {"platt": _SigmoidCalibration, "isotonic": partial(IsotonicRegression, out_of_bounds="clip")}


def tree_segments(y: LabelArray, rng: np.random.Generator) -> Segments:
    """A random tree's nodes with their rows, and scores as an overconfident scorer gives them."""
    tree = STRUCTURES.create("random").grow(None, y, random_state=0)
    codes = np.unique(y, return_inverse=True)[1]
    ends = np.concatenate([[0], np.cumsum(np.bincount(codes)[tree.leaf_order])])
    begin, middle, end = ends[tree.start], ends[tree.split], ends[tree.stop]
    offsets = np.concatenate([[0], np.cumsum(end - begin)])
    position = np.arange(offsets[-1]) - np.repeat(offsets[:-1], end - begin)
    targets = position < np.repeat(middle - begin, end - begin)
    return Segments(_too_sure(targets, rng), targets, offsets)


def equal_segments(m: int, size: int, rng: np.random.Generator) -> Segments:
    """M nodes of the same number of rows."""
    targets = rng.random(m * size) < 0.5
    return Segments(_too_sure(targets, rng), targets, np.arange(m + 1) * size)


def first_nodes(segments: Segments, m: int) -> Segments:
    """The first m of the nodes."""
    n = segments.offsets[m]
    return Segments(segments.scores[:n], segments.targets[:n], segments.offsets[: m + 1])


def _too_sure(targets: BoolArray, rng: np.random.Generator) -> FloatArray:
    log_odds = np.where(targets, 1.0, -1.0) + rng.normal(scale=np.sqrt(2), size=len(targets))
    return 2 * log_odds + 0.5


def _slices(segments: Segments) -> list[slice]:
    return [slice(*bounds) for bounds in pairwise(segments.offsets.tolist())]


def fit_loop(name: str, segments: Segments) -> list[Any]:
    """One scikit-learn calibrator per node."""
    y = segments.targets.astype(np.float64)
    return [REFERENCES[name]().fit(segments.scores[rows], y[rows]) for rows in _slices(segments)]


def predict_loop(calibrators: list[Any], segments: Segments) -> Any:
    """Calibrated probabilities, node after node."""
    parts = zip(calibrators, _slices(segments), strict=True)
    return np.concatenate([calibrator.predict(segments.scores[rows]) for calibrator, rows in parts])


def fit_together(name: str, segments: Segments) -> ScoreMaps:
    """All nodes at once; nothing is remembered from the last time, such as the order of the scores."""
    fresh = Segments(segments.scores, segments.targets, segments.offsets)
    return BINARY.create(name).fit_segments(fresh)


def _race(name: str, segments: Segments, sample: Segments, repeats: int) -> list[object]:
    """How much faster fitting and predicting are, and how far the answers differ."""
    part = len(segments) / len(sample)
    maps, calibrators = fit_together(name, segments), fit_loop(name, sample)
    fit = ratio(lambda: fit_together(name, segments), lambda: fit_loop(name, sample), repeats)
    predict = ratio(
        lambda: expit(maps.apply_segments(segments)), lambda: predict_loop(calibrators, sample), repeats
    )
    theirs = predict_loop(calibrators, sample)
    ours = expit(maps.apply_segments(segments))[: len(theirs)]
    away = (theirs > 0) & (theirs < 1)
    difference = np.abs(ours - theirs)[away].max()
    return [f"{part * fit:.0f}", f"{part * predict:.0f}", f"{difference:.0e}"]


def main() -> None:
    options = arguments(__doc__)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    cases = {name: tree_segments(load(name).y, rng) for name in ("omniglot", "wordnet")}
    cases["drawn"] = equal_segments(5_000, 1_000, rng)
    rows: list[list[object]] = []
    for name in ("platt", "isotonic"):
        for data, segments in cases.items():
            sample = first_nodes(segments, 100) if data == "drawn" else segments
            with threadpool_limits(1):
                result = _race(name, segments, sample, options.repeats)
            rows.append([data, f"{len(segments):,}", f"{len(segments.scores):,}", name, *result])
            print(*rows[-1])
    header = ["data", "nodes", "scores", "method", "fit", "predict", "largest difference"]
    report("node_calibration", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
