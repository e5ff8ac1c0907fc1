"""Naive Bayes from the statistics of the classes is what one clone per node is."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB

from dichotomies import NestedDichotomyClassifier
from dichotomies._common.parallel import Context
from dichotomies.learners import GenericLearner, Unsupported, Wanted, choose
from dichotomies.learners.naive_bayes import NaiveBayesLearner
from dichotomies.learners.weights import DenseWeights, SparseWeights
from dichotomies.rows import NodeTask
from dichotomies.tree import ClassTree
from tests.reference import RecursiveNestedDichotomy
from tests.slow import slow
from tests.tasks import in_folds, node_task


@pytest.fixture(autouse=True)
def sparse_stays_sparse(monkeypatch):
    """Small problems too; `tests/_kernels/test_every_way.py` compares with rows written out."""
    monkeypatch.setattr("dichotomies.learners.naive_bayes.learner._WRITTEN_OUT", 0)


EVERYTHING = Wanted.FULL | Wanted.MEMBERS | Wanted.SCORES

GAUSSIANS = [GaussianNB(), GaussianNB(priors=[0.3, 0.7], var_smoothing=1e-3)]

DISCRETE = [
    MultinomialNB(),
    MultinomialNB(alpha=1e-3, fit_prior=False),
    MultinomialNB(alpha=0, force_alpha=False, class_prior=[0.1, 0.9]),
    ComplementNB(),
    ComplementNB(norm=True, alpha=0.3),
    BernoulliNB(),
    BernoulliNB(alpha=0.1, class_prior=[0.2, 0.8], binarize=1.0),
]


def some_of(data, n_classes, rng):
    """The rows of a few classes, as codes."""
    X, y = data.X, data.y
    chosen = rng.choice(np.unique(y), n_classes, replace=False)
    rows = np.flatnonzero(np.isin(y, chosen))
    X = X[rows] if issparse(X) else np.asarray(X[rows], dtype=np.float64)
    return X, np.searchsorted(np.sort(chosen), y[rows])


def random_task(X, codes, rng, *, weighted=False, ranks=None):
    n = codes.max() + 1
    tree = ClassTree(rng.permutation(n), rng.permutation(n - 1) if ranks is None else ranks)
    weight = None
    if weighted:
        weight = rng.exponential(size=len(codes))
        weight[(rng.random(len(codes)) < 0.1) | (codes == 1)] = 0
    return node_task(tree, X, codes, weight)


def close(actual, expected, tolerance=1e-8):
    """Log-odds may be billions, which a double knows to 1e-7."""
    assert np.array_equal(np.isnan(actual), np.isnan(expected))
    assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def check_equal_to_clones(estimator, task, rng):
    """Everything cross_fit gives, with a class that one fold alone has."""
    folds = rng.integers(3, size=len(task.rows.codes))
    folds[task.rows.codes == 0] = 2
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "alpha too small")
        fast, slow = (
            learner.cross_fit(in_folds(task, folds), EVERYTHING, Context(np.random.RandomState(0)))
            for learner in (NaiveBayesLearner.recognise(estimator), GenericLearner(estimator))
        )
    X = task.rows.X[rng.integers(len(task.rows.codes), size=100)]
    rows, nodes = rng.integers(100, size=1_000), rng.integers(task.tree.n_nodes, size=1_000)
    for scorer, clones in zip([fast.full, *fast.members], [slow.full, *slow.members], strict=True):
        assert np.array_equal(scorer.is_trained, clones.is_trained)
        log_odds = clones.log_odds(X)
        close(scorer.log_odds(X), log_odds)
        close(scorer.pair_log_odds(X, rows, nodes), log_odds[rows, nodes])
    close(fast.scores, slow.scores)


@pytest.mark.parametrize("weighted", [True, *slow(False)])
@pytest.mark.parametrize("estimator", GAUSSIANS + DISCRETE, ids=str)
@pytest.mark.parametrize(
    ("name", "n_classes"),
    [("omniglot_100", 30), *slow(("optdigits", 10), ("letter", 26))],
)
def test_dense_rows_give_what_clones_give(real_data, rng, name, n_classes, estimator, weighted):
    task = random_task(*some_of(real_data(name), n_classes, rng), rng, weighted=weighted)
    check_equal_to_clones(estimator, task, rng)


@pytest.mark.parametrize("weighted", [True, *slow(False)])
@pytest.mark.parametrize("estimator", DISCRETE, ids=str)
@pytest.mark.parametrize(
    ("name", "n_classes"),
    [("clinc150", 20), *slow(("reuters52", 20), ("onet_titles", 30))],
)
def test_sparse_rows_give_what_clones_give(real_data, rng, name, n_classes, estimator, weighted):
    task = random_task(*some_of(real_data(name), n_classes, rng), rng, weighted=weighted)
    check_equal_to_clones(estimator, task, rng)


def counts(rng, n_rows=300, n_features=40, n_classes=12):
    """Small sparse counts, some features seen by no class and some by all."""
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes)])
    rate = 0.3 * rng.exponential(size=(n_classes, n_features)) * (rng.random((n_classes, n_features)) < 0.3)
    X = rng.poisson(rate[codes]).astype(float)
    X[:, 0] = 1
    return X, codes


@pytest.mark.parametrize("estimator", GAUSSIANS + DISCRETE, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3, 60])
def test_few_rows_and_classes_of_one_row_give_what_clones_give(rng, estimator, n_classes):
    X, codes = counts(rng, n_rows=2 * n_classes + 8, n_classes=n_classes)
    X += 0.1 * rng.random(X.shape)  # clones have no answer where all rows of a node are the same
    check_equal_to_clones(estimator, random_task(X, codes, rng), rng)


@pytest.mark.parametrize("estimator", DISCRETE, ids=str)
def test_a_chain_of_classes_gives_what_clones_give(rng, estimator):
    X, codes = counts(rng, n_classes=30)
    for ranks in (np.arange(29), np.arange(29)[::-1]):
        check_equal_to_clones(estimator, random_task(csr_array(X), codes, rng, ranks=ranks), rng)


@pytest.mark.parametrize("estimator", [MultinomialNB, ComplementNB])
@pytest.mark.parametrize("convert", [np.asarray, csr_array])
def test_features_may_be_smoothed_differently(rng, estimator, convert):
    X, codes = counts(rng)
    task = random_task(convert(X), codes, rng)
    check_equal_to_clones(estimator(alpha=rng.uniform(0.1, 2, size=X.shape[1])), task, rng)


def scrambled(X, rng, index_type):
    """The same matrix with unsorted indices, duplicates that add up, and explicit zeros."""
    X = csr_array(X)
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    row, column = np.concatenate([row, row, row]), np.concatenate([X.indices, X.indices, X.indices[::-1]])
    data = np.concatenate([0.25 * X.data, 0.75 * X.data, np.zeros(X.nnz)])
    order = rng.permutation(len(row))
    order = order[np.argsort(row[order], kind="stable")]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=X.shape[0]))])
    made = csr_matrix(X.shape)
    made.data, made.indices, made.indptr = (
        data[order],
        column[order].astype(index_type),
        indptr.astype(index_type),
    )
    return made


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("estimator", [MultinomialNB(), ComplementNB(norm=True)], ids=str)
def test_any_way_to_write_a_sparse_matrix_gives_what_clones_give(rng, estimator, index_type):
    X, codes = counts(rng)
    messy = scrambled(X, rng, index_type)
    assert not messy.has_sorted_indices
    check_equal_to_clones(estimator, random_task(messy, codes, rng), rng)


def test_numbers_written_in_parts_are_added_before_they_are_binarised(rng):
    X, codes = counts(rng)
    messy, folds = scrambled(X, rng, np.int32), rng.integers(3, size=len(codes))
    task = random_task(csr_array(X), codes, rng)
    learner = NaiveBayesLearner(BernoulliNB(binarize=0.9))
    clean, parts = (
        learner.cross_fit(in_folds(each, folds), Wanted.FULL | Wanted.SCORES, Context())
        for each in (task, node_task(task.tree, messy, codes))
    )
    assert_allclose(parts.scores, clean.scores, rtol=1e-12)
    assert_allclose(parts.full.log_odds(messy), clean.full.log_odds(task.rows.X), rtol=1e-12)


@pytest.mark.parametrize("estimator", DISCRETE, ids=str)
def test_sparse_and_dense_counts_give_the_same_nodes(rng, estimator):
    X, codes = counts(rng)
    task = random_task(X, codes, rng)
    sparse = node_task(task.tree, csr_array(X), codes)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "alpha too small")
        learner = NaiveBayesLearner.recognise(estimator)
    a, b = (learner.fit(each, Context()) for each in (task, sparse))
    assert_allclose(b.log_odds(csr_array(X)), a.log_odds(X), rtol=1e-9, atol=1e-9)
    inner = getattr(a, "scorer", a), getattr(b, "scorer", b)
    assert isinstance(inner[0], DenseWeights)
    assert isinstance(inner[1], SparseWeights)


@pytest.mark.parametrize("convert", [np.asarray, csr_array])
@pytest.mark.parametrize("estimator", DISCRETE, ids=str)
def test_single_precision_counts_are_added_in_double_precision(rng, estimator, convert):
    X, codes = counts(rng)
    check_equal_to_clones(estimator, random_task(convert(X.astype(np.float32)), codes, rng), rng)


def test_single_precision_gaussians_are_those_of_the_same_numbers_in_double_precision(real_data, rng):
    X, codes = some_of(real_data("omniglot_100"), 30, rng)
    task = random_task(X.astype(np.float32), codes, rng)
    exact = node_task(task.tree, task.rows.X.astype(np.float64), codes)
    learner = NaiveBayesLearner(GaussianNB())
    narrow, wide = (learner.fit(each, Context()) for each in (task, exact))
    assert_allclose(narrow.log_odds(task.rows.X), wide.log_odds(exact.rows.X), rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1_000.0])
def test_features_that_are_constant_in_a_class_lose_no_digits(rng, offset):
    """A variance at its floor makes squares of a billion that must cancel."""
    X = rng.normal(size=(200, 6)) + offset
    codes = rng.integers(5, size=200)
    X[:, 3] = offset + 2.0**codes  # constant in every class, and nowhere halfway between two
    X[:, 4] = offset + 7
    task = random_task(X, codes, rng)
    scorer = NaiveBayesLearner(GaussianNB()).fit(task, Context())
    assert len(scorer.expanded.steep_node)
    rows, nodes = (each.ravel() for each in np.indices((200, 4)))
    direct = scorer.pair_log_odds(X, rows, nodes).reshape(200, 4)
    assert_allclose(scorer.log_odds(X), direct, rtol=1e-9, atol=1e-9)
    check_equal_to_clones(GaussianNB(), task, rng)


def test_a_node_whose_rows_are_all_the_same_answers_with_its_prior():
    X = np.array([[0.0, 1.0]] * 4 + [[3.0, 4.0]])
    task = node_task(ClassTree.from_nested([[0, 1], 2]), X, np.array([0, 0, 0, 1, 2]))
    scorer = NaiveBayesLearner(GaussianNB()).fit(task, Context())
    assert_allclose(scorer.log_odds(X)[:, 1], np.log(3))


@pytest.mark.parametrize("estimator", [GaussianNB(), MultinomialNB(), ComplementNB(norm=True), BernoulliNB()])
def test_folds_cost_no_members_unless_wanted(rng, estimator):
    X, codes = counts(rng)
    X += 0.1 * rng.random(X.shape)
    task = random_task(X, codes, rng)
    folds = rng.integers(3, size=len(codes))
    learner = NaiveBayesLearner(estimator)
    scored = learner.cross_fit(in_folds(task, folds), Wanted.SCORES, Context())
    assert scored.full is None
    assert len(scored.members) == 0
    bare = learner.cross_fit(in_folds(task, folds), Wanted.FULL, Context())
    assert bare.scores is None
    assert_allclose(bare.full.log_odds(X), learner.fit(task, Context()).log_odds(X), rtol=1e-9)


@pytest.mark.parametrize("convert", [np.asarray, csr_array])
@pytest.mark.parametrize("estimator", [GaussianNB(), *DISCRETE[3:]], ids=str)
def test_the_number_of_workers_changes_no_bit(rng, estimator, convert):
    if isinstance(estimator, GaussianNB) and convert is csr_array:
        pytest.skip("GaussianNB takes no sparse rows")
    X, codes = counts(rng, n_rows=600, n_classes=50)
    X = convert(X * rng.random())
    folds = rng.integers(3, size=len(codes))
    task = random_task(X, codes, rng)
    learner = NaiveBayesLearner(estimator)
    alone, many = (
        learner.cross_fit(in_folds(task, folds), EVERYTHING, Context(None, n_jobs)) for n_jobs in (1, 3)
    )
    assert np.array_equal(alone.scores, many.scores, equal_nan=True)
    for a, b in zip([alone.full, *alone.members], [many.full, *many.members], strict=True):
        assert np.array_equal(a.log_odds(X), b.log_odds(X))


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("estimator", DISCRETE[3:], ids=str)
def test_some_sparse_nodes_are_what_they_are_among_all(rng, estimator, n_jobs):
    X, codes = counts(rng, n_rows=600, n_classes=50)
    folds, learner = rng.integers(3, size=len(codes)), NaiveBayesLearner(estimator)
    task = random_task(csr_array(X * rng.random()), codes, rng, weighted=True)
    everything = learner.cross_fit(in_folds(task, folds), EVERYTHING, Context())
    pairs = task.own_pairs().offsets
    for n in (1, 5, 30):
        nodes = np.sort(rng.choice(task.n_nodes, n, replace=False))
        some = learner.cross_fit(
            in_folds(NodeTask(task.rows, task.tree, nodes), folds), EVERYTHING, Context(None, n_jobs)
        )
        close(some.scores, np.concatenate([everything.scores[pairs[k] : pairs[k + 1]] for k in nodes]))
        for part, whole in zip(
            [some.full, *some.members], [everything.full, *everything.members], strict=True
        ):
            close(part.log_odds(task.rows.X), whole.log_odds(task.rows.X)[:, nodes])


@pytest.mark.parametrize("estimator", [GaussianNB(), MultinomialNB(), BernoulliNB(binarize=0.5)], ids=str)
def test_the_classifier_equals_the_recursive_reference(real_data, rng, estimator):
    X, codes = some_of(real_data("optdigits"), 10, rng)
    nested = [[[0, 1], [2, [3, 4]]], [[5, 6], [[7, 8], 9]]]
    clf = NestedDichotomyClassifier(
        estimator, structure=nested, internal_calibration=None, external_calibration=None
    ).fit(X, codes)
    assert clf.learner_.startswith("naive-bayes: ")
    reference = RecursiveNestedDichotomy(estimator, nested).fit(X, codes)
    assert_allclose(clf.predict_proba(X), reference.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("internal", ["platt", "isotonic"])
def test_calibrated_probabilities_equal_those_of_clones(rng, internal):
    X, codes = counts(rng, n_rows=400)
    fast, slow = (
        NestedDichotomyClassifier(
            MultinomialNB(),
            "random",  # no two scores are equal but for rounding, which isotonic regression would notice
            internal_calibration=internal,
            external_calibration="vector",
            cv=3,
            learner=learner,
            random_state=0,
        )
        .fit(X, codes)
        .predict_proba(X)
        for learner in ("naive-bayes", "clones")
    )
    assert_allclose(fast, slow, atol=1e-7)


def test_progress_is_reported(rng, capsys):
    X, codes = counts(rng)
    for convert in (np.asarray, csr_array):
        task = random_task(convert(X), codes, rng)
        folds = rng.integers(2, size=len(codes))
        NaiveBayesLearner(MultinomialNB()).cross_fit(
            in_folds(task, folds), EVERYTHING, Context(None, 1, verbose=True)
        )
        assert "scoring out of fold at 11 nodes" in capsys.readouterr().err


# ---------------------------------------------------------------- what is not taken, and why


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (MultinomialNB(alpha=0), "alpha=0"),
        (ComplementNB(norm=True, alpha=[1.0, 2.0]), "array of alphas"),
        (BernoulliNB(alpha=[1.0, 2.0]), "array of alphas"),
        (GaussianNB(var_smoothing=0), "var_smoothing=0"),
        (GaussianNB(priors=[0.0, 1.0]), "prior of zero"),
        (MultinomialNB(class_prior=[0.0, 1.0]), "prior of zero"),
    ],
    ids=str,
)
def test_what_leaves_a_side_without_probability_is_left_to_clones(estimator, reason):
    with pytest.raises(Unsupported, match=reason):
        NaiveBayesLearner.recognise(estimator)
    assert reason in choose(estimator).description


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (MultinomialNB(alpha=-1), "'alpha' parameter"),
        (MultinomialNB(alpha=[1.0, -1.0]), "All values in alpha must be greater than 0"),
        (MultinomialNB(alpha=[[1.0]]), r"got shape \(1, 1\)"),
        (MultinomialNB(alpha=[1.0, 1.0]), "X has 4 features, alpha 2 values"),
        (MultinomialNB(class_prior=[1, 1, 1]), "Number of priors must match"),
        (ComplementNB(class_prior=[1, 1, 1]), "Number of priors must match"),
        (GaussianNB(priors=[0.5, 0.6]), "sum of the priors should be 1"),
        (GaussianNB(priors=[-0.5, 1.5]), "Priors must be non-negative"),
        (GaussianNB(priors=[1.0]), "Number of priors must match"),
        (GaussianNB(var_smoothing=-1), "'var_smoothing' parameter"),
        (BernoulliNB(binarize=-1), "'binarize' parameter"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_in_a_sentence(iris, estimator, sentence):
    with pytest.raises(ValueError, match=sentence):
        NestedDichotomyClassifier(estimator, internal_calibration=None, external_calibration=None).fit(*iris)


@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB])
@pytest.mark.parametrize("convert", [np.asarray, csr_array])
def test_negative_counts_are_refused(iris, kind, convert):
    X, y = iris
    with pytest.raises(ValueError, match=f"Negative values in data passed to {kind.__name__}"):
        NestedDichotomyClassifier(kind(), internal_calibration=None, external_calibration=None).fit(
            convert(X - 3), y
        )


@pytest.mark.parametrize("convert", [np.asarray, csr_array])
def test_features_that_are_no_zeros_and_ones_are_refused_if_not_binarised(iris, convert):
    X, y = iris
    clf = NestedDichotomyClassifier(
        BernoulliNB(binarize=None), internal_calibration=None, external_calibration=None, random_state=0
    )
    with pytest.raises(ValueError, match="needs features of 0 and 1"):
        clf.fit(convert(X), y)
    ones = (X.mean(axis=0) < X).astype(float)
    binary = clf.fit(convert(ones), y).predict_proba(convert(ones))
    clf.set_params(estimator=BernoulliNB())
    assert_allclose(clf.fit(convert(ones), y).predict_proba(convert(ones)), binary)


def test_a_single_feature_cannot_be_normalised(iris):
    X, y = iris
    with pytest.raises(ValueError, match="cannot weigh a single feature"):
        NestedDichotomyClassifier(
            ComplementNB(norm=True), internal_calibration=None, external_calibration=None
        ).fit(X[:, :1], y)


def test_an_alpha_that_is_too_small_is_warned_of_once(rng):
    X, codes = counts(rng)
    clf = NestedDichotomyClassifier(
        MultinomialNB(alpha=0, force_alpha=False), internal_calibration="platt", external_calibration="vector"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(X, codes)
    assert [str(warning.message).startswith("alpha too small") for warning in caught] == [True]
