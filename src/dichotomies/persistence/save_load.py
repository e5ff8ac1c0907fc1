"""Saving and loading of models."""

from __future__ import annotations

import json
import mmap
import os
import platform
import re
import stat
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dichotomies._common.atomic_files import replaced_when_done
from dichotomies.persistence.catalogue import CATALOGUE
from dichotomies.persistence.checks import (
    InconsistentModelError,
    MissingExtraError,
    ModelFileError,
    expect,
    extra,
)
from dichotomies.persistence.codec import Decoder, Encoder

if TYPE_CHECKING:
    import numpy.typing as npt

    Tensors = dict[str, npt.NDArray[Any]]
    Data = mmap.mmap | bytes


#: The version of the format that is written, and the highest that is read.
FORMAT = 2

_ENTRY = "dichotomies"
_BEGINNING = b'{"__metadata__":{"dichotomies":'
_NO_CHECKSUM = "0" * 64

#: Data types by their names in safetensors files.
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"}
_DTYPES |= {"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"}

_LIBRARIES = ("dichotomies", "numpy", "scikit-learn")


def write(path: str | os.PathLike[str], model: Any, tensors: Tensors) -> None:
    """Write a model file atomically."""
    document = {
        "format": FORMAT,
        "sha256": _NO_CHECKSUM,
        "written by": {name: version(name) for name in _LIBRARIES} | {"python": platform.python_version()},
        "model": model,
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    data = extra("safetensors.numpy").save(tensors, metadata={_ENTRY: text})
    header = _header(data)
    sealed = header.replace(_NO_CHECKSUM.encode(), sha256(data).hexdigest().encode(), 1)
    with replaced_when_done(path) as unfinished, unfinished.open("xb") as file:
        file.write(sealed)
        file.write(memoryview(data)[len(header) :])


def read(path: str | os.PathLike[str], *, copy: bool = True) -> tuple[Any, Tensors]:
    """Read model and tensors; raise if the file is damaged or of a newer format.

    The file is mapped into memory, so nothing but its beginning is read of a file that is no model. Without
    `copy` the tensors are read-only views of the map, which processes that load the same file share.
    """
    data = _mapped(path)
    document = _document(data, path)
    _check_seal(data, document["sha256"], path)
    _check_format(document, path)
    try:
        tensors = _tensors(data)
    except Exception as error:  # a malicious file may cause any exception
        raise ModelFileError(f"{path} has a correct checksum, but cannot be read: {error}.") from error
    return document["model"], {name: each.copy() for name, each in tensors.items()} if copy else tensors


def _mapped(path: str | os.PathLike[str]) -> mmap.mmap | bytes:
    """Map a file into memory; raise unless it is a regular file."""
    try:
        size = _size_of_regular(path)
        with Path(path).open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise IsADirectoryError(f"{path} is a folder, not a model file.") from error


def _size_of_regular(path: str | os.PathLike[str]) -> int:
    """Size of a file; opening a pipe would wait, and a device may have no end."""
    state = Path(path).stat()
    if stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode):
        return state.st_size
    raise ModelFileError(f"{path} is not a regular file, so it cannot be a model file.")


def _tensors(data: Data) -> Tensors:
    """Views of the tensors; safetensors' own reader for numpy copies them."""
    start = len(_header(data))
    contents = memoryview(data)[start:]
    tensors = {}
    for name, entry in json.loads(_header(data)[8:]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            if not 0 <= first <= last <= len(contents):
                raise ValueError(f"the tensor {name!r} is outside of the file")
            tensor = np.frombuffer(contents[first:last], _DTYPES[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = tensor if tensor.flags.aligned else tensor.copy()
    return tensors


def _header(data: Data) -> bytes:
    """Return the header, preceded by its length in 8 bytes."""
    return data[: 8 + int.from_bytes(data[:8], "little")]


def _document(data: Data, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Parse the JSON document; raise unless it has the entries needed to verify the file."""
    beginning = data[8 : 8 + len(_BEGINNING)]
    if not _BEGINNING.startswith(beginning):
        raise ModelFileError(
            f"{path} is not a model file of dichotomies; those are written by the save() of a classifier."
        )
    try:
        header = _header(data)
        document = json.loads(json.loads(header[8:])["__metadata__"][_ENTRY], parse_constant=_no_number)
        is_sealed = re.fullmatch("[0-9a-f]{64}", document["sha256"]) is not None
        if is_sealed and type(document["format"]) is int and "model" in document:
            return dict(document)
    except RecursionError as error:
        raise ModelFileError(f"{path} cannot be loaded: it is nested too deeply.") from error
    except (ValueError, KeyError, TypeError):
        pass
    raise ModelFileError(_damage(data, path))


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON.")


def _damage(data: Data, path: str | os.PathLike[str]) -> str:
    """Describe the damage of a file whose header cannot be parsed."""
    if len(data) < 8 + int.from_bytes(data[:8], "little"):
        return f"{path} is truncated: it has only {len(data)} bytes. Copy or save it again."
    return f"{path} has been altered since it was saved: its header cannot be read. Copy or save it again."


def _check_seal(data: Data, claimed: str, path: str | os.PathLike[str]) -> None:
    header = _header(data)
    at = header.find(claimed.encode())
    digest = sha256(header[:at] + _NO_CHECKSUM.encode() + header[at + 64 :])
    digest.update(memoryview(data)[len(header) :])
    if digest.hexdigest() != claimed:
        raise ModelFileError(_difference(data, path))


def _difference(data: Data, path: str | os.PathLike[str]) -> str:
    """Describe a checksum error: truncated or altered, by the length in the header."""
    try:
        entries = json.loads(_header(data)[8:]).items()
        wanted = max(
            (entry["data_offsets"][1] for name, entry in entries if name != "__metadata__"), default=0
        )
        if len(data) < len(_header(data)) + wanted:
            return f"{path} is truncated: it has only {len(data)} bytes. Copy or save it again."
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        pass
    return f"{path} has been altered since it was saved: its checksum is wrong. Copy or save it again."


def _check_format(document: dict[str, Any], path: str | os.PathLike[str]) -> None:
    if not 1 <= document["format"] <= FORMAT:
        by = document.get("written by")
        writer = by.get("dichotomies") if isinstance(by, dict) else None
        raise ModelFileError(
            f"{path} was written by dichotomies {writer}, in format {document['format']}; this is "
            f"dichotomies {version('dichotomies')}, which reads formats up to {FORMAT}. "
            "Upgrade dichotomies to load it."
        )


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file atomically.

    Parameters
    ----------
    model : object
        A `NestedDichotomyClassifier`, a `CalibratedClassifier`, or another savable object, such as
        a calibrator or a `ClassTree`.
    path : str or path
        The file; one that exists is replaced.

    Raises
    ------
    ModelFileError
        If the model has parts that cannot be saved.
    OSError
        If the file cannot be written; what was there before is unchanged.
    """
    name = CATALOGUE.name_of(type(model))
    if name is None or not CATALOGUE.is_model(name):
        raise ModelFileError(
            f"{type(model).__name__} cannot be saved by itself; classifiers, calibrators, structures and "
            "trees of this package can, though not classes derived from them."
        )
    encoder = Encoder()
    try:
        encoded = encoder.encode(model)
    except InconsistentModelError as error:
        raise ModelFileError(f"{type(model).__name__} cannot be saved: {error}.") from error
    except RecursionError as error:
        raise ModelFileError(
            "The model has lists nested too deeply for a file; give a tree that deep as a ClassTree."
        ) from error
    write(path, encoded, encoder.finished())


def load(
    path: str | os.PathLike[str],
    trusted: Sequence[str | type] | None = None,
    *,
    mmap_mode: Literal["r"] | None = None,
) -> Any:
    """Read a model that was written by its ``save``.

    Loading runs no code from the file: a file names registered classes, and all its contents are checked.
    Objects of other classes, such as the trained clones of a scikit-learn classifier, are read by skops,
    which by default trusts much of scikit-learn and nothing else. Estimators that predict in native code (of
    `sklearn.svm`, `.tree`, `.ensemble` and `.neighbors`) need trust as well: arrays in a forged file could
    crash them. `n_jobs` is not taken from files.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : sequence of str or type, optional
        Additional types, or their full names, that skops may instantiate: loading such an object may run the
        code of its class with arguments from the file. The error without them names those that are needed.
    mmap_mode : {None, "r"}
        With "r" the arrays of the model are read-only views of the file: processes that load the same file
        share its memory. The file may be replaced, but must not be written to, while it is in use.

    Returns
    -------
    model
        The saved model; predictions of models trained on a fast path are bitwise the same.

    Raises
    ------
    ModelFileError
        If the file is not a model, truncated, altered, of a newer format, or inconsistent.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies import NestedDichotomyClassifier, load
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     clf.save(Path(folder) / "iris.model")
    ...     again = load(Path(folder) / "iris.model")
    >>> bool((again.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    if isinstance(trusted, str) or not (trusted is None or hasattr(trusted, "__iter__")):
        raise TypeError(f"trusted must be a list of types or of their names, got {trusted!r}.")
    if mmap_mode not in (None, "r"):
        raise ValueError(f"mmap_mode must be None or 'r', got {mmap_mode!r}.")
    encoded, tensors = read(path, copy=mmap_mode is None)
    try:
        expect(CATALOGUE.is_model(encoded["object"]), "a file holds a model")
        model = Decoder(tensors, trusted).decode(encoded)
        if isinstance(model, ClassifierMixin):
            check_is_fitted(model)
    except MissingExtraError:
        raise
    except RecursionError as error:
        raise ModelFileError(f"{path} cannot be loaded: it is nested too deeply.") from error
    except Exception as error:  # a malicious file may cause any exception
        known = isinstance(error, ModelFileError)
        reason = str(error).rstrip(".") if known else f"what it says is no model ({error!r})"
        raise ModelFileError(f"{path} cannot be loaded: {reason}.") from error
    return model
