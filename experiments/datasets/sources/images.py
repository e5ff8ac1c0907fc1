"""Characters in images, and a network's answers about images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from experiments.datasets.folder import Dataset
from experiments.datasets.sources.base import DATASETS, RawFile, Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dichotomies._common.typing import BoolArray

_NETCAL = (
    "https://raw.githubusercontent.com/EFS-OpenSource/calibration-framework/"
    "2a3db8d7cb2a557f3b563c98ce00954f43dfe927/examples/classification/records/cifar100/"
)


@DATASETS.register("cifar100_probs")
class Cifar100Probs(Source):
    """CIFAR-100: the probabilities that a wide residual network gives the test images."""

    title = "CIFAR-100 test images, probabilities of a WideResNet-16-4"
    kind, rows, features, classes = "dense", 10_000, 100, 100
    paper, licence = "not in the paper: for calibrators alone", "Apache 2.0"
    reference = "Küppers et al. 2020, https://github.com/EFS-OpenSource/calibration-framework"
    files = (RawFile("wideresnet-16-4-cifar-100.npz", _NETCAL + "wideresnet-16-4-cifar-100.npz"),)

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Read the arrays of predictions and true classes."""
        with np.load(paths[0], allow_pickle=False) as file:
            X, y = file["predictions"], file["ground_truth"]
        return Dataset(name, X.astype(np.float32), y.ravel().astype(np.uint8))


@DATASETS.register("nhcd")
class Nhcd(Source):
    """Nepali Handwritten Character Dataset: 36 x 36 grey images of numerals, vowels, consonants."""

    title = "Nepali Handwritten Characters"
    kind, rows, features, classes = "dense", 12_912, 1296, 58
    paper, licence = "stands in for devanagari", "none stated with the copy used"
    reference = "Pant, Panday and Joshi 2012"
    split_note = "images of one `writer` are much alike, so random folds flatter"
    by_hand = (
        "its 12,912 images are single files of https://github.com/storesource/DevnagariClassifier; a row is "
        "one of them, flattened, grey values inverted"
    )


@DATASETS.register("omniglot")
class Omniglot(Source):
    """Omniglot: handwritten characters of fifty alphabets, as histograms of stroke directions."""

    title = "Omniglot, gradient histograms"
    kind, rows, features, classes = "dense", 32_460, 288, 1623
    paper, licence = "stands in for ALOI", "MIT"
    reference = "Lake, Salakhutdinov and Tenenbaum 2015, https://github.com/brendenlake/omniglot"
    evaluation = "our split"
    split_note = "drawers 16 to 20 for testing"
    by_hand = (
        "it holds 288 gradient-histogram features (6 x 6 cells, 8 directions) of the images of "
        "https://github.com/brendenlake/omniglot and the `drawer` of each row"
    )

    def is_test(self, dataset: Dataset) -> BoolArray:
        """The last five of twenty drawers."""
        late: BoolArray = dataset.extra["drawer"] > 15
        return late


@DATASETS.register("kanji_fonts")
class KanjiFonts(Source):
    """Printed kanji: 16 x 16 grey images of the characters of JIS X 0208 in 39 typefaces."""

    title = "Kanji in 39 typefaces"
    kind, rows, features, classes = "dense", 232_329, 256, 6355
    paper, licence = "stands in for ILSVR2010", "drawn from free typefaces"
    reference = "made for this library from fonts of Debian 12"
    evaluation = "our split"
    split_note = "every tenth typeface for testing"
    by_hand = "it holds the kanji of JIS X 0208 drawn in 39 free typefaces, and the `font` of each row"

    def is_test(self, dataset: Dataset) -> BoolArray:
        """Every tenth typeface."""
        tenth: BoolArray = dataset.extra["font"] % 10 == 0
        return tenth
