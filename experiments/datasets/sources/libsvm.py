"""The paper's datasets of the LIBSVM pages: sparse rows as text, compressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.datasets import load_svmlight_files

from experiments.datasets.folder import Dataset
from experiments.datasets.sources.base import DATASETS, RawFile, Source, held_out, parted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dichotomies._common.typing import BoolArray

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
_LICENCE = "none stated"


class _TrainAndTest(Source):
    """A file for training and one for testing, with the same features."""

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Read both files."""
        X, y, X_test, y_test = load_svmlight_files(
            [str(path) for path in paths], n_features=self.features, zero_based=False
        )
        rows, labels = csr_array(vstack([X, X_test])), np.concatenate([y, y_test])
        rows.data = rows.data.astype(np.float32)
        return Dataset(name, rows, labels.astype(np.int32), parted(len(y), len(labels)))


@DATASETS.register("rcv1")
class Rcv1(_TrainAndTest):
    """RCV1, rcv1.multiclass of the LIBSVM pages: newswire stories with one topic, as log TF-IDF."""

    title = "RCV1, one topic a story (rcv1.multiclass)"
    kind, rows, features, classes = "sparse", 534_135, 47_236, 53
    paper, licence = "the paper's own", "RCV1-v2 is for research"
    reference = "Lewis et al. 2004; Bekkerman and Scholz 2008"
    values, evaluation = "weighted", "published split"
    split_note = "15,564 rows for training, 518,571 for testing"
    files = (
        RawFile("rcv1_train.multiclass.bz2", _LIBSVM + "rcv1_train.multiclass.bz2"),
        RawFile("rcv1_test.multiclass.bz2", _LIBSVM + "rcv1_test.multiclass.bz2"),
    )


@DATASETS.register("sector")
class Sector(_TrainAndTest):
    """Sector: web pages of companies by branch of industry, unit rows of term weights."""

    title = "Industry sector (sector.scale)"
    kind, rows, features, classes = "sparse", 9619, 55_197, 105
    paper, licence = "the paper's own", _LICENCE
    reference = "McCallum and Nigam 1998; Rennie and Rifkin 2001"
    values, evaluation = "weighted", "published split"
    split_note = "6,412 rows for training, 3,207 for testing"
    files = (
        RawFile("sector.scale.bz2", _LIBSVM + "sector/sector.scale.bz2"),
        RawFile("sector.t.scale.bz2", _LIBSVM + "sector/sector.t.scale.bz2"),
    )


@DATASETS.register("aloi")
class Aloi(Source):
    """ALOI: photographs of a thousand objects from many sides, as 128 colour features, scaled."""

    title = "Amsterdam Library of Object Images (aloi.scale)"
    kind, rows, features, classes = "dense", 108_000, 128, 1000
    paper, licence = "the paper's own", _LICENCE
    reference = "Geusebroek et al. 2005; Rocha and Goldenstein 2014"
    evaluation = "our split"
    split_note = (
        "a stratified tenth for testing, which has the paper's 97,200 and 10,800 rows; its own is not "
        "published"
    )
    files = (RawFile("aloi.scale.bz2", _LIBSVM + "aloi.scale.bz2"),)

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Read the one file; few of its values are zero in every row, so it is kept dense."""
        X, y = load_svmlight_files([str(paths[0])], n_features=self.features, zero_based=False)
        return Dataset(name, X.toarray().astype(np.float32), y.astype(np.int32))

    def is_test(self, dataset: Dataset) -> BoolArray:
        """A stratified tenth."""
        return held_out(dataset.y, 0.1)
