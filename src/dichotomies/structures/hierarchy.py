"""Binary refinement of a hierarchy that the labels or the user give."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure, resolve
from dichotomies.tree import ClassTree

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from dichotomies._common.typing import FloatArray, IntArray

    Path = tuple[Hashable, ...]


@STRUCTURES.register("hierarchy")
class Hierarchy(Structure):
    """A known hierarchy, such as labels "Animal;Bird;Owl", refined to a binary tree by another structure.

    Every group of the hierarchy is a subtree. If a group has more than two parts, `refine` arranges them,
    with the rows of each part as one class. Groups with a single part are skipped. Depths of nested groups
    add up.

    Parameters
    ----------
    delimiter : str, default=";"
        Separator between the levels of a label.
    levels : sequence of int, optional
        Prefix lengths, in characters, for labels without a delimiter: ``levels=(2, 7)`` reads
        "11-1011.00" as the group "11", in it the group "11-1011", in it the class.
    paths : mapping from label to sequence, optional
        The groups of each class from the widest to the narrowest, if the labels do not contain them; a
        string is a single group.
    refine : str or structure, optional
        Structure that arranges the parts of a group; by default "2-means", or "class-balanced" without
        features.

    References
    ----------
    Silla & Freitas, *A survey of hierarchical classification across different application domains*, DMKD
    2011.

    Examples
    --------
    >>> from dichotomies.structures import STRUCTURES
    >>> labels = ["pet;cat", "farm;cow", "pet;dog", "farm;hen"]
    >>> STRUCTURES.create("hierarchy").grow(None, labels, random_state=0)
    ClassTree.from_nested([['pet;cat', 'pet;dog'], ['farm;cow', 'farm;hen']])
    >>> codes = ["11-1011", "11-1021", "13-2011", "13-1011"]
    >>> STRUCTURES.create("hierarchy", levels=(2,)).grow(None, codes, random_state=0)
    ClassTree.from_nested([['11-1011', '11-1021'], ['13-2011', '13-1011']])
    >>> by_hand = {"cat": ["pet"], "dog": ["pet"], "hen": ["farm", "bird"], "cow": ["farm"]}
    >>> STRUCTURES.create("hierarchy", paths=by_hand).grow(None, list(by_hand), random_state=0)
    ClassTree.from_nested([['cat', 'dog'], ['hen', 'cow']])
    """

    def __init__(
        self,
        delimiter: str = ";",
        levels: Sequence[int] | None = None,
        paths: Mapping[Any, Sequence[Hashable]] | None = None,
        refine: Any = None,
    ) -> None:
        self.delimiter = delimiter
        self.levels = levels
        self.paths = paths
        self.refine = refine

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        read = self._reader()
        paths = [(*read(label), ("class", label)) for label in task.rows.classes.tolist()]
        if self.paths is None and self.levels is None and max(map(len, paths)) == 1:
            self._check_delimiter(task.rows.classes.tolist())
        refine = self.refine
        if refine is None:
            refine = "class-balanced" if task.rows.base is None else "2-means"
        leaf_order, split_rank = _Refinement(task, paths, resolve(refine), rng).of(task.rows.class_order, 0)
        return task.tree(leaf_order, split_rank.astype(np.intp))

    def _check_delimiter(self, labels: list[Any]) -> None:
        """Raise if the labels are strings and none has the delimiter; numbers belong to no group."""
        if isinstance(labels[0], str):
            raise ValueError(
                f"No class is in a group: {self.delimiter!r} is in none of the labels ({labels[0]!r}, ...). "
                "Give the separator of the levels (delimiter=), the prefix lengths (levels=) or the groups "
                "of each class (paths=)."
            )

    def _reader(self) -> Callable[[Any], Path]:
        """Return the function from a label to its groups, the widest first."""
        if self.paths is not None:
            return self._given_path
        if self.levels is not None:
            cuts = sorted(int(cut) for cut in self.levels)
            return lambda label: tuple(str(label)[:cut] for cut in cuts)
        if not self.delimiter:
            raise ValueError(f"delimiter must have at least one character, got {self.delimiter!r}.")
        return lambda label: tuple(str(label).split(self.delimiter)[:-1])

    def _given_path(self, label: Any) -> Path:
        assert self.paths is not None
        if label not in self.paths:
            raise ValueError(f"paths has no entry for class {label!r}: give the groups of every class.")
        path = self.paths[label]
        return (path,) if isinstance(path, str) else tuple(path)


class _Refinement:
    """Recursive arrangement of the groups.

    A tree over some classes is their codes from left to right and a rank for each boundary; the lowest rank
    in a range is split first.
    """

    def __init__(self, task: GrowingTask, paths: list[Path], refine: Structure, rng: Any) -> None:
        self._task, self._paths, self._refine, self._rng = task, paths, refine, rng

    def of(self, codes: IntArray, level: int) -> tuple[IntArray, FloatArray]:
        """Return the tree over classes that share the first `level` groups of their paths."""
        if len(codes) == 1:
            return codes, np.empty(0)
        parts: dict[Hashable, list[int]] = {}
        for code in codes.tolist():
            parts.setdefault(self._paths[code][level], []).append(code)
        groups = [np.array(part, dtype=np.intp) for part in parts.values()]
        if len(groups) == 1:
            return self.of(groups[0], level + 1)
        above = self._over(groups)
        inside = [self.of(groups[i], level + 1) for i in above.leaf_order.tolist()]
        deeper = above.max_depth + 1
        ranks: list[FloatArray] = [inside[0][1] + deeper]
        for parting, (_, below) in zip(above.split_depth.tolist(), inside[1:], strict=True):
            ranks += [np.array([float(parting)]), below + deeper]
        return np.concatenate([leaves for leaves, _ in inside]), np.concatenate(ranks)

    def _over(self, groups: list[IntArray]) -> ClassTree:
        """Grow a tree over groups, each as one class."""
        if len(groups) == 2:
            return ClassTree([0, 1], [0])
        rows = self._task.rows
        group_of_class = np.full(rows.n_classes, -1, dtype=np.intp)
        for number, group in enumerate(groups):
            group_of_class[group] = number
        group_of_row = group_of_class[rows.codes]
        inside = np.flatnonzero(group_of_row >= 0)
        within = replace(rows.take(inside), codes=group_of_row[inside], classes=np.arange(len(groups)))
        return self._refine.grow_from(GrowingTask(within), self._rng)
