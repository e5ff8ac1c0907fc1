"""scikit-learn objects: saved by their parameters if unfitted, by skops otherwise."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from dichotomies.persistence.catalogue import Parameters, savable
from dichotomies.persistence.checks import ModelFileError, expect, extra

#: Modules of estimators that predict in native code, which arrays that do not fit together can crash.
_NATIVE = ("sklearn.svm.", "sklearn.tree.", "sklearn.ensemble.", "sklearn.neighbors.")

for _cls in (KFold, StratifiedKFold, FrozenEstimator, Pipeline):
    savable(f"sklearn/{_cls.__name__}", Parameters())(_cls)


def dumped(objects: list[Any]) -> npt.NDArray[np.uint8]:
    """Serialise objects by skops, and verify that it can read them again."""
    skops = extra("skops.io")
    kinds = ", ".join(sorted({type(each).__name__ for each in objects}))
    try:
        data: bytes = skops.dumps(objects)
        skops.loads(data, trusted=skops.get_untrusted_types(data=data))  # skops cannot read functions
    except Exception as error:  # objects may raise anything
        reason = str(error).rstrip(".")
        raise ModelFileError(
            f"The model has parts that skops cannot write and read again, among these: {kinds}. "
            f"{type(error).__name__}: {reason}."
        ) from error
    return np.frombuffer(data, np.uint8)


def loaded(data: bytes, trusted: Sequence[Any] | None) -> list[Any]:
    """Deserialise objects; raise unless all types are trusted by default or by the caller."""
    skops = extra("skops.io")
    types = _types(_schema(data))
    trusted = list(trusted or [])
    known = {each if isinstance(each, str) else f"{each.__module__}.{each.__name__}" for each in trusted}
    untrusted = {*skops.get_untrusted_types(data=data), *(name for name in types if name.startswith(_NATIVE))}
    if unknown := sorted(untrusted - known):
        raise ModelFileError(
            "it has objects of types that are not trusted by default, because loading or using them runs "
            f"code that does not check its input: {', '.join(unknown)}. If you know where the file comes "
            f"from, say so: load(path, trusted={unknown}), on the command line --trust "
            f"{' --trust '.join(unknown)}"
        )
    objects = skops.loads(data, trusted=sorted(known))
    expect(isinstance(objects, list), "skops holds a list")
    made: list[Any] = objects
    for each in made:
        _forget_workers(each)
    return made


def _schema(data: bytes) -> Any:
    """The structure of the objects; raise for archives that would be larger in memory than in the file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        stored = all(each.compress_type == zipfile.ZIP_STORED for each in members)
        expect(stored, "what skops has written is not compressed")
        expect(sum(each.file_size for each in members) <= len(data), "members of an archive do not overlap")
        return json.loads(archive.read("schema.json"))


def _types(schema: Any) -> set[str]:
    """Full names of all types in a schema."""
    pending, found = [schema], set()
    while pending:
        each = pending.pop()
        pending += each.values() if isinstance(each, dict) else each if isinstance(each, list) else []
        if isinstance(each, dict) and "__class__" in each:
            found.add(f"{each.get('__module__')}.{each['__class__']}")
    return found


def _forget_workers(estimator: Any) -> None:
    """Reset `n_jobs`, which suits the machine that wrote the file."""
    names = estimator.get_params() if hasattr(estimator, "get_params") else ()
    workers = {name: None for name in names if name.rpartition("__")[2] == "n_jobs"}
    if workers:
        estimator.set_params(**workers)
