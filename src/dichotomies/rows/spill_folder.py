"""`SpillFolder`: a folder of spilled rows that knows which passes over the batches are finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies.rows.row_counts import RowCounts

_MANIFEST, _COUNTS = "manifest.json", "counts.npz"


class SpillFolder:
    """Folder of spilled rows, with a manifest of the passes that are finished, so that they are not repeated.

    Parameters
    ----------
    path : path
        Created if need be.
    key : dict
        Describes the rows; a folder made for others is started afresh.
    """

    def __init__(self, path: Path, key: dict[str, Any]) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._key = key

    @property
    def finished(self) -> list[str]:
        """Names of the passes that are finished."""
        try:
            manifest = json.loads((self.path / _MANIFEST).read_text())
        except (OSError, ValueError):
            return []
        return list(manifest["finished"]) if manifest.get("key") == self._key else []

    def finish(self, name: str) -> None:
        """Note that a pass is finished."""
        text = json.dumps({"key": self._key, "finished": [*self.finished, name]})
        draft = self.path / f"{_MANIFEST}.new"
        draft.write_text(text)
        draft.replace(self.path / _MANIFEST)

    def counted(self, counts: RowCounts) -> None:
        """Store the result of the first pass."""
        totals = counts.totals
        arrays = (
            {"totals": totals}
            if not counts.is_sparse
            else {"data": totals.data, "indices": totals.indices, "indptr": totals.indptr}
        )
        if counts.weight is not None:
            arrays["weight"] = counts.weight
        if counts.scatter is not None:
            arrays["scatter"] = counts.scatter
        np.savez(
            self.path / _COUNTS,
            classes=counts.classes,
            size=counts.size,
            n_values=counts.n_values,
            n_features=counts.n_features,
            empty=np.empty(0, counts.dtype),
            **arrays,
        )
        self.finish("counting")

    def counts(self) -> RowCounts:
        """Read the result of the first pass."""
        with np.load(self.path / _COUNTS, allow_pickle=False) as stored:
            known = dict(stored)
        n_features = int(known["n_features"])
        totals = known.get("totals")
        if totals is None:
            shape = len(known["classes"]), n_features
            totals = csr_array((known["data"], known["indices"], known["indptr"]), shape)
        return RowCounts(
            known["classes"],
            known["size"],
            known["n_values"],
            known.get("weight"),
            totals,
            known.get("scatter"),
            known["empty"].dtype,
        )

    def remove(self) -> None:
        """Remove the files, and the folder if nothing else is in it."""
        for name in (
            _MANIFEST,
            _COUNTS,
            "bins.npz",
            *(f"{each}.bin" for each in ("values", "indices", "lengths", "weight", "log_proba")),
        ):
            (self.path / name).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()
