"""ILSVR2010: photographs as counts of visual words, to be had after registration only."""

from __future__ import annotations

import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.io import loadmat
from scipy.sparse import csr_array, vstack

from experiments.datasets.folder import Dataset
from experiments.datasets.sources.base import DATASETS, RawFile, Source, held_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dichotomies._common.typing import BoolArray


@DATASETS.register("ilsvr2010")
class Ilsvr2010(Source):
    """ILSVR2010: a thousand kinds of things in photographs, as counts of a thousand visual words."""

    title = "ImageNet challenge 2010, visual words"
    kind, rows, features, classes = "sparse", 1_261_406, 1000, 1000
    paper, licence = "the paper's own", "ImageNet's terms of access, registration needed"
    reference = "Russakovsky et al. 2015, https://image-net.org/challenges/LSVRC/2010"
    values, evaluation = "counts", "our split"
    split_note = (
        "150,000 of the training images for testing, stratified, which has the paper's 1,111,406 and 150,000 "
        "rows; its own is not published"
    )
    files = (RawFile("ILSVRC2010_feature_sbow_train.tar"),)
    by_hand = "register at https://image-net.org and download it from the page of the 2010 challenge"

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Read one MATLAB file per class, ``<class>.sbow.mat``, from the archive."""
        blocks, labels = [], []
        with tarfile.open(paths[0]) as archive:
            members = sorted((m for m in archive if m.name.endswith(".sbow.mat")), key=lambda m: m.name)
            for member in members:
                blocks.append(_histograms(archive.extractfile(member), self.features))
                labels += [PurePosixPath(member.name).name.partition(".")[0]] * blocks[-1].shape[0]
        return Dataset(name, csr_array(vstack(blocks, format="csr")), np.array(labels))

    def is_test(self, dataset: Dataset) -> BoolArray:
        """As many as the paper has."""
        return held_out(dataset.y, 150_000 / 1_261_406)


def _histograms(file: Any, n_words: int) -> csr_array:
    """Counts of the visual words in each image."""
    images = loadmat(file)["image_sbow"].ravel()
    words = [image["sbow"]["word"].ravel()[0].ravel() for image in images]
    counts = np.array([np.bincount(each, minlength=n_words) for each in words])
    return csr_array(counts.astype(np.uint16))
