"""Parts of the grid that are not run, or on fewer rows and classes, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.study.classifiers import HIERARCHIES

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The datasets, in the order of the tables: by their number of classes.
DATASETS = (
    "optdigits",
    "micromass",
    "letter",
    "reuters52",
    "nhcd",
    "clinc150",
    "onet_titles",
    "omniglot",
    "wordnet",
    "kanji_fonts",
)
#: Structures that train the nodes of many trees, in order to choose one.
JUDGING = ("best-of-k", "evolved")
_BOOSTED = ("boosted_trees",)


@dataclass(frozen=True)
class Limit:
    """A limit to some of the grid.

    Attributes
    ----------
    what, reason : str
        The part that is left out, and the reason, in words.
    datasets, learners, structures : tuple of str
        Parts of the grid where it holds; an empty one means everywhere.
    rows, classes : int, optional
        At most so many training rows and classes are used.
    left_out : bool
        Nothing is run.
    """

    what: str
    reason: str
    datasets: tuple[str, ...] = ()
    learners: tuple[str, ...] = ()
    structures: tuple[str, ...] = ()
    rows: int | None = None
    classes: int | None = None
    left_out: bool = False

    def holds(self, dataset: str, learner: str, structure: str | None = None) -> bool:
        """Return True if it holds there; one for some structures does not hold for a whole base learner."""
        return (
            (not self.datasets or dataset in self.datasets)
            and (not self.learners or learner in self.learners)
            and (not self.structures or structure in self.structures)
        )


LIMITS = (
    Limit(
        "`hierarchy` everywhere but on onet_titles (codes of occupations) and nhcd (consonants, vowels, "
        "numerals)",
        "the labels of the others name no groups",
        datasets=tuple(name for name in DATASETS if name not in HIERARCHIES),
        structures=("hierarchy",),
        left_out=True,
    ),
    Limit(
        "`best-of-k` and `evolved` on onet_titles, omniglot, wordnet and kanji_fonts",
        "they train tens or hundreds of trees, of a thousand nodes and more there",
        datasets=("onet_titles", "omniglot", "wordnet", "kanji_fonts"),
        structures=JUDGING,
        left_out=True,
    ),
    Limit(
        "`best-of-k` and `evolved` with logistic regression on nhcd",
        "a trial would take minutes",
        datasets=("nhcd",),
        learners=("logistic_regression",),
        structures=JUDGING,
        left_out=True,
    ),
    Limit(
        "`best-of-k` and `evolved` with boosted trees on micromass, reuters52, nhcd and clinc150",
        "a trial would take minutes",
        datasets=("micromass", "reuters52", "nhcd", "clinc150"),
        learners=_BOOSTED,
        structures=JUDGING,
        left_out=True,
    ),
    Limit(
        "`single` with boosted trees on reuters52, nhcd, clinc150 and omniglot",
        "its deep trees would take minutes",
        datasets=("reuters52", "nhcd", "clinc150", "omniglot"),
        learners=_BOOSTED,
        structures=("single",),
        left_out=True,
    ),
    Limit(
        "`single` with logistic regression on omniglot (see benchmarks/flat.md) and kanji_fonts",
        "hundreds of nodes above a class take minutes",
        datasets=("omniglot", "kanji_fonts"),
        learners=("logistic_regression",),
        structures=("single",),
        left_out=True,
    ),
    Limit(
        "`single` on wordnet",
        "thousands of nodes above a class would take minutes",
        datasets=("wordnet",),
        structures=("single",),
        left_out=True,
    ),
    Limit(
        "boosted trees on onet_titles, wordnet and kanji_fonts",
        "a trial would take minutes",
        datasets=("onet_titles", "wordnet", "kanji_fonts"),
        learners=_BOOSTED,
        left_out=True,
    ),
    Limit(
        "logistic regression on nhcd: 4,000 of 9,684 training rows",
        "1,296 features make a trial with all rows take 5 to 15 seconds",
        datasets=("nhcd",),
        learners=("logistic_regression",),
        rows=4_000,
    ),
    Limit(
        "boosted trees on nhcd: 2,000 of 9,684 training rows",
        "a trial with all rows takes 12 to 36 seconds",
        datasets=("nhcd",),
        learners=_BOOSTED,
        rows=2_000,
    ),
    Limit(
        "boosted trees on clinc150: 5,000 of 15,000 training rows",
        "a trial with all rows takes up to a minute",
        datasets=("clinc150",),
        learners=_BOOSTED,
        rows=5_000,
    ),
    Limit(
        "boosted trees on omniglot: 400 of 1,623 classes",
        "a trial with all classes takes 11 to 30 seconds",
        datasets=("omniglot",),
        learners=_BOOSTED,
        classes=400,
    ),
    Limit(
        "logistic regression on kanji_fonts: 1,000 of 6,355 classes",
        "deep trees over more classes take minutes",
        datasets=("kanji_fonts",),
        learners=("logistic_regression",),
        classes=1_000,
    ),
    Limit(
        "naive Bayes on kanji_fonts: 2,000 of 6,355 classes",
        "a trial with all of its 211,218 training rows takes up to half a minute",
        datasets=("kanji_fonts",),
        classes=2_000,
    ),
)


def left_out(dataset: str, learner: str, structure: str) -> bool:
    """Return True if this is not run at all."""
    return any(limit.left_out for limit in _holding(dataset, learner, structure))


def most_rows(dataset: str, learner: str) -> int | None:
    """The most rows to train on; None where there is no limit."""
    return min((limit.rows for limit in _holding(dataset, learner) if limit.rows is not None), default=None)


def most_classes(dataset: str, learner: str) -> int | None:
    """The most classes; None where there is no limit."""
    found = (limit.classes for limit in _holding(dataset, learner) if limit.classes is not None)
    return min(found, default=None)


def _holding(dataset: str, learner: str, structure: str | None = None) -> Iterator[Limit]:
    return (limit for limit in LIMITS if limit.holds(dataset, learner, structure))
