"""scikit-learn objects: saved by their parameters if unfitted, by skops otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from dichotomies.persistence.catalogue import Parameters, savable
from dichotomies.persistence.checks import expect
from dichotomies.persistence.errors import ModelFileError, extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

for _cls in (KFold, StratifiedKFold, FrozenEstimator, Pipeline):
    savable(f"sklearn/{_cls.__name__}", Parameters())(_cls)


def dumped(objects: list[Any]) -> npt.NDArray[np.uint8]:
    """Serialise objects by skops, and verify that it can read them again."""
    io = extra("skops.io")
    kinds = ", ".join(sorted({type(each).__name__ for each in objects}))
    try:
        data: bytes = io.dumps(objects)
        io.loads(data, trusted=io.get_untrusted_types(data=data))  # skops cannot read functions
    except Exception as error:  # objects may raise anything
        reason = str(error).rstrip(".")
        raise ModelFileError(
            f"The model has parts that skops cannot write and read again, among these: {kinds}. "
            f"{type(error).__name__}: {reason}."
        ) from error
    return np.frombuffer(data, np.uint8)


def loaded(data: bytes, trusted: Sequence[Any] | None) -> list[Any]:
    """Deserialise objects; raise unless all types are trusted by skops or by the caller."""
    io = extra("skops.io")
    trusted = list(trusted or [])
    known = {each if isinstance(each, str) else f"{each.__module__}.{each.__name__}" for each in trusted}
    unknown = [name for name in io.get_untrusted_types(data=data) if name not in known]
    if unknown:
        raise ModelFileError(
            f"it has objects of types that are not trusted by default, because loading them runs their code: "
            f"{', '.join(unknown)}. If you know where the file comes from, say so: load(path, "
            f"trusted={unknown}), on the command line --trust {' --trust '.join(unknown)}"
        )
    objects = io.loads(data, trusted=sorted(known))
    expect(isinstance(objects, list), "skops holds a list")
    made: list[Any] = objects
    return made
