"""Registry of datasets: description, origin and preparation of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from dichotomies._common.registry import Registry
from dichotomies.rows.folds import hold_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dichotomies._common.typing import BoolArray, IntArray, LabelArray
    from experiments.datasets.folder import Dataset


@dataclass(frozen=True)
class RawFile:
    """One file of a dataset's public source.

    Parameters
    ----------
    name : str
        File name in the cache.
    url : str, optional
        Address; without one the file must be put into the cache by hand.
    sha256 : str, optional
        Its checksum, where one is publicly recorded.
    """

    name: str
    url: str | None = None
    sha256: str | None = None


class Source:
    """A dataset of the registry; subclasses are the datasets.

    The class attributes say what it is. Sizes that are not known before the files are there are None; the
    others are checked when the dataset is built.

    Examples
    --------
    >>> from experiments.datasets import DATASETS
    >>> sector = DATASETS.create("sector")
    >>> sector.classes, sector.paper, [file.name for file in sector.files]
    (105, "the paper's own", ['sector.scale.bz2', 'sector.t.scale.bz2'])
    """

    title: ClassVar[str]
    kind: ClassVar[Literal["dense", "sparse"]]
    rows: ClassVar[int | None]
    features: ClassVar[int | None]
    classes: ClassVar[int]
    #: Whether the public source has exactly these sizes.
    exact: ClassVar[bool] = True
    #: How it relates to the paper's nine datasets.
    paper: ClassVar[str]
    licence: ClassVar[str]
    reference: ClassVar[str]
    #: Empty where the dataset is not built from a public source: then `by_hand` says what it holds.
    files: ClassVar[tuple[RawFile, ...]] = ()
    #: How somebody gets what cannot be fetched; empty if everything can.
    by_hand: ClassVar[str] = ""
    #: What the features of a sparse dataset count or weigh.
    values: ClassVar[Literal["counts", "weighted", ""]] = ""
    #: "cross-validation", or whose train and test parts are used.
    evaluation: ClassVar[Literal["cross-validation", "published split", "our split"]] = "cross-validation"
    #: Said of the split where there is something to say.
    split_note: ClassVar[str] = ""
    #: The same rows at OpenML, for when the source cannot be reached.
    openml: ClassVar[int | None] = None

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Turn the raw files, in the order of `files`, into a dataset."""
        raise NotImplementedError(f"{name} cannot be built from a public source: {self.by_hand}.")

    def is_test(self, dataset: Dataset) -> BoolArray | None:  # noqa: ARG002  subclasses look at it
        """Mask of the test rows where no split is published."""
        return None


#: All datasets by name; a new file in this package is enough to add some.
DATASETS: Registry[Source] = Registry("dataset", __package__ or "")


def parted(n_train: int, n_rows: int) -> dict[str, IntArray]:
    """The standard split of rows of which the first are for training."""
    return {"train_idx": np.arange(n_train), "test_idx": np.arange(n_train, n_rows)}


def held_out(y: LabelArray, share: float) -> BoolArray:
    """Our test part where none is published: a stratified share of the rows, the same at every call."""
    codes = np.unique(y, return_inverse=True)[1]
    return hold_out(codes, share, np.random.RandomState(0))
