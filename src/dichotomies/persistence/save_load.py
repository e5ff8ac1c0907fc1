"""Saving and loading of models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dichotomies.persistence import container
from dichotomies.persistence.catalogue import CATALOGUE
from dichotomies.persistence.checks import InconsistentModelError, MissingExtraError, ModelFileError, expect
from dichotomies.persistence.codec import Decoder, Encoder


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
    container.write(path, encoded, encoder.finished())


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
    encoded, tensors = container.read(path, copy=mmap_mode is None)
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
