"""Segments of every awkward kind, and drawn ones."""

import numpy as np
from scipy.special import expit

from dichotomies.calibrators.binary import Segments

AWKWARD = {
    "empty": ([], []),
    "one positive row": ([0.3], [1]),
    "one negative row": ([-2.0], [0]),
    "only positive": ([1.0, 2.0, -1.0], [1, 1, 1]),
    "only negative": ([1.0, 2.0, -1.0, 1.0], [0, 0, 0, 0]),
    "constant": ([0.7, 0.7, 0.7, 0.7], [0, 1, 1, 0]),
    "all zero": ([0.0, 0.0, 0.0], [0, 1, 1]),
    "tied": ([1.0, 1.0, 0.0, 0.0, 0.0, 1.0], [0, 1, 1, 0, 0, 1]),
    "separated": ([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1]),
    "separated by a hair": ([1.0, 1.0 + 1e-9], [0, 1]),
    "the wrong way round": ([-2.0, -1.0, 1.0, 2.0, 3.0], [1, 1, 0, 0, 0]),
    "huge": ([1e4, -1e4, 1e4, -1e4, 3.0], [1, 0, 0, 0, 1]),
    "huge outlier": ([1.0, 2.0, -1.0, 0.5, -1e4], [1, 0, 0, 1, 1]),
    "far above 0": ([9000.0, 9001.0, 9002.0, 9003.0], [0, 1, 0, 1]),
    "far below 0": ([-50.0, -60.0, -55.0, -52.0], [0, 1, 0, 1]),
}


def join(parts, weights=None):
    """Segments from pairs (scores, targets)."""
    offsets = np.cumsum([0, *(len(scores) for scores, _ in parts)])
    scores = np.concatenate([np.asarray(scores, dtype=float) for scores, _ in parts])
    targets = np.concatenate([np.asarray(targets, dtype=bool) for _, targets in parts])
    return Segments(scores, targets, offsets, weights)


def awkward():
    return join(list(AWKWARD.values()))


def part(segments, k):
    """Segment k alone."""
    rows = slice(segments.offsets[k], segments.offsets[k + 1])
    weights = None if segments.weights is None else segments.weights[rows]
    n = len(segments.scores[rows])
    return Segments(segments.scores[rows], segments.targets[rows], np.array([0, n]), weights)


def drawn(rng, sizes, slope=1.0, intercept=0.0, spread=2.0, digits=None):
    """Segments whose true log-odds are ``slope * score + intercept``."""
    parts = []
    for n in sizes:
        scores = rng.normal(scale=spread, size=n)
        scores = scores if digits is None else scores.round(digits)
        parts.append((scores, rng.random(n) < expit(slope * scores + intercept)))
    return join(parts)
