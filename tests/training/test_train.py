"""Internal and external calibration, wired into the classifier."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from dichotomies import NestedDichotomyClassifier
from dichotomies._common.parallel import Context
from dichotomies.calibrators.binary import BINARY, Segments
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.inference.scorers import MOST_LOG_ODDS
from dichotomies.learners import GenericLearner, Wanted
from dichotomies.rows.folds import fold_of_rows, hold_out
from dichotomies.structures import STRUCTURES
from dichotomies.training.cross_fitting import CrossFit
from dichotomies.training.plan import Plan
from tests.slow import slow
from tests.tasks import in_folds, node_task

NB = GaussianNB(var_smoothing=1e-3)
LOGISTIC = LogisticRegression(solver="newton-cholesky", tol=1e-10)
#: Plain maximum likelihood has no finite optimum where the calibration rows are separable, and says so.
UNBOUNDED = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SCHEMES = list(itertools.product([None, "platt", "isotonic"], [None, "vector"]))


def fit(X, y, estimator=NB, **params):
    return NestedDichotomyClassifier(estimator, random_state=0, **params).fit(X, y)


def two_halves(digits):
    X, y = digits
    return X[::2], y[::2], X[1::2], y[1::2]


# ------------------------------------------------------------------ two classes: scikit-learn's own


@pytest.mark.parametrize(("ours", "theirs"), [("platt", "sigmoid"), ("isotonic", "isotonic")])
@pytest.mark.parametrize("ensemble", [True, False])
def test_two_classes_are_scikit_learns_calibrated_classifier(digits, ours, theirs, ensemble):
    X, y = digits
    y = (y > 4).astype(int)
    train, test = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    cv = StratifiedKFold(3)
    weak = LogisticRegression(C=0.001, tol=1e-10, solver="newton-cholesky")
    nested = NestedDichotomyClassifier(
        weak, [0, 1], internal_calibration=ours, external_calibration=None, cv=cv, average_folds=ensemble
    ).fit(X[train], y[train])
    reference = CalibratedClassifierCV(weak, method=theirs, cv=cv, ensemble=ensemble).fit(X[train], y[train])
    expected = reference.predict_proba(X[test])
    inside = np.ones(len(test), dtype=bool)
    if ours == "isotonic":  # away from the blocks where scikit-learn's answers 0 or 1
        for member in reference.calibrated_classifiers_:
            levels = member.calibrators[0].y_thresholds_
            answer = member.predict_proba(X[test])[:, 1]
            inside &= (answer >= levels[levels > 0].min()) & (answer <= levels[levels < 1].max())
    assert inside.mean() > 0.5
    assert_allclose(nested.predict_proba(X[test])[inside], expected[inside], atol=2e-4)


# ------------------------------------------------------------------ internal


def test_a_calibrated_class_is_the_sum_along_its_path(digits):
    """Proposition 1 with calibrated nodes."""
    X, y, X_test, _ = two_halves(digits)
    clf = fit(X, y, internal_calibration="platt", external_calibration=None)
    log_odds = clf.model_.scorer.log_odds(X_test)
    log_proba = clf.predict_log_proba(X_test)
    for column, label in enumerate(clf.classes_):
        nodes, goes_left = clf.tree_.path(label)
        turns = log_expit(np.where(goes_left, 1, -1) * log_odds[:, nodes])
        assert_allclose(log_proba[:, column], turns.sum(axis=1), rtol=1e-10)


def test_out_of_fold_scores_come_from_models_that_had_not_seen_the_row(digits):
    X, y = digits
    tree = STRUCTURES.create("random").grow(X, y, random_state=0)
    folds = fold_of_rows(y, 3, np.random.RandomState(0))
    task = in_folds(node_task(tree, X, y), folds)
    plan = Plan(learner=GenericLearner(NB), internal_calibration=BINARY.create("platt"))
    crossed = CrossFit.fit(plan, task, Wanted.SCORES, Context(np.random.RandomState(0)))
    for node in (0, 4, 8):
        inside = slice(*task.own_pairs().offsets[node : node + 2])
        rows, is_left = task.own_pairs().rows[inside], task.own_pairs().is_left[inside]
        assert np.array_equal(np.sort(rows), task.rows_of(node)[0])
        expected = np.empty(len(rows))
        for fold in range(3):
            outside = folds[rows] != fold
            model = clone(NB).fit(X[rows[outside]], is_left[outside])
            answer = model.predict_log_proba(X[rows[~outside]])
            expected[~outside] = answer[:, 1] - answer[:, 0]
        start, stop = crossed.out_of_fold.offsets[node : node + 2]
        bounded = np.clip(expected, -MOST_LOG_ODDS, MOST_LOG_ODDS)
        assert_allclose(crossed.out_of_fold.scores[start:stop], bounded, rtol=1e-9)
        assert np.array_equal(crossed.out_of_fold.targets[start:stop], is_left)


def test_pooled_calibration_is_one_calibrator_per_node_on_all_out_of_fold_scores(digits):
    X, y, X_test, _ = two_halves(digits)
    folds = StratifiedKFold(3)
    plain = fit(X, y, internal_calibration=None, external_calibration=None)
    params = {"internal_calibration": "platt", "external_calibration": None, "structure": plain.tree_}
    calibrated = fit(X, y, cv=folds, **params)
    raw, mapped = plain.model_.scorer.log_odds(X_test), calibrated.model_.scorer.log_odds(X_test)
    for node in range(9):
        nodes_classes = plain.tree_.leaf_labels[plain.tree_.start[node] : plain.tree_.stop[node]]
        left = plain.tree_.leaf_labels[plain.tree_.start[node] : plain.tree_.split[node]]
        scores, targets = [], []
        for train, test in folds.split(X, y):
            train, test = (part[np.isin(y[part], nodes_classes)] for part in (train, test))
            answer = clone(NB).fit(X[train], np.isin(y[train], left)).predict_log_proba(X[test])
            scores.append(np.clip(answer[:, 1] - answer[:, 0], -MOST_LOG_ODDS, MOST_LOG_ODDS))
            targets.append(np.isin(y[test], left))
        platt = BINARY.create("platt").fit(np.concatenate(scores), np.concatenate(targets))
        bounded = np.clip(raw[:, node], -MOST_LOG_ODDS, MOST_LOG_ODDS)
        assert_allclose(mapped[:, node], platt.predict_log_odds(bounded), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("internal", [None, "platt", "isotonic", "auto"])
@pytest.mark.parametrize("external", [None, "vector", "temperature"])
def test_log_odds_of_a_billion_do_not_drown_the_others(digits, internal, external):
    """Gaussian naive Bayes without smoothing: constant pixels give variances of 1e-9."""
    X, y, X_test, y_test = two_halves(digits)
    params = {"calibration_size": "cross-fit", "external_calibration": external}
    plain = fit(X, y, GaussianNB(), internal_calibration=None, external_calibration=None)
    clf = fit(X, y, GaussianNB(), internal_calibration=internal, **params)
    assert clf.score(X_test, y_test) > plain.score(X_test, y_test) - 0.05


@pytest.mark.parametrize("internal", BINARY.names())
def test_a_class_of_one_row_is_not_calibrated_away(internal):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal([0, 0], 0.3, (50, 2)), rng.normal([5, 0], 0.3, (50, 2)), [[0, 9.0]]])
    y = ["a"] * 50 + ["b"] * 50 + ["rare"]
    params = {"external_calibration": None, "internal_calibration": internal}
    clf = NestedDichotomyClassifier(LogisticRegression(), [["a", "rare"], "b"], random_state=0, **params)
    assert clf.fit(X, y).predict([[0, 9.0]]) == ["rare"]


def test_the_users_own_folds_work_with_rows_held_out(digits):
    X, y = digits
    folds = list(StratifiedKFold(3).split(X, y))
    params = {"internal_calibration": "platt", "external_calibration": "vector", "calibration_size": 0.1}
    clf = fit(X, y, **params, cv=folds)
    assert clf.external_calibrator_ is not None
    assert clf.score(X, y) > 0.7
    with pytest.raises(ValueError, match="train part of fold 0"):
        fit(X, y, internal_calibration="platt", cv=[(test, test) for _, test in folds])


@pytest.mark.parametrize("method", BINARY.names())
@pytest.mark.parametrize("ensemble", [False, True])
def test_every_binary_calibrator_helps_an_overconfident_learner(digits, method, ensemble):
    X, y, X_test, y_test = two_halves(digits)
    before = fit(X, y, internal_calibration=None, external_calibration=None)
    after = fit(X, y, external_calibration=None, internal_calibration=method, average_folds=ensemble)
    assert after.tree_ == before.tree_
    assert log_loss(y_test, after.predict_proba(X_test)) < 0.6 * log_loss(
        y_test, before.predict_proba(X_test)
    )


def test_average_folds_averages_the_folds_at_every_node(digits):
    X, y, X_test, _ = two_halves(digits)
    params = {"external_calibration": None, "average_folds": True, "learner": "clones", "cv": 3}
    clf = fit(X, y, internal_calibration="platt", **params)
    members = clf.model_.scorer.members
    mean = np.mean([expit(member.log_odds(X_test)) for member in members], axis=0)
    assert_allclose(expit(clf.model_.scorer.log_odds(X_test)), mean, atol=1e-12)
    assert len(clf.estimators_) == 3
    assert len(clf.estimators_[0]) == 9


@pytest.mark.parametrize("cv", [2, 5, StratifiedKFold(4, shuffle=True, random_state=0)])
def test_folds_of_the_users_choice(digits, cv):
    X, y = digits
    assert fit(X, y, internal_calibration="platt", cv=cv).score(X, y) > 0.6


def test_calibrating_some_depths_leaves_the_other_nodes_alone(digits):
    X, y, X_test, _ = two_halves(digits)
    params = {"external_calibration": None, "structure": "random"}
    plain = fit(X, y, internal_calibration=None, **params).model_.scorer.log_odds(X_test)
    clf = fit(X, y, internal_calibration="platt", calibrated_nodes=[0, 2], **params)
    some = clf.model_.scorer.log_odds(X_test)
    plain = np.clip(plain, -MOST_LOG_ODDS, MOST_LOG_ODDS)
    every = fit(X, y, internal_calibration="platt", **params).model_.scorer.log_odds(X_test)
    chosen = np.isin(clf.tree_.depth, [0, 2])
    assert_allclose(some[:, chosen], every[:, chosen])
    assert_allclose(some[:, ~chosen], plain[:, ~chosen])


def test_a_budget_goes_to_the_nodes_that_pay_most(digits):
    X, y, X_test, y_test = two_halves(digits)
    params = {"internal_calibration": "platt", "external_calibration": None}

    def nll(clf):
        return log_loss(y_test, clf.predict_proba(X_test))

    shares = [nll(fit(X, y, calibrated_nodes=share, **params)) for share in (0.01, 0.3, 0.6, 1.0)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == pytest.approx(nll(fit(X, y, **params)), rel=0.02)
    few = fit(X, y, calibrated_nodes=0.3, **params)  # three of nine nodes
    plain = fit(X, y, internal_calibration=None, external_calibration=None)
    before = np.clip(plain.model_.scorer.log_odds(X_test), -MOST_LOG_ODDS, MOST_LOG_ODDS)
    moved = np.abs(few.model_.scorer.log_odds(X_test) - before).max(axis=0) > 1e-9
    assert moved.sum() == 3


@pytest.mark.parametrize("bad", ["some", 0.0, 1.5, 3, None, [0.5], ["a"], [-1], [], {0: 1}])
def test_a_bad_choice_of_nodes_is_refused(iris, bad):
    with pytest.raises(ValueError, match="calibrated_nodes must be"):
        fit(*iris, calibrated_nodes=bad)


def test_scores_without_probabilities_can_be_calibrated(digits):
    X, y = digits
    for estimator in (LinearSVC(C=0.1, random_state=0), RidgeClassifier()):
        clf = fit(X, y, estimator, internal_calibration="platt")
        assert clf.score(X, y) > 0.6
        assert fit(X, y, estimator).calibration_.internal in ("shrunk-platt", "smooth-isotonic")
        with pytest.raises(TypeError, match="internal_calibration='platt'"):
            fit(X, y, estimator, internal_calibration=None)


# ------------------------------------------------------------------ external


@pytest.mark.parametrize(
    ("method", "size"),
    [
        *slow(*((name, "cross-fit") for name in MULTICLASS.names())),
        # of 90 rows, only those learn that have few parameters or a strong penalty
        *((name, 0.1) for name in MULTICLASS.names() if name not in ("vector-ml", "matrix", "dirichlet")),
    ],
)
@UNBOUNDED
def test_every_multiclass_calibrator_helps_an_overconfident_tree(digits, method, size):
    X, y, X_test, y_test = two_halves(digits)
    before = fit(X, y, internal_calibration=None, external_calibration=None)
    after = fit(X, y, external_calibration=method, calibration_size=size)
    proba = after.predict_proba(X_test)
    assert log_loss(y_test, proba) < 0.7 * log_loss(y_test, before.predict_proba(X_test))
    assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    assert np.array_equal(after.predict(X_test), after.classes_[proba.argmax(axis=1)])


def test_held_out_rows_are_not_trained_on(digits):
    X, y = digits
    clf = fit(X, y, calibration_size=0.2, learner="clones")
    assert clf.estimators_[0].class_count_.sum() == round(0.8 * len(y))
    held = (
        fit(X, y, internal_calibration=None, external_calibration=None, learner="clones")
        .estimators_[0]
        .class_count_.sum()
    )
    assert held == len(y)
    crossed = fit(X, y, calibration_size="cross-fit", learner="clones")
    assert crossed.estimators_[0].class_count_.sum() == len(y)


def test_temperature_outside_keeps_the_prediction(digits):
    X, y, X_test, _ = two_halves(digits)
    crossed = {
        "calibration_size": "cross-fit",
        "structure": STRUCTURES.create("random").grow(X, y, random_state=1),
    }
    plain = fit(X, y, internal_calibration=None, external_calibration=None, structure=crossed["structure"])
    tempered = fit(X, y, internal_calibration=None, external_calibration="temperature", **crossed)
    assert np.array_equal(tempered.predict(X_test), plain.predict(X_test))


@pytest.mark.parametrize("internal", [None, "platt", "isotonic"])
def test_rows_are_scored_by_models_and_calibrators_that_have_not_seen_them(digits, internal):
    X, y = digits
    tree = STRUCTURES.create("class-balanced").grow(X, y, random_state=0)
    calibrator = internal and BINARY.create(internal)
    plan = Plan(learner=GenericLearner(NB), internal_calibration=calibrator)
    folds = fold_of_rows(y, 4, np.random.RandomState(0))  # the fourth shares its calibrators with the first
    task = in_folds(node_task(tree, X, y), folds)
    everything = Wanted.MEMBERS | Wanted.SCORES | Wanted.FULL
    crossed = CrossFit.fit(plan, task, everything, Context(np.random.RandomState(0)))
    pairs = task.own_pairs()
    bound = MOST_LOG_ODDS if internal else np.inf
    scores = crossed.fitted.scores.clip(-bound, bound)
    expected = crossed.final_scorer().log_odds(X)  # new to all nodes but those on the path of the class
    for fold in range(4):
        answers = crossed.fitted.members[fold].log_odds(X).clip(-bound, bound)
        for k in range(tree.n_nodes):
            span = slice(pairs.offsets[k], pairs.offsets[k + 1])
            rows, is_left = pairs.rows[span], pairs.is_left[span]
            mine = rows[folds[rows] == fold]
            answer = answers[mine, k]
            if internal:
                others = folds[rows] % 3 != fold % 3
                node = Segments(scores[span][others], is_left[others], [0, others.sum()])
                answer = calibrator.fit_segments(node).apply_pairs(answer, np.zeros(len(mine), dtype=int))
            expected[mine, k] = answer
    some = np.random.RandomState(0).permutation(len(X))[:500]
    assert_allclose(crossed.unseen_scorer().log_odds(some), expected[some], rtol=1e-9)


def test_a_side_that_a_fold_lacks_is_scored_by_the_sizes_of_the_sides(rng):
    X, y = rng.normal(size=(21, 2)), np.array([0] * 10 + [1] * 10 + [2])
    tree = STRUCTURES.create("random").grow(X, y, random_state=0)
    folds = fold_of_rows(y, 3, rng)
    plan, task = Plan(learner=GenericLearner(NB)), in_folds(node_task(tree, X, y), folds)
    crossed = CrossFit.fit(plan, task, Wanted.SCORES | Wanted.FULL, Context(np.random.RandomState(0)))
    leaf = tree.leaf_position
    node = int(np.flatnonzero((tree.left == ~leaf[2]) | (tree.right == ~leaf[2]))[0])
    is_left = leaf[2] < tree.split[node]
    inside = (tree.start[node] <= leaf[y]) & (leaf[y] < tree.stop[node])
    others = np.count_nonzero(inside & (folds != folds[20]))
    expected = np.log(1 / (others + 1)) * (1 if is_left else -1)
    assert crossed.unseen_scorer().log_odds(np.array([20]))[0, node] == pytest.approx(expected)


@pytest.mark.parametrize("bad", [0, 1, 1.0, 0.0, -0.1, "half", True, None])
def test_a_bad_calibration_size_is_refused(iris, bad):
    with pytest.raises(ValueError, match="calibration_size must be"):
        fit(*iris, calibration_size=bad)


def test_unknown_calibrators_are_refused_with_a_suggestion(iris):
    with pytest.raises(ValueError, match=r"no binary calibrator named 'plat'.*Did you mean 'platt'"):
        fit(*iris, internal_calibration="plat")
    with pytest.raises(ValueError, match=r"no multiclass calibrator named 'vecter'.*'vector'"):
        fit(*iris, external_calibration="vecter")
    with pytest.raises(TypeError, match="Expected a multiclass calibrator"):
        fit(*iris, external_calibration=3)


# ------------------------------------------------------------------ together, and with rare classes


@pytest.mark.parametrize(("internal", "external"), SCHEMES)
@pytest.mark.parametrize("size", [0.1, *slow("cross-fit")])
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_schemes_combine_with_weights_and_sparse_data(digits, rng, internal, external, size, container):
    X, y = digits
    params = {"internal_calibration": internal, "external_calibration": external, "calibration_size": size}
    clf = NestedDichotomyClassifier(MultinomialNB(), random_state=0, **params)
    clf.fit(container(X[::2]), y[::2], sample_weight=rng.random(len(y[::2])))
    proba = clf.predict_proba(container(X))
    assert np.isfinite(clf.predict_log_proba(container(X))).all()
    assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    assert clf.score(container(X), y) > 0.6


@pytest.mark.parametrize(
    ("internal", "external"),
    [*((name, "vector") for name in BINARY.names()), *((None, name) for name in MULTICLASS.names())],
)
@pytest.mark.parametrize("size", [0.1, *slow("cross-fit")])
@UNBOUNDED
def test_classes_of_one_and_two_rows_survive_every_scheme(digits, internal, external, size):
    X, y = digits
    rare = y[:300].copy()
    rare[:10] = np.arange(100, 110)
    rare[10:20] = np.repeat(np.arange(200, 205), 2)
    params = {"internal_calibration": internal, "external_calibration": external, "calibration_size": size}
    for average in (False, True) if internal else (False,):
        clf = fit(X[:300], rare, average_folds=average, **params)
        assert np.isfinite(clf.predict_log_proba(X[:200])).all()


def test_where_no_row_can_be_held_out_there_is_no_external_calibrator():
    X = np.arange(12.0)[:, None]
    held = {"calibration_size": 0.1, "external_calibration": "vector"}
    clf = NestedDichotomyClassifier(GaussianNB(var_smoothing=1), random_state=0, **held).fit(X, np.arange(12))
    assert clf.external_calibrator_ is None
    assert np.isfinite(clf.predict_log_proba(X)).all()


def test_the_answer_does_not_depend_on_n_jobs(digits):
    X, y = digits
    params = {"internal_calibration": "isotonic", "calibration_size": "cross-fit"}
    alone = fit(X[::2], y[::2], **params).predict_proba(X)
    assert np.array_equal(fit(X[::2], y[::2], n_jobs=2, **params).predict_proba(X), alone)


def test_calibrator_objects_are_cloned_and_kept_clean(digits):
    X, y = digits
    outer = MULTICLASS.create("temperature")
    clf = fit(X, y, internal_calibration=BINARY.create("platt"), external_calibration=outer)
    assert not [name for name in vars(outer) if name.endswith("_")]
    assert clf.external_calibrator_ is not outer
    again = fit(X, y, internal_calibration="platt", external_calibration="temperature")
    assert np.array_equal(clf.predict_proba(X), again.predict_proba(X))


CROSS_VALIDATION = (
    "Which rows are held out or in a fold depends on the order and number of rows, so repeating a row is not "
    "the same as giving it weight two; scikit-learn's CalibratedClassifierCV has the same exceptions."
)


@pytest.mark.slow
@pytest.mark.parametrize("params", [{}, {"internal_calibration": "platt"}, {"calibration_size": "cross-fit"}])
@pytest.mark.filterwarnings("ignore:Skipping check")
def test_scikit_learn_accepts_it_calibrated(params):
    exceptions = {
        "check_sample_weight_equivalence_on_dense_data": CROSS_VALIDATION,
        "check_sample_weight_equivalence_on_sparse_data": CROSS_VALIDATION,
    }
    check_estimator(NestedDichotomyClassifier(**params), expected_failed_checks=exceptions)


@pytest.mark.parametrize("size", [0.2, "cross-fit"])
def test_rows_of_weight_zero_are_no_rows_calibrated_too(digits, size):
    X, y = digits[0][:400], digits[1][:400]
    weight = np.arange(400) % 3 / 2.0
    clf = NestedDichotomyClassifier(GaussianNB(var_smoothing=0.1), calibration_size=size, random_state=0)
    found = clf.fit(X, y, weight).predict_log_proba(X)
    kept = weight > 0
    expected = clone(clf).fit(X[kept], y[kept], weight[kept]).predict_log_proba(X)
    np.testing.assert_array_equal(found, expected)


def test_splitters_that_number_rows_see_those_of_weight_zero(iris):
    X, y = iris
    weight = (np.arange(150) % 7 > 0).astype(float)
    folds = PredefinedSplit(np.arange(150) % 3)
    clf = NestedDichotomyClassifier(GaussianNB(), cv=folds, random_state=0).fit(X, y, weight)
    listed = NestedDichotomyClassifier(GaussianNB(), cv=list(folds.split()), random_state=0).fit(X, y, weight)
    np.testing.assert_array_equal(clf.predict_proba(X), listed.predict_proba(X))


def test_folds_and_hold_out_are_drawn_from_random_state(digits):
    X, y = digits
    first, same, other = (
        NestedDichotomyClassifier(NB, internal_calibration="platt", random_state=seed)
        .fit(X, y)
        .predict_proba(X)
        for seed in (0, 0, 1)
    )
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    assert len(set(fold_of_rows(y, 3, np.random.RandomState(0)))) == 3
    assert hold_out(y, 0.1, np.random.RandomState(0)).sum() == round(0.1 * len(y))
