"""Loading a dataset by name: from the data folder, the repository, the cache or its public source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dichotomies._common.progress import say
from experiments.datasets.fetching import UnreachableError, fetch
from experiments.datasets.folder import (
    DATA_DIR_VARIABLE,
    SHIPPED_FOLDER,
    Dataset,
    cache_folder,
    data_folder,
    npz_path,
    read,
    write,
)
from experiments.datasets.openml import from_openml
from experiments.datasets.sources import DATASETS, Source

if TYPE_CHECKING:
    import os
    from pathlib import Path

Place = Literal["data folder", "repository", "cache", "download", "by hand"]


@dataclass(frozen=True)
class Description:
    """A dataset of the registry, and where `load` would take it from.

    Examples
    --------
    >>> from experiments.datasets import available
    >>> [each.name for each in available() if "stands in" in each.source.paper]
    ['clinc150', 'kanji_fonts', 'nhcd', 'omniglot', 'reuters52', 'wordnet']
    """

    name: str
    source: Source
    place: Place
    #: The file that would be read, or the one that would have to be put there.
    path: Path


def load(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, download: bool = True, progress: bool = True
) -> Dataset:
    """Load a dataset by name.

    It is looked for in the data folder, then among the datasets of the repository, then in the cache; then
    it is downloaded from its public source, prepared and kept in the cache.

    Parameters
    ----------
    name : str
        The dataset's name, such as ``"letter"``; or any other for which the data folder has a file.
    data_dir : path, optional
        The data folder; by default the environment variable ``DICHOTOMIES_DATA``, if it is set.
    download : bool
        Allow the use of the network.
    progress : bool
        Report downloads on stderr.

    Returns
    -------
    Dataset
        With the rows of its train and test parts, if it has such, in ``extra["train_idx"]`` and
        ``extra["test_idx"]``.

    Raises
    ------
    FileNotFoundError
        If it is nowhere to be had; the message says which file to put where.
    FetchError
        If a download failed in a way that trying elsewhere would not cure.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from experiments.datasets import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "mine").mkdir()
    ...     np.savez(Path(folder) / "mine" / "mine.npz", X=np.eye(3), y=["a", "b", "a"])
    ...     data = load("mine", data_dir=folder)
    >>> data.X.shape, data.y.tolist()
    ((3, 3), ['a', 'b', 'a'])
    """
    for path in _prepared_paths(name, data_dir).values():
        if path.is_file():
            return _with_split(read(name, path))
    if name not in DATASETS.names():
        raise FileNotFoundError(_unknown(name, data_dir))
    return _with_split(_from_source(name, data_dir, download=download, progress=progress))


def available(data_dir: str | os.PathLike[str] | None = None) -> list[Description]:
    """All datasets of the registry, and where each would come from."""
    return [describe(name, data_dir) for name in DATASETS.names()]


def describe(name: str, data_dir: str | os.PathLike[str] | None = None) -> Description:
    """Description of a dataset in the registry, and the place `load` would take it from.

    Examples
    --------
    >>> from experiments.datasets import describe
    >>> letter = describe("letter", data_dir="/nowhere")
    >>> letter.source.title, letter.source.rows, letter.source.classes
    ('Letter Recognition', 20000, 26)
    """
    source = DATASETS.create(name)
    prepared = _prepared_paths(name, data_dir)
    for place, path in prepared.items():
        if path.is_file():
            return Description(name, source, place, path)
    if source.files and all(file.url or _raw_path(name, file.name).is_file() for file in source.files):
        return Description(name, source, "download", prepared["cache"])
    by_hand = _raw_path(name, source.files[0].name) if source.files else _own_path(name, data_dir)
    return Description(name, source, "by hand", by_hand)


def _prepared_paths(name: str, data_dir: str | os.PathLike[str] | None) -> dict[Place, Path]:
    """Places of a prepared file of this dataset, in the order of preference."""
    own = data_folder(data_dir)
    folders: dict[Place, Path] = {} if own is None else {"data folder": own}
    folders |= {"repository": SHIPPED_FOLDER, "cache": cache_folder()}
    return {place: npz_path(folder, name) for place, folder in folders.items()}


def _own_path(name: str, data_dir: str | os.PathLike[str] | None) -> Path:
    """Path at which a user would put a prepared file."""
    return npz_path(data_folder(data_dir) or cache_folder(), name)


def _raw_path(name: str, file_name: str) -> Path:
    return cache_folder() / name / file_name


def _from_source(
    name: str, data_dir: str | os.PathLike[str] | None, *, download: bool, progress: bool
) -> Dataset:
    """Fetch the raw files, prepare the dataset and keep it in the cache."""
    source = DATASETS.create(name)
    if not source.files:
        raise FileNotFoundError(_to_prepare(name, data_dir))
    for file in source.files:
        path = _raw_path(name, file.name)
        if file.url is None or not download:
            if not path.is_file():
                reason = "it is not to be downloaded" if file.url else "it cannot be downloaded"
                raise FileNotFoundError(_to_get(name, file.name, reason, data_dir))
            continue
        try:
            fetch(file.url, path, file.sha256, progress=progress)
        except UnreachableError as error:
            return _from_openml(name, file.name, error, data_dir)
    if progress:
        say(f"preparing {name}, which is done once")
    return _built(name, source)


def _built(name: str, source: Source) -> Dataset:
    dataset = source.build(name, [_raw_path(name, file.name) for file in source.files])
    _check_size(source, dataset)
    write(dataset, cache_folder())
    return read(name, npz_path(cache_folder(), name))


def _from_openml(
    name: str, file_name: str, error: UnreachableError, data_dir: str | os.PathLike[str] | None
) -> Dataset:
    source = DATASETS.create(name)
    if source.openml is None:
        raise FileNotFoundError(_to_get(name, file_name, _of_the_source(error), data_dir)) from error
    say(f"{error} Trying OpenML, whose copy has the rows in another order and no standard split.")
    try:
        # Not written to the cache: the source's own files are better, and scikit-learn keeps OpenML's.
        dataset = from_openml(name, source.openml)
    except OSError:
        reason = f"{_of_the_source(error)}, and OpenML does not help"
        raise FileNotFoundError(_to_get(name, file_name, reason, data_dir)) from error
    _check_size(source, dataset)
    return dataset


def _check_size(source: Source, dataset: Dataset) -> None:
    found = (*dataset.X.shape, len(np.unique(dataset.y)))
    known = (source.rows, source.features, source.classes)
    if source.exact and any(size not in (None, got) for size, got in zip(known, found, strict=True)):
        raise ValueError(
            f"The files of {dataset.name!r} gave {found} rows, features and classes instead of {known}: "
            f"the source has changed. Remove them from {cache_folder() / dataset.name} to have them fetched "
            f"again."
        )


def _with_split(dataset: Dataset) -> Dataset:
    """The dataset with our train and test parts, where we had to choose them."""
    if "test_idx" in dataset.extra or dataset.name not in DATASETS.names():
        return dataset
    test = DATASETS.create(dataset.name).is_test(dataset)
    if test is None:
        return dataset
    parts = {"train_idx": np.flatnonzero(~test), "test_idx": np.flatnonzero(test)}
    return replace(dataset, extra={**dataset.extra, **parts})


def _unknown(name: str, data_dir: str | os.PathLike[str] | None) -> str:
    path = _own_path(name, data_dir)
    return f"There is no dataset {name!r}: no file {path}, and the registry has only {DATASETS.names()}."


def _of_the_source(error: UnreachableError) -> str:
    """Failure of the source, as a part of a sentence that names its address elsewhere."""
    return "the source" + str(error).rstrip(".").removeprefix(str(error).split()[0])


def _to_get(name: str, file_name: str, reason: str, data_dir: str | os.PathLike[str] | None) -> str:
    source = DATASETS.create(name)
    url = next(file.url for file in source.files if file.name == file_name)
    others = [file.name for file in source.files if file.name != file_name]
    how = f"download {url}" if url else source.by_hand
    how += f" (also needed: {', '.join(others)})" if others else ""
    return (
        f"The dataset {name!r} is not here ({reason}): {how} and put it as {_raw_path(name, file_name)}, or "
        f"put a prepared {name}.npz {_where(name, data_dir)}."
    )


def _to_prepare(name: str, data_dir: str | os.PathLike[str] | None) -> str:
    return (
        f"The dataset {name!r} is not here and is not built from a public source "
        f"({DATASETS.create(name).by_hand}): put {name}.npz {_where(name, data_dir)}."
    )


def _where(name: str, data_dir: str | os.PathLike[str] | None) -> str:
    folder = data_folder(data_dir)
    if folder is not None:
        return f"as {npz_path(folder, name)}"
    return f"into the folder {name} of the data folder that {DATA_DIR_VARIABLE} names"
