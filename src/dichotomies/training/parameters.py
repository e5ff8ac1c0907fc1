"""The parameters of the estimators, each declared once: default, documentation, command-line option.

The constructors, their docstrings, the `Plan` and the options of ``dichotomies fit`` are all made from these
declarations. Values are checked in `dichotomies.training.plan`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields
from textwrap import dedent, fill, indent
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

C = TypeVar("C", bound=type)


class Option(NamedTuple):
    """A parameter on the command line and in configurations.

    Attributes
    ----------
    name : str
        Name of the option.
    help : str
        One sentence.
    metavar : str
        Placeholder of the value.
    kind : type
        Type of the value; bool for a flag.
    names : str
        Registry of the names that may be given, as ``module:attribute``; empty for other values.
    least : int or None
        Smallest number that may be given.
    """

    name: str
    help: str
    metavar: str = "NAME"
    kind: type = str
    names: str = ""
    least: int | None = None


_BINARY, _MULTICLASS = (
    "dichotomies.calibrators.binary:BINARY",
    "dichotomies.calibrators.multiclass:MULTICLASS",
)


class Declaration(NamedTuple):
    """A parameter of an estimator, see `declarations`."""

    name: str
    default: Any
    kind: str
    doc: str
    option: Option | None


def parameter(default: Any, kind: str, doc: str, option: Option | None = None) -> Any:
    """Declare a parameter.

    Parameters
    ----------
    default : object
        Default value.
    kind : str
        Accepted values, as in the first line of its documentation.
    doc : str
        Documentation, one paragraph.
    option : Option, optional
        Its form on the command line; None for parameters that are set there in another way.
    """
    text = " ".join(dedent(doc).split())
    return field(default=default, metadata={"kind": kind, "doc": text, "option": option})


def declarations(cls: type) -> Iterator[Declaration]:
    """Parameters of an estimator class, in the order of its constructor."""
    for each in fields(cls):
        if each.metadata:
            yield Declaration(each.name, each.default, **each.metadata)


def documented(cls: C) -> C:
    """Class decorator: make the constructor, and write the parameters in place of ``{parameters}``."""
    dataclass(eq=False, repr=False)(cls)  # changes the class itself
    entries = [
        f"{each.name} : {each.kind}, default={_quoted(each.default)}\n"
        + indent(fill(each.doc, width=106), "    ")
        for each in declarations(cls)
    ]
    text = "Parameters\n----------\n" + "\n".join(entries)
    if cls.__doc__ is not None:  # python -OO leaves no docstrings
        cls.__doc__ = cls.__doc__.replace("{parameters}", indent(text, "    ").lstrip())
    return cls


def _quoted(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else repr(default)


@dataclass(eq=False, repr=False)
class TreeParameters:
    """Parameters of `NestedDichotomyClassifier`, which all estimators have."""

    estimator: Any = parameter(
        None,
        'scikit-learn classifier, "auto" or None',
        """Binary classifier, a clone of which is trained at every node on the classes 0 and 1; it gets
        numeric arrays, also where `X` is a data frame. It must have `predict_proba`, or scores that
        `internal_calibration` turns into probabilities. None or "auto" chooses one by out-of-fold NLL on a
        sample of the rows: logistic regression, naive Bayes or boosted trees; `learner_` says which. With a
        `learner` other than "auto", None is `LogisticRegression()`.""",
    )
    structure: Any = parameter(
        "auto",
        "str, structure, ClassTree or nested lists of labels",
        """The tree: the name of a structure (``dichotomies list`` shows them), a structure object, or the
        tree itself, which must have a leaf for every label in `y` (leaves of labels that do not occur are
        left out). Give a very deep tree as a `ClassTree`: Python cannot copy lists nested many hundred
        levels deep, as scikit-learn's `clone` must.""",
        Option(
            "structure",
            "How to grow the tree, or a .json file with nested lists of labels.",
            names="dichotomies.structures:STRUCTURES",
        ),
    )
    _: KW_ONLY
    internal_calibration: Any = parameter(
        "auto",
        "str, BinaryCalibrator or None",
        """Calibration of every node, on out-of-fold scores: the name of a binary calibrator
        (``dichotomies list`` shows them), or an object. "auto" chooses one for all nodes, or none, by
        out-of-fold NLL of the whole model; `calibration_` says which.""",
        Option("internal", "Calibration of every node.", names=_BINARY),
    )
    external_calibration: Any = parameter(
        "auto",
        "str, MulticlassCalibrator or None",
        """Calibration of the class probabilities of the whole tree, or of the pool of several: the name of a
        multiclass calibrator (``dichotomies list`` shows them), or an object. "auto" chooses one, or none,
        together with the internal calibration.""",
        Option("external", "Calibration of the whole tree, or of the pool of several.", names=_MULTICLASS),
    )
    cv: Any = parameter(
        "auto",
        '"auto", int, splitter or iterable of (train, test)',
        """Folds of internal calibration and of "cross-fit", the same for all trees. "auto" is 10 with
        naive Bayes, 5 with logistic regression and 3 with other learners, or 3 and 2 if classes have 20 rows
        on average, and no more than a class has rows on average. Classes with fewer rows than folds are
        allowed.""",
        Option("cv", "Folds of internal calibration.", "N", int, least=2),
    )
    average_folds: bool = parameter(
        False,
        "bool",
        """With internal calibration: False trains the nodes once more on all rows and calibrates them on the
        pooled out-of-fold scores; True averages the models of the folds at every node, each with a
        calibrator of its own.""",
        Option("average_folds", "Average the models of the folds at every node.", kind=bool),
    )
    calibrated_nodes: Any = parameter(
        "all",
        '"all", list of depths or float',
        """Nodes that internal calibration applies to: all, those at the given depths, or the given share of
        the nodes, those where it lowers the NLL of the whole tree most. A node that several trees share is
        at the depth where it first occurs.""",
        Option("calibrated_nodes", "Nodes to calibrate: all, depths as in 0,1,2, or a share, 0.5.", "WHICH"),
    )
    calibration_size: float | str = parameter(
        "cross-fit",
        'float or "cross-fit"',
        """Rows for external calibration: "cross-fit" holds out none and calibrates on probabilities of models
        trained on the other folds of the same trees; or the share held out from training, stratified, never
        the last row of a class: quicker, and worse.""",
        Option("calibration_size", "Rows held out for external calibration, or cross-fit.", "SHARE"),
    )
    prediction_sets: int = parameter(
        0,
        "int",
        """Prepare `predict_set` and `predict_node` with a coverage, on the folds that calibration has anyway
        (cross-conformal): 1 for sets and single groups of the tree, more for unions of up to so many groups.
        0 leaves that to `calibrate_sets`.""",
        Option(
            "sets",
            "Prepare sets of labels with a coverage, and unions of up to so many groups.",
            "GROUPS",
            int,
            least=1,
        ),
    )
    keep_rows: Any = parameter(
        0,
        'int or "all"',
        """Rows to keep for `update` and `forget_class`: a number, of which a sample stratified by class is
        kept, or "all". They are saved with the model.""",
        Option("keep_rows", "Rows to keep in the model for updates: a number, or all.", "N"),
    )
    learner: Any = parameter(
        "auto",
        "str",
        """Way to train all nodes. "auto" takes a fast way that gives what one clone of `estimator` per node
        would give, where there is one for this estimator and its parameters, and the clones otherwise;
        `learner_` says which and why. "clones" always trains clones.""",
        Option(
            "learner",
            "Way to train all nodes; auto finds the fastest.",
            names="dichotomies.learners:LEARNERS",
        ),
    )
    max_memory: Any = parameter(
        None,
        "int, str or None",
        """Bytes, or a size such as "2GB", that `fit` and each prediction may take beyond the rows given, the
        model and the answer: chunks of rows, the rows of external calibration and the number of threads
        adapt to it; a fit that cannot be done within it raises before training. Clones of an estimator take
        what they take. None sets no limit.""",
        Option("max_memory", "Memory that training and predictions may take, such as 2GB.", "SIZE"),
    )
    n_jobs: int | None = parameter(
        None,
        "int",
        """Nodes trained, and chunks of rows predicted, at a time, as everywhere in scikit-learn. Clones
        are trained on the joblib backend chosen by `joblib.parallel_config`; all else runs in threads,
        unless that backend is a Dask or Ray cluster. The result does not depend on it.""",
    )
    random_state: int | np.random.RandomState | None = parameter(
        None,
        "int, RandomState or None",
        """Seed of trees, features, samples and folds, and of every ``random_state`` parameter of `estimator`
        and its parts that is None.""",
    )
    verbose: bool | int = parameter(
        0, "bool or int", "Report the progress of training, and of predictions that take long, on stderr."
    )


@dataclass(eq=False, repr=False)
class EnsembleParameters(TreeParameters):
    """Parameters of `NestedDichotomyEnsemble`."""

    structure: Any = parameter(
        "auto",
        "str or structure",
        """Structure of the trees; "auto" is "random-pair" here. Deterministic structures give different
        trees as well, because each tree sees other features.""",
        Option(
            "structure",
            "How to grow the tree, or a .json file with nested lists of labels.",
            names="dichotomies.structures:STRUCTURES",
        ),
    )
    _: KW_ONLY
    n_estimators: int = parameter(10, "int", "Number of trees.")
    max_features: float = parameter(
        0.5,
        "float",
        """Share of the features, drawn at random, that each tree is grown on. The nodes are trained on all
        features.""",
        Option(
            "max_features",
            "Share of the features that each tree is grown on, drawn at random.",
            "SHARE",
            float,
        ),
    )
    pooling: str = parameter(
        "geometric",
        '"geometric" or "arithmetic"',
        "Mean of the trees' probabilities; the geometric one is normalised.",
        Option(
            "pooling",
            "Mean of the trees' probabilities.",
            "geometric|arithmetic",
            names="dichotomies.inference.pooling:POOLINGS",
        ),
    )
