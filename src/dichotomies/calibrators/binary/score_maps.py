"""Fitted binary calibrators of many nodes, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.best_of import gather
from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import is_small
from dichotomies._kernels.score_maps import (
    AFFINE,
    BETA,
    CUBIC,
    FARTHEST,
    LINEAR,
    LINES,
    QUADRATIC,
    Knots,
    apply_to_columns,
    apply_to_segments,
)
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Offsets, expect
from dichotomies.rows.segments import Segments

IDENTITY = "none"


@savable(
    "score-maps",
    kinds=Array("int8", "n_maps", within=(AFFINE, QUADRATIC + 1)),
    parameters=Array("float", "n_maps", 3),
    knot_scores=Array("float", "n_knots"),
    knot_probabilities=Array("float", "n_knots"),
    knot_offsets=Offsets("n_maps", "n_knots"),
    names=Array("string", "n_maps"),
)
@dataclass(frozen=True, eq=False)
class ScoreMaps:
    """Maps from score to calibrated log-odds, one for each of m nodes, each of one of seven kinds.

    Parameters
    ----------
    kinds : int8 array of shape (m,)
        0: ``a s + b``. 1: ``a log p - b log(1 - p) + c`` with ``p = 1 / (1 + exp(-s))``. 2: log-odds of
        a probability that is linear between knots and constant outside them. 3: log-odds of a probability
        that is constant from each knot up to the next. 4: log-odds of a probability that is a cubic between
        knots and constant outside them. 5: a straight line from each knot up to the next. 6, of
        earlier versions: a parabola between two knots, ``b t^2 / 2 - a (1 - t)^2 / 2 + c`` with t from 0 to
        1, and its tangents outside.
    parameters : array of shape (m, 3)
        a, b, c.
    knot_offsets : integer array of shape (m + 1,)
        Start and end of each map's knots.
    knot_scores, knot_probabilities : arrays of shape (n_knots,)
        The knots, by increasing score in each map. Every knot of kinds 4 and 5 is there twice, with its
        probability and the derivative, or slope and intercept; those of kind 6 have no probabilities.
    names : string array of shape (m,)
        The calibration method of each map; ``"none"`` for the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.binary import PlattScaling, ScoreMaps, Segments
    >>> rows = Segments([5.0, -4.0, 1.0, 2.0], [True, False, False, True], [0, 3, 4])
    >>> maps = PlattScaling().fit_segments(rows)
    >>> scores = np.array([[1.0, 1.0]])
    >>> maps.apply(scores)
    >>> scores.round(3)
    array([[-0.45 ,  0.693]])
    >>> maps.where(np.array([True, False]), ScoreMaps.identity(2)).names.tolist()
    ['platt', 'none']
    """

    kinds: npt.NDArray[np.int8]
    parameters: FloatArray
    knot_offsets: IntArray
    knot_scores: FloatArray
    knot_probabilities: FloatArray
    names: npt.NDArray[np.str_]

    @classmethod
    def identity(cls, m: int) -> ScoreMaps:
        """Make `m` identity maps."""
        return cls._parametric(AFFINE, np.tile([1.0, 0.0, 0.0], (m, 1)), IDENTITY)

    @classmethod
    def affine(cls, parameters: FloatArray, name: str) -> ScoreMaps:
        """Make maps ``a s + b``, called `name`, from `parameters`, rows (a, b, 0)."""
        return cls._parametric(AFFINE, parameters, name)

    @classmethod
    def beta(cls, parameters: FloatArray, name: str) -> ScoreMaps:
        """Make maps ``a log p - b log(1 - p) + c``, called `name`, from `parameters`, rows (a, b, c)."""
        return cls._parametric(BETA, parameters, name)

    @classmethod
    def _parametric(cls, kind: int, parameters: FloatArray, name: str) -> ScoreMaps:
        m = len(parameters)
        kinds, no_knots = np.full(m, kind, dtype=np.int8), np.zeros(m + 1, dtype=np.intp)
        return cls(kinds, parameters, no_knots, np.empty(0), np.empty(0), np.full(m, name))

    @classmethod
    def knots(cls, kind: int, knots: Knots, name: str) -> ScoreMaps:
        """Make maps of a `kind` from `knots`, called `name`; a map without knots is the identity."""
        offsets, scores, values = knots
        has_knots = np.diff(offsets) > 0
        kinds = np.where(has_knots, kind, AFFINE).astype(np.int8)
        parameters = np.tile([1.0, 0.0, 0.0], (len(kinds), 1))
        names = np.where(has_knots, name, IDENTITY)
        n_knots = offsets[-1]
        return cls(kinds, parameters, offsets, scores[:n_knots].copy(), values[:n_knots].copy(), names)

    def __len__(self) -> int:
        return len(self.kinds)

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return all arrays by name; ``ScoreMaps(**arrays)`` restores the maps."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def apply(self, scores: FloatArray) -> None:
        """Replace `scores` (n_rows, m) by calibrated log-odds, in place; column k belongs to map k."""
        if scores.ndim != 2 or scores.shape[1] != len(self):
            raise ValueError(f"Scores must have a column for each of {len(self)} maps; got {scores.shape}.")
        if scores.dtype != np.float64 or not scores.flags.c_contiguous:
            raise ValueError("Scores are replaced in place, so they must be float64 and C-contiguous.")
        if self.is_affine:
            np.clip(scores, -FARTHEST, FARTHEST, out=scores)
            scores *= self.parameters[:, 0]
            scores += self.parameters[:, 1]
        else:
            apply_to_columns.when(self._is_small(len(scores), scores.size))(*self.flat, scores)

    def apply_segments(self, segments: Segments) -> FloatArray:
        """Return the calibrated log-odds (n,) of the scores in `segments`; segment k belongs to map k."""
        if len(segments) != len(self):
            raise ValueError(f"There are {len(self)} maps, but {len(segments)} segments.")
        if self.is_affine:
            slope, intercept = np.repeat(self.parameters[:, :2].T, np.diff(segments.offsets), axis=1)
            return np.asarray(slope * segments.scores + intercept)
        out = segments.scores.copy()
        small = self._is_small(0, len(out))  # milliseconds, whatever the number of rows
        apply_to_segments.when(small)(*self.flat, segments.offsets, out)
        return out

    def apply_pairs(self, scores: FloatArray, which: IntArray) -> FloatArray:
        """Return calibrated log-odds of scores (n,); ``scores[i]`` belongs to map ``which[i]``."""
        order = np.argsort(which, kind="stable")
        offsets = np.searchsorted(which[order], np.arange(len(self) + 1))
        sorted_scores, out = scores[order], np.empty(len(scores))
        apply_to_segments.when(self._is_small(len(scores), len(scores)))(*self.flat, offsets, sorted_scores)
        out[order] = sorted_scores
        return out

    def where(self, chosen: BoolArray, other: ScoreMaps) -> ScoreMaps:
        """Return map k of self if ``chosen[k]``, else map k of `other`, for each k of the mask `chosen`."""
        own = np.arange(len(self))
        return ScoreMaps.gathered([self, other], np.where(chosen, own, own + len(self)))

    @classmethod
    def gathered(cls, parts: Sequence[ScoreMaps], places: IntArray) -> ScoreMaps:
        """Take the maps at `places` of all `parts`, which are numbered one after the other."""
        arrays = [(part.kinds, part.parameters, part.names, np.diff(part.knot_offsets)) for part in parts]
        kinds, parameters, names, sizes = (gather(each, places) for each in zip(*arrays, strict=True))
        begin = np.cumsum([0, *(len(part.knot_scores) for part in parts)])
        starts = gather([b + part.knot_offsets[:-1] for b, part in zip(begin, parts, strict=False)], places)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        source = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        knots = gather([part.knot_scores for part in parts], source)
        return cls(
            kinds,
            parameters,
            offsets,
            knots,
            gather([part.knot_probabilities for part in parts], source),
            names,
        )

    def identity_where_empty(self, segments: Segments) -> ScoreMaps:
        """Return these maps, with the identity where `segments` have no rows."""
        has_rows = segments.n_rows > 0
        return self if has_rows.all() else self.where(has_rows, ScoreMaps.identity(len(self)))

    def check_relations(self, names: dict[str, Any]) -> None:  # noqa: ARG002 - as of all savable objects
        """Raise if a map of knots has none; for `names` see `dichotomies.persistence.checks`."""
        n_knots, in_pairs = np.diff(self.knot_offsets), np.isin(self.kinds, (CUBIC, LINES))
        expect(((n_knots > 0) | (self.kinds < LINEAR)).all(), "maps of knots have knots")
        expect((n_knots[in_pairs] % 2 == 0).all(), "knots with two values come in pairs")
        expect((n_knots[self.kinds == QUADRATIC] == 2).all(), "parabolas have two ends")

    @cached_property
    def is_affine(self) -> bool:
        """True if all maps are ``a s + b``."""
        return bool((self.kinds == AFFINE).all())

    def _is_small(self, n_rows: int, n_scores: int) -> bool:
        """Return True if plain code is to map so many scores of so many rows."""
        return is_small(n_rows, 2e-5 * len(self) + 1e-7 * n_scores, is_answer=True)

    @property
    def flat(
        self,
    ) -> tuple[npt.NDArray[np.int8], FloatArray, IntArray, FloatArray, FloatArray]:
        """Kinds, parameters and knots in the order that kernels take them."""
        return self.kinds, self.parameters, self.knot_offsets, self.knot_scores, self.knot_probabilities
