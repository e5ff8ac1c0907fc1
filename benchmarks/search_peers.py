"""Top-5 answers of napkinXC and PECOS, in an environment of their own; run by `benchmarks.search --peers`.

It imports nothing of this repository. `python search_peers.py FOLDER` reads X, y, X_test and y_test (and the
tree in napkinXC's notation) from the folder and prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix, load_npz

if TYPE_CHECKING:
    from collections.abc import Callable


def _measured(answer: Callable[[Any], Any], X: Any, y: Any, n_single: int) -> dict[str, float]:
    """Microseconds of processor time per row, in a batch and one at a time, and how often y is found."""
    answer(X[:10])
    batch = []
    for _ in range(5):
        begun = time.process_time()
        found = answer(X)
        batch.append(time.process_time() - begun)
    ones = [X[i : i + 1] for i in range(n_single)]
    begun = time.process_time()
    for one in ones:
        answer(one)
    single = time.process_time() - begun
    first = np.mean([row[0] == label for row, label in zip(found, y, strict=True)])
    five = np.mean([label in row for row, label in zip(found, y, strict=True)])
    return {
        "batch": 1e6 * median(batch) / len(y),
        "single": 1e6 * single / n_single,
        "first": float(first),
        "five": float(five),
    }


def _napkinxc(folder: Path, X: Any, y: Any, C: float) -> Callable[[Any], Any]:
    from napkinxc.models import HSM

    structure = [tuple(map(int, edge)) for edge in np.load(folder / "tree.npy")]
    model = HSM(
        tempfile.mkdtemp(), tree_structure=structure, threads=1, verbose=0, liblinear_c=C, norm=False
    )  # its default pruning of weights, 0.1
    model.fit(csr_matrix(X), y)
    model.load()
    return lambda rows: model.predict(csr_matrix(rows), top_k=5)


def _pecos(X: Any, y: Any, C: float) -> Callable[[Any], Any]:
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    X = csr_matrix(X, dtype=np.float32)
    X.sort_indices()
    Y = csr_matrix((np.ones(len(y), np.float32), (np.arange(len(y)), y)), (len(y), int(y.max()) + 1))
    cluster = Indexer.gen(LabelEmbeddingFactory.create(Y, X, method="pifa"), seed=0)
    model = XLinearModel.train(X, Y, C=cluster, threads=1, Cp=C, Cn=C)

    def answer(rows: Any) -> Any:
        rows = csr_matrix(rows, dtype=np.float32)
        rows.sort_indices()
        found = model.predict(rows, only_topk=5, threads=1)
        return [
            found.indices[a:b][np.argsort(-found.data[a:b])]
            for a, b in zip(found.indptr[:-1], found.indptr[1:], strict=True)
        ]

    return answer


def main() -> None:
    folder, C = Path(sys.argv[1]), float(sys.argv[2])
    X, X_test = load_npz(folder / "X.npz"), load_npz(folder / "X_test.npz")
    y, y_test = np.load(folder / "y.npy"), np.load(folder / "y_test.npy")
    result = {}
    for name in ("napkinXC", "PECOS"):
        answer = _napkinxc(folder, X, y, C) if name == "napkinXC" else _pecos(X, y, C)
        result[name] = _measured(answer, X_test, y_test, 200)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
