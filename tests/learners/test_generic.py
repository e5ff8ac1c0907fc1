"""The generic path takes any scikit-learn classifier and reads log-odds off it."""

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils import all_estimators

from dichotomies._common.parallel import even_batches, run
from dichotomies._kernels.elementary import CERTAIN
from dichotomies.learners.generic import _KNOWN_METHODS, _probability_method
from dichotomies.tree import ClassTree
from tests.reference import RecursiveNestedDichotomy
from tests.tasks import node_task
from tests.uncalibrated import Clones

LOGISTIC = LogisticRegression(max_iter=300)

BASE_LEARNERS = {
    LOGISTIC: "decision_function",
    SGDClassifier(loss="log_loss", random_state=0): "decision_function",
    HistGradientBoostingClassifier(max_iter=5, random_state=0): "decision_function",
    AdaBoostClassifier(n_estimators=3, random_state=0): "decision_function",
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.9): "decision_function",
    make_pipeline(StandardScaler(), LOGISTIC): "decision_function",
    GridSearchCV(LOGISTIC, {"C": [0.1, 1]}, cv=2): "decision_function",
    SGDClassifier(loss="modified_huber", random_state=0): "predict_log_proba",
    GaussianNB(): "predict_log_proba",
    make_pipeline(PCA(5), GaussianNB()): "predict_log_proba",
    DecisionTreeClassifier(random_state=0): "predict_proba",
    RandomForestClassifier(n_estimators=3, random_state=0): "predict_proba",
    KNeighborsClassifier(): "predict_proba",
    CalibratedClassifierCV(GaussianNB(var_smoothing=0.1), cv=2): "predict_proba",
    MLPClassifier((3,), solver="lbfgs", max_iter=2000, random_state=0): "predict_log_proba",
}


@pytest.mark.parametrize("estimator", BASE_LEARNERS, ids=lambda e: str(e).split("(")[0])
def test_every_kind_of_classifier_equals_the_product_of_its_clones(digits, estimator):
    X, y = digits
    clf = Clones(estimator, structure=[[0, 1], [[2, 3], 4]])
    few = np.flatnonzero(y < 5)[:300]
    clf.fit(X[few], y[few])
    methods = {node.method for node in clf.model_.scorer.nodes}
    assert BASE_LEARNERS[estimator] in methods
    assert methods <= {BASE_LEARNERS[estimator], "predict_log_proba"}  # all scores may be too far out to tell
    proba = clf.predict_proba(X[few])
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    if not isinstance(estimator, MLPClassifier | SGDClassifier):  # not symmetric in how sides are coded
        reference = RecursiveNestedDichotomy(estimator, [[0, 1], [[2, 3], 4]]).fit(X[few], y[few])
        np.testing.assert_allclose(proba, reference.predict_proba(X[few]), atol=1e-6)
    binary = [node.estimator.predict_proba(X[few])[:, 1] for node in clf.model_.scorer.nodes]
    scored = expit(clf.model_.scorer.log_odds(X[few]) * [node.sign for node in clf.model_.scorer.nodes])
    np.testing.assert_allclose(scored, np.transpose(binary), atol=1e-9)


@pytest.mark.parametrize("name", _KNOWN_METHODS)
def test_what_is_known_of_a_learner_is_what_trying_it_would_find(digits, name, monkeypatch):
    X, y = digits
    kind = dict(all_estimators("classifier"))[name]
    estimator = kind(max_iter=500) if kind is LogisticRegression else kind()
    if kind is LogisticRegressionCV:
        estimator = kind(
            Cs=2, cv=2, use_legacy_attributes=False, l1_ratios=(0,), scoring="neg_log_loss", max_iter=500
        )
    estimator.fit(X, y < 5)
    known = _KNOWN_METHODS[name]
    monkeypatch.delitem(_KNOWN_METHODS, name)
    tried = _probability_method(estimator, X[:20])
    if known == "predict_proba":  # logarithms of probabilities are the same log-odds
        assert tried == "predict_log_proba"
    else:
        assert tried == known


def test_naive_bayes_keeps_its_log_odds_where_its_probabilities_round_to_one(digits):
    X, y = digits
    clf = Clones(GaussianNB(), structure="class-balanced", random_state=0).fit(X, y)
    assert np.abs(clf.model_.scorer.log_odds(X)).max() > 1_000
    assert np.isfinite(clf.predict_log_proba(X)).all()


def test_exact_zeros_and_ones_mean_one_step_of_double_precision(digits):
    X, y = digits
    clf = Clones(DecisionTreeClassifier(random_state=0), random_state=0).fit(X, y)
    assert set(np.unique(np.abs(clf.model_.scorer.log_odds(X)))) == {CERTAIN}
    assert np.isfinite(clf.predict_log_proba(X)).all()


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (LinearSVC(), "LinearSVC has no predict_proba.*internal_calibration='platt'"),
        (SGDClassifier(random_state=0), "SGDClassifier has no predict_proba"),
        (make_pipeline(StandardScaler(), LinearSVC()), "Pipeline has no predict_proba"),
        (LinearRegression(), "must be a scikit-learn classifier, got LinearRegression"),
        ("logistic", "got the name .logistic.: write LogisticRegression"),
        (LogisticRegression, "must be an instance, got the class LogisticRegression"),
    ],
)
def test_a_learner_without_probabilities_is_refused_in_a_sentence(iris, estimator, sentence):
    with pytest.raises(TypeError, match=sentence):
        Clones(estimator).fit(*iris)


def test_a_decision_function_that_is_not_log_odds_is_not_taken_for_it_far_from_the_boundary(digits):
    X, y = digits
    base = SGDClassifier(loss="modified_huber", random_state=0)
    clf = Clones(base, random_state=0).fit(16 * X, y)  # raw pixels: nearly all scores saturate
    assert "decision_function" not in {node.method for node in clf.model_.scorer.nodes}


def test_learners_that_list_their_classes_backwards_are_read_right(iris):
    class Backwards(GaussianNB):
        def fit(self, X, y):
            super().fit(X, y)
            for name in ("theta_", "var_", "class_prior_", "class_count_", "classes_"):
                setattr(self, name, getattr(self, name)[::-1])
            return self

    straight, backwards = (Clones(base, [0, [1, 2]]).fit(*iris) for base in (GaussianNB(), Backwards()))
    np.testing.assert_allclose(backwards.predict_proba(iris[0]), straight.predict_proba(iris[0]))


def test_answers_of_the_wrong_shape_are_refused(iris):
    class Flat(GaussianNB):
        def predict_proba(self, X):
            return np.full(len(X), 0.5)

        predict_log_proba = None

    clf = Clones(Flat()).fit(*iris)
    for node in clf.model_.scorer.nodes:
        object.__setattr__(node, "method", "predict_proba")
    with pytest.raises(ValueError, match=r"Flat\.predict_proba answered with shape \(150,\)"):
        clf.predict(iris[0])


def test_an_error_inside_a_node_says_which(iris):
    X, y = iris
    rare = np.where(np.arange(150) == 7, 9, y)
    with pytest.raises(ValueError, match=r".") as caught:
        Clones(CalibratedClassifierCV(GaussianNB(), cv=3), [[0, 9], [1, 2]]).fit(X, rare)
    assert any("node 1 of the tree, which has 50 rows" in note for note in caught.value.__notes__)


def test_invalid_parameters_of_the_base_learner_are_still_checked(iris):
    with pytest.raises(ValueError, match="'C' parameter"):
        Clones(LogisticRegression(C=-1)).fit(*iris)


def test_weights_for_a_learner_that_takes_none_are_refused(iris):
    with pytest.raises(TypeError, match="KNeighborsClassifier cannot be fitted with it"):
        Clones(KNeighborsClassifier()).fit(*iris, sample_weight=np.ones(150))


def test_a_learner_that_answers_nan_is_named(iris):
    class Broken(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), np.nan)

    clf = Clones(Broken()).fit(*iris)
    with pytest.raises(ValueError, match="Broken answered NaN at node 0"):
        clf.predict(iris[0])


def test_rows_reach_the_nodes_in_their_original_order(iris):
    X, y = iris
    shuffled = np.random.default_rng(0).permutation(len(y))

    class Recorder(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            self.seen_ = X[:, 0]
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    X = np.c_[np.arange(len(y)), X[shuffled]]
    clf = Clones(Recorder(), structure=[[2, 0], 1]).fit(X, y[shuffled])
    assert np.array_equal(clf.estimators_[0].seen_, np.arange(150))
    assert np.array_equal(clf.estimators_[1].seen_, np.flatnonzero(y[shuffled] != 1))


def test_scanning_and_sorting_find_the_same_rows(rng):
    tree = ClassTree(rng.permutation(100), rng.permutation(99))
    codes = rng.integers(100, size=2_000)
    task = node_task(tree, rng.normal(size=(2_000, 1)), codes)
    for node in range(tree.n_nodes):
        rows, is_left = task.rows_of(node)
        left = set(tree.leaf_order[tree.start[node] : tree.split[node]].tolist())
        right = set(tree.leaf_order[tree.split[node] : tree.stop[node]].tolist())
        expected = [i for i, code in enumerate(codes) if code in left | right]
        assert rows.tolist() == expected
        assert is_left.tolist() == [codes[i] in left for i in expected]
        assert task.node_size[node] == len(rows)


def test_cross_validation_inside_a_node_sees_every_class_in_every_fold(digits):
    """A base learner with unshuffled folds would lose whole classes, were rows sorted by class."""
    X, y = digits
    base = CalibratedClassifierCV(GaussianNB(var_smoothing=1e-2), cv=3)  # stratified, not shuffled
    clf = Clones(base, "random", random_state=0)
    by_class = np.argsort(y, kind="stable")
    mixed_score = clf.fit(X, y).score(X, y)
    assert mixed_score > clf.fit(X[by_class], y[by_class]).score(X, y) + 0.05


def test_seeds_left_open_are_filled_per_node_and_set_ones_are_kept(digits):
    X, y = digits
    forest = RandomForestClassifier(n_estimators=2, max_depth=2)
    clf = Clones(make_pipeline(PCA(5), forest), random_state=3).fit(X, y)
    seeds = [model.get_params()["randomforestclassifier__random_state"] for model in clf.estimators_]
    assert len(set(seeds)) == len(seeds)
    assert forest.random_state is None
    again = Clones(make_pipeline(PCA(5), forest), random_state=3).fit(X, y)
    assert np.array_equal(clf.predict_proba(X), again.predict_proba(X))
    kept = Clones(RandomForestClassifier(n_estimators=2, random_state=7)).fit(X, y)
    assert {model.random_state for model in kept.estimators_} == {7}


def test_a_class_whose_rows_all_weigh_nothing_gets_a_small_finite_probability(iris):
    X, y = iris
    weight = np.where(y == 2, 0.0, 1.0)
    clf = Clones(GaussianNB(), structure=[[0, 1], 2]).fit(X, y, weight)
    assert clf.estimators_[0] is None
    np.testing.assert_allclose(clf.predict_proba(X)[:, 2], 1 / 102)  # (0 + 1) / (100 + 2)


def test_batches_cover_the_nodes_in_order_with_even_work():
    sizes = np.array([100, 60, 40, 30, 30, 20, 20] + [5] * 40)
    batches = even_batches(sizes, 1)
    assert [node for batch in batches for node in batch] == list(range(len(sizes)))
    assert max(sizes[list(batch)].sum() for batch in batches) <= 100 + sizes.sum() / 16


def _kind_of_memory(task):
    return (
        type(task.rows.X).__name__ if isinstance(task.rows.X, np.ndarray) else type(task.rows.X.data).__name__
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_worker_processes_map_large_data_instead_of_receiving_it(sparse):
    X = np.ones((1_000, 300))
    task = node_task(ClassTree(["a", "b"], [0]), csr_array(X) if sparse else X, np.zeros(1_000, dtype=int))
    with parallel_config("loky"):
        assert run(_kind_of_memory, [(task,), (task,)], n_jobs=2) == ["memmap", "memmap"]


def _pid(_):
    import os

    return os.getpid()


def test_the_users_backend_is_honoured():
    import os

    with parallel_config("threading"):
        assert set(run(_pid, [(i,) for i in range(4)], n_jobs=2)) == {os.getpid()}
    with parallel_config("loky"):
        assert os.getpid() not in run(_pid, [(i,) for i in range(4)], n_jobs=2)


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky", "multiprocessing"])
@pytest.mark.parametrize("estimator", [LOGISTIC, GaussianNB(), ExtraTreeClassifier()], ids=repr)
def test_the_answer_does_not_depend_on_n_jobs_or_backend(digits, backend, estimator):
    X, y = digits
    X, X_test = X[:400], X[400:]
    alone = Clones(estimator, random_state=0).fit(X, y[:400])
    with parallel_config(backend):
        many = Clones(estimator, random_state=0, n_jobs=2).fit(X, y[:400])
        assert np.array_equal(many.predict_proba(X_test), alone.predict_proba(X_test))


@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB, BernoulliNB])
def test_sparse_and_dense_rows_give_the_same_answer(digits, kind):
    X, y = digits
    dense = Clones(kind(), random_state=0).fit(X, y).predict_log_proba(X)
    sparse = Clones(kind(), random_state=0).fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.predict_log_proba(csr_array(X)), dense, rtol=1e-9)
