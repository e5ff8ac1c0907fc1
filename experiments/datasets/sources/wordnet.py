"""WordNet: the parent of a meaning, from its words and its gloss."""

from __future__ import annotations

import tarfile
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from experiments.datasets.folder import Dataset
from experiments.datasets.sources.base import DATASETS, RawFile, held_out
from experiments.datasets.sources.texts import TextSource, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dichotomies._common.typing import BoolArray

#: A parent with fewer children is not a class.
_FEWEST_CHILDREN = 4


class _Synset(NamedTuple):
    key: str  # offset and part of speech
    parents: list[str]
    words: list[str]
    gloss: str


@DATASETS.register("wordnet")
class WordNet(TextSource):
    """WordNet 3.0 taxonomy: a noun's or verb's parent, from words, definition and examples."""

    title = "WordNet 3.0, parents of nouns and verbs"
    kind, rows, features, classes = "sparse", 70_748, 40_402, 6142
    # Of the copy in Debian, which has mended some entries; the original gives a handful of other rows.
    exact = False
    paper, licence = "stands in for ODP-5K", "WordNet 3.0 licence (free, notice kept)"
    reference = "Fellbaum 1998, https://wordnet.princeton.edu"
    values, evaluation = "counts", "our split"
    split_note = "a stratified tenth for testing"
    counting: ClassVar[dict[str, Any]] = {"token_pattern": r"[a-z0-9][a-z0-9'-]*", "min_df": 2}
    files = (
        RawFile(
            "WNdb-3.0.tar.gz",
            "https://wordnetcode.princeton.edu/3.0/WNdb-3.0.tar.gz",
            "658b1ba191f5f98c2e9bae3e25c186013158f30ef779f191d2a44e5d25046dc8",
        ),
    )

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Take the meanings with exactly one parent, of parents with enough of them."""
        synsets = list(_synsets(paths[0]))
        first_word = {synset.key: synset.words[0] for synset in synsets}
        synsets = [synset for synset in synsets if len(synset.parents) == 1]
        children = Counter(synset.parents[0] for synset in synsets)
        synsets = [synset for synset in synsets if children[synset.parents[0]] >= _FEWEST_CHILDREN]
        texts = [" ".join(synset.words).replace("_", " ") + " " + synset.gloss for synset in synsets]
        X, vocabulary = counted(texts, len(texts), **self.counting)
        y = np.array([f"{parent}.{first_word[parent]}" for _, (parent,), _, _ in synsets])
        return Dataset(name, X, y, {"vocab": vocabulary})

    def is_test(self, dataset: Dataset) -> BoolArray:
        """A stratified tenth."""
        return held_out(dataset.y, 0.1)


def _synsets(path: Path) -> Iterator[_Synset]:
    """All nouns, then all verbs; the format is that of the manual page wndb(5WN)."""
    with tarfile.open(path) as archive:
        files = {member.name.rpartition("/")[2]: member for member in archive if member.isfile()}
        for part_of_speech in ("data.noun", "data.verb"):
            file = archive.extractfile(files[part_of_speech])
            assert file is not None  # only folders have no content
            for line in file.read().decode("utf-8").splitlines():
                if not line.startswith("  "):  # the licence is indented
                    yield _parsed(line)


def _parsed(line: str) -> _Synset:
    head, _, gloss = line.partition("|")
    offset, _, part_of_speech, n_words, *rest = head.split()
    end_of_words = 2 * int(n_words, 16)  # a word and a number each
    words, pointers = rest[:end_of_words:2], rest[end_of_words + 1 :]
    symbols, targets, parts = (pointers[i : 4 * int(rest[end_of_words]) : 4] for i in range(3))
    parents = [
        target + part
        for symbol, target, part in zip(symbols, targets, parts, strict=True)
        if symbol in ("@", "@i")
    ]
    return _Synset(offset + part_of_speech, parents, words, gloss.strip())
