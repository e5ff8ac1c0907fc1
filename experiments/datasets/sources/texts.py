"""Short texts as counts of words or letters: customers' queries, newswire stories, job titles."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from experiments.datasets.folder import Dataset
from experiments.datasets.sources.base import DATASETS, RawFile, Source, held_out, parted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dichotomies._common.typing import BoolArray

_GITHUB = "https://raw.githubusercontent.com/"


def counted(texts: Sequence[str], n_vocabulary: int, **options: Any) -> tuple[csr_array, Any]:
    """Counts of the terms in every text; the vocabulary is that of the first `n_vocabulary` texts.

    Returns
    -------
    X : csr_array of shape (n_texts, n_terms)
    vocabulary : ndarray of str
        The terms, sorted.
    """
    counter = CountVectorizer(dtype=np.uint8, **options).fit(texts[:n_vocabulary])
    return csr_array(counter.transform(texts)), counter.get_feature_names_out().astype(str)


class TextSource(Source):
    """Texts, of which terms are counted."""

    #: The options of scikit-learn's CountVectorizer that say what a term is and which are kept.
    counting: ClassVar[dict[str, Any]]


@DATASETS.register("clinc150")
class Clinc150(TextSource):
    """CLINC150: what a customer wants, from one typed sentence; the queries that are in scope."""

    title = "CLINC150, queries in scope"
    kind, rows, features, classes = "sparse", 22_500, 12_125, 150
    paper, licence = "stands in for sector", "CC BY 3.0"
    reference = "Larson et al. 2019, https://github.com/clinc/oos-eval"
    values, evaluation = "counts", "published split"
    split_note = "15,000 rows for training, 3,000 for validation, 4,500 for testing"
    counting: ClassVar[dict[str, Any]] = {
        "token_pattern": r"[a-z0-9][a-z0-9'&-]*",
        "ngram_range": (1, 2),
        "min_df": 2,
    }
    files = (
        RawFile(
            "data_full.json",
            _GITHUB + "clinc/oos-eval/828f8093932c8fe6ca7936c3d2e52903b1c523de/data/data_full.json",
        ),
    )

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Count words and pairs of words that are in at least two training queries."""
        parts = json.loads(paths[0].read_text("utf-8"))
        queries = [pair for part in ("train", "val", "test") for pair in parts[part]]
        first_val = len(parts["train"])
        first_test = first_val + len(parts["val"])
        X, vocabulary = counted([query for query, _ in queries], first_val, **self.counting)
        extra = parted(first_test, len(queries)) | {
            "train_idx": np.arange(first_val),
            "val_idx": np.arange(first_val, first_test),
        }
        return Dataset(name, X, np.array([intent for _, intent in queries]), {**extra, "vocab": vocabulary})


@DATASETS.register("reuters52")
class Reuters52(TextSource):
    """Reuters-21578, R52: newswire stories with exactly one topic, words of title and body."""

    title = "Reuters-21578, stories with one topic (R52)"
    kind, rows, features, classes = "sparse", 9100, 12_163, 52
    paper, licence = "stands in for RCV1", "copyright Reuters, free for research"
    reference = "Lewis 1997; Cardoso-Cachopo 2007"
    values, evaluation = "counts", "published split"
    split_note = "ModApte: 6,532 rows for training, 2,568 for testing"
    counting: ClassVar[dict[str, Any]] = {"token_pattern": r"[a-z][a-z]+", "min_df": 2}
    files = tuple(
        RawFile(
            f"{number}.sgm",
            f"{_GITHUB}jakecyr/TextClassification/d172e18f02a0b4f5792a93780d6f7005d93c3904/data/{number}.sgm",
        )
        for number in range(22)
    )

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Take the stories with one topic, of topics with both training and test stories."""
        stories = [story for path in paths for story in _stories(path.read_text("latin-1"))]
        topics = set.intersection(*({s[1] for s in stories if s[0] == part} for part in ("TRAIN", "TEST")))
        stories = [s for s in stories if s[1] in topics]
        stories.sort(key=lambda story: (story[0] == "TEST", story[2]))
        n_train = sum(part == "TRAIN" for part, *_ in stories)
        X, vocabulary = counted([text for *_, text in stories], n_train, **self.counting)
        extra = {"vocab": vocabulary, "newid": np.array([number for _, _, number, _ in stories])}
        y = np.array([topic for _, topic, _, _ in stories])
        return Dataset(name, X, y, extra | parted(n_train, len(stories)))


def _stories(sgml: str) -> Iterator[tuple[str, str, int, str]]:
    """Part, topic, number and text of every story of the ModApte split that has one topic."""
    for head, story in re.findall(r"<REUTERS ([^>]*)>(.*?)</REUTERS>", sgml, re.DOTALL):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', head))
        topics = re.findall(r"<D>(.*?)</D>", _element(story, "TOPICS"))
        if (
            len(topics) == 1
            and attributes["TOPICS"] == "YES"
            and attributes["LEWISSPLIT"] in ("TRAIN", "TEST")
        ):
            text = html.unescape(f"{_element(story, 'TITLE')} {_element(story, 'BODY')}")
            yield attributes["LEWISSPLIT"], topics[0], int(attributes["NEWID"]), text


def _element(story: str, tag: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", story, re.DOTALL)
    return found[1] if found else ""


@DATASETS.register("onet_titles")
class OnetTitles(TextSource):
    """O*NET job titles: the occupation that a job title stands for, as surveys code it."""

    title = "O*NET 27.0 alternate job titles"
    kind, rows, features, classes = "sparse", 53_743, 16_364, 1009
    paper, licence = "not in the paper", "CC BY 4.0"
    reference = "O*NET 27.0 Database, U.S. Department of Labor"
    values, evaluation = "counts", "our split"
    split_note = "a stratified tenth for testing"
    counting: ClassVar[dict[str, Any]] = {"analyzer": "char_wb", "ngram_range": (2, 4), "min_df": 3}
    files = tuple(
        RawFile(
            f"{table.replace('%20', '_')}.txt",
            f"{_GITHUB}SrivardhiniK/career-path-recommender/6b3ec4b4ecf4a88f6e2d303440e09a2276baa77c/data/"
            f"{table}.txt",
        )
        for table in ("Alternate%20Titles", "Occupation%20Data")
    )

    def build(self, name: str, paths: Sequence[Path]) -> Dataset:
        """Count letter sequences in the titles of occupations that have at least five."""
        lines = chain.from_iterable(path.read_text("utf-8").splitlines()[1:] for path in paths)
        titles = sorted({tuple(line.split("\t")[:2]) for line in lines})
        sizes = Counter(code for code, _ in titles)
        titles = [pair for pair in titles if sizes[pair[0]] >= 5]
        X, vocabulary = counted([title for _, title in titles], len(titles), **self.counting)
        return Dataset(name, X, np.array([code for code, _ in titles]), {"vocab": vocabulary})

    def is_test(self, dataset: Dataset) -> BoolArray:
        """A stratified tenth."""
        return held_out(dataset.y, 0.1)
