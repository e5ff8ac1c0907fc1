"""ODP: web pages of the Open Directory Project, as files of Vowpal Wabbit rows."""

from __future__ import annotations

import gzip
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from experiments.datasets.folder import Dataset
from experiments.datasets.sources.base import DATASETS, RawFile, Source, parted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_ODP = "http://hunch.net/~jl/"


@DATASETS.register("odp5k")
class Odp5k(Source):
    """ODP-5K: web pages by directory category, the 5,000 most frequent categories."""

    title = "Open Directory Project, the 5,000 most frequent classes"
    kind, rows, features, classes = "sparse", None, None, 5000
    paper = (
        "the paper's own, built anew: the paper has 361,488 and 180,744 rows, exactly 2 to 1, and does not "
        "say which"
    )
    licence, reference = "none stated", "Bennett and Nguyen 2009; Choromanska and Langford 2015"
    values, evaluation = "weighted", "published split"
    split_note = "the published parts, of which the classes that are most frequent in training are kept"
    files = (
        RawFile("odp_train.vw.gz", _ODP + "odp_train.vw.gz"),
        RawFile("odp_test.vw.gz", _ODP + "odp_test.vw.gz"),
    )

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Keep the rows of the most frequent classes of the training file."""
        sizes = Counter(label for label, _ in _lines(paths[0]))
        # Ties go to the smaller label, so that the choice does not depend on the order of the rows.
        frequent = set(sorted(sizes, key=lambda label: (-sizes[label], label))[: self.classes])
        kept = [
            [(label, _pairs(text)) for label, text in _lines(path) if label in frequent] for path in paths
        ]
        rows = kept[0] + kept[1]
        y = np.array([label for label, _ in rows], dtype=np.int32)
        return Dataset(name, _matrix([pairs for _, pairs in rows]), y, parted(len(kept[0]), len(rows)))


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Label and features of each row: ``<label> |<namespace> <index>:<value> ...``."""
    with gzip.open(path) as file:
        for line in file:
            head, _, features = line.partition(b"|")
            if not features[:1].isspace():  # the name of the namespace, if it has one
                features = features.partition(b" ")[2]
            yield int(head.split()[0]), features


def _pairs(text: bytes) -> Any:
    """Index and value of each feature; single precision holds whole numbers up to 16 million."""
    return np.fromstring(text.replace(b":", b" "), dtype=np.float32, sep=" ").reshape(-1, 2)


def _matrix(rows: list[Any]) -> csr_array:
    """The rows as a CSR matrix; the files do not promise sorted features."""
    ends = np.cumsum([len(pairs) for pairs in rows])
    both = np.concatenate(rows)
    X = csr_array((both[:, 1].copy(), both[:, 0].astype(np.int32), np.concatenate([[0], ends])))
    X.sum_duplicates()
    return X
