"""Logistic regression at all nodes together gives what one clone per node gives, and chooses C honestly."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit, log_expit
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import check_estimator

from dichotomies._common.parallel import Context
from dichotomies._kernels import compile as kernels
from dichotomies._kernels.newton.lbfgs import slopes
from dichotomies.learners import GenericLearner, Wanted, choose
from dichotomies.learners.logistic import LogisticLearner, TunedLogisticLearner, TunedLogisticRegression
from dichotomies.learners.logistic.strength import PSEUDO_ROWS
from dichotomies.rows.folds import fold_of_rows
from dichotomies.tree import ClassTree
from tests.reference import RecursiveNestedDichotomy
from tests.slow import slow
from tests.tasks import in_folds, node_task
from tests.uncalibrated import Uncalibrated

#: Every law holds for plain code and for kernels, whatever the size.
WAYS = {"plain": np.inf, "compiled": -1.0}


@pytest.fixture(params=WAYS, autouse=True)
def way(request, monkeypatch):
    """One of the ways, or the choice between them where a test tries both itself."""
    monkeypatch.setattr(kernels, "PATIENCE", WAYS.get(request.param, kernels.PATIENCE))


tries_both = pytest.mark.parametrize("way", ["both"], indirect=True)

EVERYTHING = Wanted.FULL | Wanted.MEMBERS | Wanted.SCORES

VARIANTS = {
    "default": {},
    "weak penalty": {"C": 100.0},
    "strong penalty": {"C": 1e-3},
    "no intercept": {"fit_intercept": False},
    "balanced": {"class_weight": "balanced"},
    "weights of sides": {"class_weight": {0: 0.5, 1: 3.0}},
    "liblinear": {"solver": "liblinear", "intercept_scaling": 2.0},
    "liblinear, no intercept": {"solver": "liblinear", "fit_intercept": False},
    "liblinear, balanced": {"solver": "liblinear", "class_weight": "balanced"},
}


def _exact(**params):
    return LogisticRegression(**{"solver": "newton-cholesky", "tol": 1e-10, "max_iter": 10_000, **params})


def _fast(**params):
    return LogisticRegression(**{"tol": 1e-8, **params})


def _as_dense(X):
    return X


def _assert_equal_to_clones(X, y, weight, folds, params, atol=1e-5):
    tree = ClassTree(np.random.default_rng(1).permutation(10), np.random.default_rng(2).permutation(9))
    task = node_task(tree, X, y, weight)
    rng = np.random.RandomState(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        exactly = node_task(tree, X.astype(np.float64), y, weight)  # solvers stop early in single precision
        clones = GenericLearner(_exact(**params)).cross_fit(
            in_folds(exactly, folds), EVERYTHING, Context(rng)
        )
    learner = LogisticLearner.recognise(_fast(**params))
    task = in_folds(task, folds)
    for patience in WAYS.values():
        kernels.PATIENCE = patience  # restored by the fixture
        fast = learner.cross_fit(task, EVERYTHING, Context(rng))
        _assert_equal(fast, clones, X, atol)


def _assert_equal(fast, clones, X, atol):
    pairs = zip([clones.full, *clones.members], [fast.full, *fast.members], strict=True)
    for expected, answer in pairs:
        assert np.array_equal(expected.is_trained, answer.is_trained)
        np.testing.assert_allclose(
            np.exp(log_expit(answer.log_odds(X))), np.exp(log_expit(expected.log_odds(X))), rtol=0, atol=atol
        )
    assert np.array_equal(np.isnan(fast.scores), np.isnan(clones.scores))
    np.testing.assert_allclose(fast.scores, clones.scores, rtol=10 * atol, atol=10 * atol)


@tries_both
@pytest.mark.parametrize("kind", [_as_dense, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_rows", [90, *slow(700)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_full_models_members_and_scores_equal_clones(digits, rng, variant, n_rows, kind):
    X, y = digits
    rows = rng.permutation(len(y))[:n_rows]
    weight = rng.exponential(size=n_rows)
    weight[::7] = 0.0
    folds = rng.integers(3, size=n_rows)
    _assert_equal_to_clones(kind(X[rows]), y[rows], weight, folds, VARIANTS[variant])


@tries_both
@pytest.mark.parametrize("kind", [_as_dense, csr_array], ids=["dense", "sparse"])
def test_single_precision_is_kept_and_exact_enough(digits, rng, kind):
    X, y = digits
    X = kind(X.astype(np.float32))
    _assert_equal_to_clones(X, y, None, rng.integers(3, size=len(y)), {}, atol=1e-4)
    tree = ClassTree(list(range(10)), list(range(9)))
    scorer = LogisticLearner.recognise(LogisticRegression()).fit(node_task(tree, X, y), Context())
    assert (scorer.weights if kind is _as_dense else scorer.value).dtype == np.float32


def test_coefficients_equal_scikit_learns(digits):
    X, y = digits
    for few in (50, 1_000):
        is_left = y[:few] < 5
        expected = _exact().fit(X[:few], is_left)
        task = node_task(ClassTree([1, 0], [0]), X[:few], is_left.astype(int))
        scorer = LogisticLearner.recognise(_fast()).fit(task, Context())
        scale_of = np.abs(expected.coef_).max()
        np.testing.assert_allclose(scorer.weights, expected.coef_, rtol=0, atol=1e-5 * scale_of)
        np.testing.assert_allclose(scorer.intercept, expected.intercept_, rtol=1e-4)


def test_the_nested_dichotomy_equals_the_recursive_reference(digits):
    X, y = digits
    nested = [[[0, 1], [2, 3]], [[4, [5, 6]], [7, [8, 9]]]]
    clf = Uncalibrated(_fast(), structure=nested).fit(X, y)
    assert clf.learner_.startswith("logistic: ")
    reference = RecursiveNestedDichotomy(_exact(), nested).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), reference.predict_proba(X), rtol=0, atol=1e-5)


def _like(X, rows):
    return rows if isinstance(X, np.ndarray) else csr_array(rows)


def _objective(scorer, task):
    """What every node minimises, for C = 1."""
    log_odds, total = scorer.log_odds(task.rows.X), np.empty(task.tree.n_nodes)
    columns = task.rows.X.shape[1]
    weights = scorer.log_odds(_like(task.rows.X, np.eye(columns))) - scorer.log_odds(
        _like(task.rows.X, np.zeros((1, columns)))
    )
    for node in range(task.tree.n_nodes):
        rows, is_left = task.rows_of(node)
        margin = np.where(is_left, 1, -1) * log_odds[rows, node]
        total[node] = -log_expit(margin).sum() + 0.5 * (weights[:, node] ** 2).sum()
    return total


@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_rows", [90, 400, 1797])
def test_at_the_default_tolerance_the_optimum_is_at_least_as_near_as_the_clones(digits, kind, n_rows):
    X, y = digits
    tree = ClassTree(list(range(10)), [3, 1, 2, 0, 4, 7, 5, 6, 8])
    task = node_task(tree, kind(X[:n_rows]), y[:n_rows])
    estimator = LogisticRegression(max_iter=10_000)
    clones = GenericLearner(estimator).fit(task, Context(np.random.RandomState(0)))
    best = _objective(LogisticLearner.recognise(_fast()).fit(task, Context()), task)
    ours = _objective(LogisticLearner.recognise(estimator).fit(task, Context()), task)
    theirs = _objective(clones, task)
    assert (ours - best <= np.maximum(theirs - best, 1e-6 * best)).all()
    assert (ours - best).sum() < (theirs - best).sum()


FAR_FROM_STANDARD = {
    "far from zero": lambda X: X + 1e4,
    "of many scales": lambda X: X * np.logspace(-3, 3, X.shape[1]),
    "one of them huge": lambda X: np.c_[1e6 * X[:, 30], X],
    "beyond single precision": lambda X: np.c_[1e30 * X[:, 30], X],
}


@pytest.mark.parametrize("change", FAR_FROM_STANDARD)
def test_features_however_scaled_or_shifted_lead_to_the_optimum(digits, change):
    X, y = digits
    tree = ClassTree(list(range(10)), [3, 1, 2, 0, 4, 7, 5, 6, 8])
    task = node_task(tree, FAR_FROM_STANDARD[change](X / 16), y)
    best, ours = (
        _objective(LogisticLearner.recognise(estimator).fit(task, Context()), task)
        for estimator in (_fast(max_iter=1_000), LogisticRegression())
    )
    assert (ours - best <= 1e-4 * best).all()


def test_pulls_in_single_precision_equal_scipys():
    z = np.linspace(-60, 60, 1_001, dtype=np.float32)
    y, cost = np.where(np.arange(len(z)) % 3, 1, -1).astype(np.float32), np.full_like(z, 2.5)
    expected = 2.5 * y * expit(-y.astype(np.float64) * z)
    slope = np.empty_like(z)
    curvature = slopes(z.copy(), np.float32(0.0), y, cost, slope)
    np.testing.assert_allclose(slope, expected, rtol=1e-5)
    assert curvature == pytest.approx(2.5 * (expit(z) * expit(-z)).sum(), rel=1e-5)


def test_unsorted_indices_duplicates_and_explicit_zeros_change_nothing(digits):
    X, y = digits
    X, y = X[:300], y[:300]
    clean = csr_array(X)
    order = np.concatenate(
        [np.arange(clean.indptr[i], clean.indptr[i + 1])[::-1] for i in range(300)]
    )  # every entry halved and written twice, backwards, and a zero of its own
    data = np.concatenate([clean.data[order] / 2, clean.data[order] / 2])
    row = np.repeat(np.arange(300), np.diff(clean.indptr))
    both = np.argsort(np.concatenate([row, row]), kind="stable")
    indices = np.concatenate([clean.indices[order], clean.indices[order]])[both]
    messy = csr_array(
        (data[both], indices.astype(np.int64), 2 * clean.indptr.astype(np.int64)), shape=X.shape
    )
    messy.data[0] = 0.0
    expected = messy.copy()
    expected.sum_duplicates()
    tree = ClassTree(list(range(10)), list(range(9)))
    learner = LogisticLearner.recognise(_fast())
    a, b = (learner.fit(node_task(tree, rows, y), Context()).log_odds(expected) for rows in (messy, expected))
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", [_as_dense, csr_array], ids=["dense", "sparse"])
def test_degenerate_nodes_are_finite(rng, C, kind):
    """One row a side, a constant column, a row of zeros, one feature, weights over twelve orders."""
    X = np.c_[rng.normal(size=40), np.ones(40), np.zeros(40)]
    X[3] = 0.0
    y = np.r_[0, 1, 2, 2, 3, 3, rng.integers(4, 6, size=34)]
    weight = 10.0 ** rng.integers(-6, 7, size=40)
    tree = ClassTree([0, 1, 2, 3, 4, 5], [1, 0, 2, 1, 3])
    learner = LogisticLearner.recognise(LogisticRegression(C=C))
    for features in (X, X[:, :1]):
        rows = kind(features)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = learner.cross_fit(
                in_folds(node_task(tree, rows, y, weight), np.arange(40) % 3), EVERYTHING, Context()
            )
        for scorer in (fitted.full, *fitted.members):
            assert np.isfinite(scorer.log_odds(rows)).all()


def test_two_separable_rows_equal_scikit_learn():
    X, y = np.array([[-1.0, 2.0], [1.0, 0.0]]), np.array([0, 1])
    for C in (1e-3, 1.0, 1e3):
        clf = Uncalibrated(_fast(C=C)).fit(X, y)
        np.testing.assert_allclose(
            clf.predict_proba(X), _exact(C=C).fit(X, y).predict_proba(X), rtol=0, atol=1e-6
        )


def test_too_few_steps_are_reported_once(digits):
    X, y = digits
    with pytest.warns(ConvergenceWarning, match=r"did not converge \d+ times at 9 nodes") as caught:
        Uncalibrated(LogisticRegression(max_iter=1)).fit(X, y)
    assert len(caught) == 1


@pytest.mark.parametrize("kind", [_as_dense, csr_array], ids=["dense", "sparse"])
def test_the_answer_does_not_depend_on_n_jobs(digits, kind):
    X, y = digits
    tree = ClassTree(list(range(10)), [3, 1, 2, 0, 4, 7, 5, 6, 8])
    learner = LogisticLearner.recognise(LogisticRegression())
    alone, together = (
        learner.fit(node_task(tree, kind(X), y), Context(None, n_jobs)).log_odds(kind(X)) for n_jobs in (1, 3)
    )
    assert np.array_equal(alone, together)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"l1_ratio": 1.0, "solver": "saga"}, "its penalty is not L2 alone"),
        ({"l1_ratio": 0.5, "solver": "saga"}, "its penalty is not L2 alone"),
        ({"C": np.inf}, "it has no penalty"),
        ({"warm_start": True}, "warm_start=True"),
        ({"dual": True}, "only solver='liblinear' has dual=True"),
        ({"class_weight": {"a": 1.0}}, "labels other than 0 and 1"),
        ({"class_weight": {0: 0.0}}, "not positive"),
    ],
)
def test_what_it_cannot_honour_goes_to_clones_with_the_reason(params, reason):
    assert reason in choose(LogisticRegression(**params)).description


def test_the_highest_class_decides_which_side_is_positive(rng):
    tree = ClassTree(rng.permutation(30), rng.permutation(29))
    task = node_task(tree, np.zeros((0, 1)), np.zeros(0, dtype=np.intp))
    for node, is_left in enumerate(task.left_is_positive):
        left = tree.leaf_order[tree.start[node] : tree.split[node]].max()
        assert is_left == (left > tree.leaf_order[tree.split[node] : tree.stop[node]].max())


# ---------------------------------------------------------------------- choosing C


@pytest.mark.slow
@tries_both
def test_the_tuned_classifier_passes_scikit_learns_checks():
    check_estimator(TunedLogisticRegression(random_state=0), on_skip=None)


def _brute_force_losses(task, folds, Cs):
    """Out-of-fold loss of each node and C, by scikit-learn's own models."""
    nll = np.zeros((task.tree.n_nodes, len(Cs)))
    for node in range(task.tree.n_nodes):
        rows, is_left = task.rows_of(node)
        for c, C in enumerate(Cs):
            for fold in range(folds.max() + 1):
                seen = folds[rows] != fold
                model = _exact(C=C).fit(task.rows.X[rows[seen]], is_left[seen])
                score = model.decision_function(task.rows.X[rows[~seen]])
                nll[node, c] -= log_expit(np.where(is_left[~seen], score, -score)).sum()
    return nll


@pytest.mark.parametrize("per", ["node", "depth"])
def test_the_choice_equals_brute_force(digits, per):
    X, y = digits
    rows = np.flatnonzero(y < 5)[:200]
    tree, Cs = ClassTree.from_nested([[0, 1], [2, [3, 4]]]), np.array([1e-3, 1e-2, 1e-1, 1.0, 10.0])
    task = node_task(tree, X[rows], y[rows]).prepared()
    learner = TunedLogisticLearner.recognise(TunedLogisticRegression(Cs, per=per, random_state=3))
    scorer = learner.fit(task, Context())
    nll = _brute_force_losses(task, fold_of_rows(task.rows.codes, 3, np.random.RandomState(3)), Cs)
    depth = np.array([nll[tree.depth == d].sum(axis=0) for d in range(3)])
    size = np.array([task.node_size[tree.depth == d].sum() for d in range(3)])
    depth += PSEUDO_ROWS * nll.sum(axis=0) / size.sum()
    if per == "depth":
        expected = Cs[depth.argmin(axis=1)][tree.depth]
    else:
        mean = depth / (size + PSEUDO_ROWS)[:, None]
        expected = Cs[(nll + PSEUDO_ROWS * mean[tree.depth]).argmin(axis=1)]
    assert np.array_equal(scorer.C, expected)


def test_a_tree_of_two_leaves_equals_the_classifier_on_its_own():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    alone = TunedLogisticRegression(random_state=0).fit(X, y)
    clf = Uncalibrated(TunedLogisticRegression(random_state=0, tol=1e-8)).fit(X, y)
    assert clf.learner_.startswith("tuned-logistic: ")
    np.testing.assert_allclose(clf.predict_proba(X), alone.predict_proba(X), rtol=0, atol=1e-5)
    expected = _exact(C=alone.C_).fit(X, y)
    np.testing.assert_allclose(alone.coef_, expected.coef_, rtol=1e-4, atol=1e-6)


def test_no_row_is_scored_with_a_C_that_has_seen_it(digits):
    """Whatever the labels of a fold are, the member that must not see it is the same."""
    X, y = digits
    X, y = X[:300], y[:300]
    folds = np.arange(300) % 3
    other = np.where(folds == 1, (y + 1) % 10, y)
    tree = ClassTree(list(range(10)), [3, 1, 2, 0, 4, 7, 5, 6, 8])
    learner = TunedLogisticLearner.recognise(TunedLogisticRegression(random_state=0))
    members = [
        learner.cross_fit(in_folds(node_task(tree, X, codes), folds), Wanted.MEMBERS, Context()).members[1]
        for codes in (y, other)
    ]
    assert np.array_equal(members[0].C, members[1].C)
    assert np.array_equal(members[0].log_odds(X), members[1].log_odds(X))


def test_nodes_too_small_for_folds_follow_the_others(rng):
    X = rng.normal(size=(202, 3))
    y = np.r_[np.repeat([0, 1], 100), 2, 3]
    X[:200, 0] += y[:200]
    learner = TunedLogisticLearner.recognise(TunedLogisticRegression((1e-4, 1e-1, 1e4), random_state=0))
    scorer = learner.fit(node_task(ClassTree.from_nested([[0, 1], [2, 3]]), X, y), Context())
    assert scorer.C[2] == scorer.C[1]


@pytest.mark.slow
@tries_both
def test_choosing_per_node_or_depth_beats_the_best_single_C_on_test_rows(real_data):
    data = real_data("omniglot")
    codes = np.unique(data.y, return_inverse=True)[1]
    rows = np.flatnonzero(codes < 200)
    X, y = data.X[rows] / 255.0, codes[rows]
    test = np.random.default_rng(0).random(len(y)) < 0.25

    def nll(estimator):
        clf = Uncalibrated(estimator, "random", random_state=0).fit(X[~test], y[~test])
        return -clf.predict_log_proba(X[test])[np.arange(test.sum()), y[test]].mean()

    Cs = tuple(10.0 ** np.arange(-2, 2.6, 0.5))
    best = min(nll(LogisticRegression(C=C)) for C in Cs)
    assert nll(TunedLogisticRegression(Cs, per="node")) < best
    assert nll(TunedLogisticRegression(Cs, per="depth")) < best


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"Cs": ()}, "Cs must be positive"),
        ({"Cs": (1.0, -1.0)}, "Cs must be positive"),
        ({"per": "tree"}, "per must be 'node' or 'depth'"),
        ({"cv": 1}, "cv must be at least 2 folds"),
        ({"class_weight": {5: 1.0}}, "labels other than 0 and 1"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        TunedLogisticRegression(**params).fit(np.array([[0.0], [1.0], [0.5], [2.0]]), [0, 1, 0, 1])


@pytest.mark.parametrize("scale", [1e4, 1e6])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the last digits
def test_sparse_rows_of_large_values_end_where_dense_ones_do(scale):
    rng = np.random.RandomState(0)
    y = rng.randint(8, size=900)
    X = csr_array(rng.poisson(0.1 + 2 * (rng.rand(8, 400) < 0.05)[y]).astype(float)) * scale
    rows, losses = np.arange(len(y)), []
    for each in (X, X.toarray()):
        clf = Uncalibrated(LogisticRegression(max_iter=1000), random_state=0).fit(each, y)
        losses.append(-clf.predict_log_proba(each)[rows, y].mean())
    assert losses[0] <= losses[1] + 1e-6


@pytest.mark.parametrize("offset", [0, 1_000, 10_000])
def test_single_precision_far_from_zero_is_as_good_as_double(offset):
    rng = np.random.RandomState(0)
    y = rng.randint(6, size=180)
    X = (0.3 * rng.randn(6, 300)[y] + rng.randn(180, 300) + offset).astype(np.float32)
    single, double = (
        Uncalibrated(LogisticRegression(), random_state=0).fit(each, y).predict_proba(each)
        for each in (X, X.astype(np.float64))
    )
    np.testing.assert_allclose(single, double, atol=1e-3)
