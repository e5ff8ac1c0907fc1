"""The paper's four datasets of the UCI Machine Learning Repository: zip archives of text files or images."""

from __future__ import annotations

import io
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import numpy as np

from experiments.datasets.folder import Dataset
from experiments.datasets.sources.base import DATASETS, RawFile, Source, parted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_UCI = "https://archive.ics.uci.edu/static/public/"
_PAPERS_OWN = "the paper's own"
_LICENCE = "CC BY 4.0"


@DATASETS.register("optdigits")
class OptDigits(Source):
    """Optical Recognition of Handwritten Digits: ink counted in 8 x 8 cells."""

    title = "Optical Recognition of Handwritten Digits"
    kind, rows, features, classes = "dense", 5620, 64, 10
    paper, licence = _PAPERS_OWN, _LICENCE
    reference = "Alpaydin and Kaynak 1998, https://doi.org/10.24432/C50P49"
    split_note = "UCI's own parts, 3,823 and 1,797 rows, are there too"
    openml = 28
    files = (
        RawFile(
            "optdigits.zip",
            _UCI + "80/optical+recognition+of+handwritten+digits.zip",
            "0d7b054fea010270e9b3f06411c654c5e59547732ad626381980baffe0a23fb0",
        ),
    )

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Read the training and the test file; the last of 65 numbers in a line is the digit."""
        with Archive(paths[0]) as archive:
            parts = [_numbers(archive.read(f"optdigits.{part}"), ",", np.uint8) for part in ("tra", "tes")]
        table = np.vstack(parts)
        return Dataset(name, table[:, :-1], table[:, -1].astype(np.int8), parted(len(parts[0]), len(table)))


@DATASETS.register("letter")
class Letter(Source):
    """Letter Recognition: capital letters of twenty typefaces, distorted, in sixteen numbers."""

    title = "Letter Recognition"
    kind, rows, features, classes = "dense", 20_000, 16, 26
    paper, licence = _PAPERS_OWN, _LICENCE
    reference = "Slate 1991, https://doi.org/10.24432/C5ZP40"
    split_note = "UCI's own parts, 16,000 and 4,000 rows, are there too"
    openml = 6
    #: How many rows, from the first, UCI's description takes for training.
    training_rows = 16_000
    files = (
        RawFile(
            "letter.zip",
            _UCI + "59/letter+recognition.zip",
            "3b5f07a334697b6cace4fbae22940393a18fee596e73f68d97ce5973d52dc60f",
        ),
    )

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Read the one file; a line is a letter and sixteen numbers."""
        with Archive(paths[0]) as archive:
            lines = archive.read("letter-recognition.data").decode("ascii").split()
        letters = np.array([line[0] for line in lines])
        X = _numbers("\n".join(line[2:] for line in lines).encode(), ",", np.uint8)
        return Dataset(name, X, letters, parted(self.training_rows, len(letters)))


@DATASETS.register("micromass")
class MicroMass(Source):
    """MicroMass: species of bacteria from the mass spectra of pure samples."""

    title = "MicroMass, pure spectra"
    kind, rows, features, classes = "dense", 571, 1300, 20
    paper, licence = "the paper's own (it counts the class as a 1,301st column)", _LICENCE
    reference = "Mahé et al. 2014, https://doi.org/10.24432/C5T61S"
    split_note = "spectra of one `strain` are much alike, so random folds flatter"
    openml = 1515
    files = (RawFile("micromass.zip", _UCI + "253/micromass.zip"),)

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Read the matrix and the species and strain of its rows; they lie in an archive in the archive."""
        with Archive(paths[0]) as archive:
            # There is a second packaging, with species in words; both files must be of the same.
            metadata = archive.find("pure_spectra_metadata.csv")
            X = _numbers(archive.read(metadata.replace("metadata", "matrix")), ";", np.float32)
            lines = archive.read(metadata).decode("ascii").split()[1:]
        species, strain = np.array([line.split(";") for line in lines]).T
        return Dataset(name, X, species, {"strain": strain})


@DATASETS.register("devanagari")
class Devanagari(Source):
    """Devanagari Handwritten Character Dataset: 32 x 32 grey images of 36 consonants and 10 digits."""

    title = "Devanagari Handwritten Characters"
    kind, rows, features, classes = "dense", 92_000, 1024, 46
    paper = "the paper's own (it has 1,000 features and does not say which; here are all 1,024 pixels)"
    licence = _LICENCE
    reference = "Acharya, Pant and Gyawali 2015, https://doi.org/10.24432/C5XS53"
    split_note = "UCI's own parts, 78,200 and 13,800 rows, are there too"
    openml = 40923
    files = (RawFile("devanagari.zip", _UCI + "389/devanagari+handwritten+character+dataset.zip"),)

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Read one PNG image per row from folders ``<part>/<class>/``."""
        with Archive(paths[0]) as archive:
            images = sorted(path for path in archive.names() if path.endswith(".png"))
            # "Train" sorts after "Test", and training rows come first.
            images.sort(key=lambda path: "/Train/" not in path)
            X = np.array([_pixels(archive.read(path)) for path in images])
        y = np.array([path.split("/")[-2] for path in images])
        return Dataset(name, X, y, parted(sum("/Train/" in path for path in images), len(images)))


class Archive:
    """A zip file and the zip files in it, as one collection of files.

    UCI wraps what was given to it, so the archive of one dataset may hold that of another packaging.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open = ExitStack()
        self._where: dict[str, tuple[ZipFile, str]] = {}

    def __enter__(self) -> Archive:
        self._add(self._path, "")
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def _add(self, file: Any, prefix: str) -> None:
        archive = self._open.enter_context(ZipFile(file))
        for name in archive.namelist():
            if name.endswith(".zip"):
                self._add(io.BytesIO(archive.read(name)), f"{prefix}{name}/")
            else:
                self._where[prefix + name] = archive, name

    def names(self) -> list[str]:
        """The paths of all files; an archive in the archive is a folder."""
        return list(self._where)

    def read(self, name: str) -> bytes:
        """The bytes of the file of that path, or of that name in any folder."""
        archive, path = self._where[self.find(name)]
        return archive.read(path)

    def find(self, name: str) -> str:
        """The path of the first file of that name in any folder."""
        for path in self._where:
            if path == name or path.endswith("/" + name):
                return path
        raise ValueError(
            f"{self._path} has no file {name!r}; it holds {sorted(self._where)[:10]}. Remove it to have it "
            f"fetched again."
        )


def _numbers(text: bytes, separator: str, dtype: Any) -> Any:
    return np.loadtxt(io.BytesIO(text), delimiter=separator, dtype=dtype, ndmin=2)


def _pixels(png: bytes) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("Reading images needs Pillow: pip install pillow.") from None
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("L")).ravel()
