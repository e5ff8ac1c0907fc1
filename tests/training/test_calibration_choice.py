"""The choice of calibration for the whole model, by out-of-fold NLL."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble, load
from dichotomies._common.best_of import best_of
from dichotomies._common.parallel import Context
from dichotomies._kernels.composition import class_log_proba
from dichotomies.calibrators.binary import BINARY, Auto, Segments
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.calibrators.multiclass.base import HeldOut
from dichotomies.learners import Wanted
from dichotomies.rows import NodeTask, Rows
from dichotomies.rows.folds import Folds, fold_count
from dichotomies.training.calibration_choice import _Comparison, choose
from dichotomies.training.cross_fitting import CrossFit
from dichotomies.training.external import Calibration
from dichotomies.training.plan import Plan
from dichotomies.tree.forest import Forest

NB = GaussianNB(var_smoothing=1e-3)


def fit(X, y, estimator=NB, **params):
    return NestedDichotomyClassifier(estimator, **{"random_state": 0, **params}).fit(X, y)


@pytest.fixture
def few_digits(digits):
    X, y = digits
    return X[::4], y[::4]


# ------------------------------------------------------------------ against a plain reference


def reference(tree, rows, crossed, internal, external):
    """Out-of-fold NLL of a pair of calibrators, step by step and row by row."""
    n_folds, codes = rows.n_folds, rows.codes
    log_proba = np.empty((len(rows), rows.n_classes))
    scores = crossed.fitted.scores.clip(-200, 200)
    pairs = crossed.task.own_pairs()
    node_of = np.repeat(np.arange(tree.n_nodes), np.diff(pairs.offsets))

    def answers(model, X, known):
        log_odds = model.log_odds(X)
        if internal is not None:
            offsets = np.searchsorted(node_of[known], np.arange(tree.n_nodes + 1))
            nodes = Segments(scores[known], pairs.is_left[known], offsets, groups=tree.depth)
            maps = BINARY.create(internal).fit_segments(nodes)
            log_odds = np.ascontiguousarray(log_odds.clip(-200, 200))
            maps.apply(log_odds)
        return log_odds

    for f in range(n_folds):
        mine = np.flatnonzero(rows.fold == f)
        of_fold = answers(crossed.fitted.members[f], rows.X[mine], rows.fold[pairs.rows] != f)
        leaf = tree.leaf_position[codes[mine]][:, None]
        is_own = (tree.start <= leaf) & (leaf < tree.stop)
        final = answers(crossed.fitted.full, rows.X[mine], np.ones(len(node_of), dtype=bool))
        log_proba[mine] = class_log_proba(tree, np.where(is_own, of_fold, final))
    if external is not None:
        raw, calibrator = log_proba.copy(), MULTICLASS.create(external)
        whole = calibrator.fit(raw, codes)
        for f in range(n_folds):
            mine = rows.fold == f
            fitted = MULTICLASS.create(external, spread=whole.spread_).fit(raw[~mine], codes[~mine])
            fitted.bend_, fitted.noise_ = whole.bend_, whole.noise_
            log_proba[mine] = fitted.predict_log_proba(raw[mine])
    return -log_proba[np.arange(len(rows)), codes].mean()


def test_every_nll_is_that_of_calibrators_fitted_without_the_row(few_digits):
    X, y = few_digits
    rows = Rows(X, y, np.arange(10)).in_folds(3, np.random.RandomState(0))
    tree = NestedDichotomyClassifier(NB, "class-balanced", random_state=0).fit(X, y).tree_
    plan, context = Plan.of(NestedDichotomyClassifier(NB), NB), Context(np.random.RandomState(0))
    everything = Wanted.SCORES | Wanted.MEMBERS | Wanted.FULL
    crossed = CrossFit.fit(plan, NodeTask(rows, tree), everything, context)
    chosen = choose(plan, Forest.of([tree]), rows, [crossed], context.rng)
    nll = chosen.calibration.nll
    assert chosen.calibration.n_rows == len(rows)
    assert {pair[0] for pair in nll if pair[1] == "none"} == {"none", "shrunk-platt", "smooth-isotonic"}
    saves = nll["smooth-isotonic", "none"] < 0.9 * nll["shrunk-platt", "none"]
    best = "smooth-isotonic" if saves else "shrunk-platt"
    assert {pair[0] for pair in nll if pair[1] == "vector-odds"} == {"none", best}
    for pair, value in nll.items():
        names = (None if name == "none" else name for name in pair)
        # refits of the calibrator outside take a few steps from the fit to all rows, and share its bend
        tolerance = 1e-5 if pair[1] == "none" else 1e-2
        expected = reference(tree, rows, crossed, *names)
        assert value == pytest.approx(expected, rel=tolerance)


# ------------------------------------------------------------------ what is chosen


def test_the_pair_of_least_nll_is_chosen_and_is_what_naming_it_gives(few_digits):
    X, y = few_digits
    clf = fit(X, y)
    found = clf.calibration_
    calibrated = [nll for (_, external), nll in found.nll.items() if external != "none"]
    assert found.nll[found.internal, found.external] == min(calibrated)
    assert min(calibrated) < 1.01 * min(found.nll.values())  # nothing outside would have to be clearly better
    assert found.nll[found.internal, found.external] < 0.5 * found.nll["none", "none"]
    names = {
        f"{kind}_calibration": None if name == "none" else name
        for kind, name in (("internal", found.internal), ("external", found.external))
    }
    named = fit(X, y, **names)
    assert named.calibration_ == Calibration(found.internal, found.external)
    np.testing.assert_allclose(clf.predict_proba(X), named.predict_proba(X), atol=1e-6)


def test_calibrated_models_are_left_nearly_alone(rng):
    """Rows drawn from the probabilities of the tree itself."""
    tree, X = [0, [1, 2]], rng.normal(size=(4000, 2))
    left, lower = rng.random(4000) < expit(X[:, 0]), rng.random(4000) < expit(X[:, 1])
    y = np.where(left, 0, np.where(lower, 1, 2))
    clf = fit(X, y, LogisticRegression(), structure=tree)
    assert clf.calibration_.internal == "none"
    assert "of 5 pairs" in str(clf.calibration_)
    plain = fit(
        X, y, LogisticRegression(), structure=tree, internal_calibration=None, external_calibration=None
    )
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X), atol=0.03)


def test_a_calibrator_that_is_named_is_not_chosen_against(few_digits):
    X, y = few_digits
    found = fit(X, y, internal_calibration="platt").calibration_
    assert {internal for internal, _ in found.nll} == {"platt"}
    found = fit(X, y, external_calibration="temperature").calibration_
    assert {external for _, external in found.nll} == {"temperature"}
    found = fit(X, y, external_calibration=None).calibration_
    assert {external for _, external in found.nll} == {"none"}
    assert fit(X, y, internal_calibration=None, external_calibration=None).calibration_ == Calibration()


def test_candidates_may_be_given(few_digits):
    X, y = few_digits
    auto = {
        "internal_calibration": Auto(("none", "temperature")),
        "external_calibration": MULTICLASS.create("auto", candidates=("none", "temperature")),
    }
    names = ("none", "temperature")
    assert set(fit(X, y, **auto).calibration_.nll) == {(i, e) for i in names for e in names}


def test_scores_that_are_no_probabilities_are_always_calibrated(few_digits):
    found = fit(*few_digits, LinearSVC(random_state=0)).calibration_
    assert "none" not in {internal for internal, _ in found.nll}


def test_rows_held_out_choose_inside_first_then_outside(few_digits):
    X, y = few_digits
    clf = fit(X, y, calibration_size=0.3)
    assert clf.calibration_.internal in ("shrunk-platt", "smooth-isotonic")
    assert {internal for internal, _ in clf.calibration_.nll} == {clf.calibration_.internal}
    assert (clf.external_calibrator_ is None) == (clf.calibration_.external == "none")


def test_an_ensemble_has_one_choice_for_all_trees(few_digits):
    X, y = few_digits
    clf = NestedDichotomyEnsemble(NB, n_estimators=3, random_state=0).fit(X, y)
    assert len(clf.calibration_.nll) == 4
    assert clf.calibration_.nll[clf.calibration_.internal, clf.calibration_.external] < 1


# ------------------------------------------------------------------ few rows, many rows, weights


@pytest.mark.parametrize("rows_per_class", [1, 2])
def test_few_rows_get_only_calibrators_that_nodes_share(digits, rows_per_class):
    X, y = digits
    rows = np.concatenate([np.flatnonzero(y == c)[:rows_per_class] for c in range(10)])
    clf = fit(X[rows], y[rows])
    nll = clf.calibration_.nll
    assert {pair[0] for pair in nll} == {"none", "shrunk-platt"}
    assert {pair[1] for pair in nll} == ({"none", "vector-odds"} if rows_per_class > 1 else {"none"})


@pytest.mark.parametrize("rows_per_class", [3, 4, 9, 10])
def test_below_ten_rows_of_a_class_every_pair_is_compared(digits, rows_per_class):
    X, y = digits
    rows = np.concatenate([np.flatnonzero(y == c)[:rows_per_class] for c in range(10)])
    outside = [pair for pair in fit(X[rows], y[rows]).calibration_.nll if pair[1] == "vector-odds"]
    assert len(outside) == (3 if rows_per_class < 10 else 2)


def test_many_rows_are_compared_on_a_stratified_sample(rng, monkeypatch):
    monkeypatch.setattr("dichotomies.training.calibration_choice._MOST_PAIRS", 0)
    monkeypatch.setattr("dichotomies.training.calibration_choice._FEWEST_ROWS", 500)
    y = np.arange(3000) % 10
    X = rng.normal(size=(3000, 4)) + rng.normal(size=(10, 4))[y]
    clf = fit(X, y)
    assert clf.calibration_.n_rows == 500
    names = {
        f"{kind}_calibration": None if name == "none" else name
        for kind, name in (("internal", clf.calibration_.internal), ("external", clf.calibration_.external))
    }
    named = fit(X, y, **names)  # but fitted on all rows
    np.testing.assert_allclose(clf.predict_proba(X), named.predict_proba(X), atol=1e-6)


def compared(losses, misses, largest=(), **few):
    """A comparison of pairs, whose losses and errors are given."""
    n = len(next(iter(losses.values())))
    comparison = _Comparison(Rows(np.zeros((n, 1)), np.zeros(n, dtype=int), np.arange(2)), **few)
    comparison._log_proba = dict.fromkeys([pair[0] for pair in losses])
    comparison._found = {
        pair: HeldOut(np.asarray(loss, dtype=float), np.full(n, largest), ~misses[pair])
        for (pair, loss), largest in zip(losses.items(), largest or [0] * len(losses), strict=True)
    }
    for internal, _ in losses:  # by default much worse without calibration outside
        far = HeldOut(np.full(n, 9.0), np.zeros(n), np.ones(n, dtype=bool))
        comparison._found.setdefault((internal, "none"), far)
    return comparison.best(("none", "vector-odds"))


@pytest.mark.parametrize(("alone", "chosen"), [(5.0, "platt"), (9.0, "none"), (10.0, "none")])
@pytest.mark.parametrize("saved", [-0.05, 0.05])  # one standard error is 0.1
def test_ties_go_to_what_is_better_inside_without_calibration_outside(alone, chosen, saved, rng):
    noise = rng.normal(size=400)
    noise = 2 * (noise - noise.mean()) / noise.std()
    pairs = [("none", "vector-odds"), ("platt", "vector-odds"), ("platt", "none")]
    losses = dict(zip(pairs, (np.ones(400), 1 - saved + noise, np.full(400, alone)), strict=True))
    right = dict.fromkeys(losses, np.zeros(400, dtype=bool))
    assert compared(losses, right) == (chosen, "vector-odds")


@pytest.mark.parametrize(("saved", "chosen"), [(0.09, "none"), (0.12, "platt")])
def test_calibration_inside_that_costs_accuracy_must_save_some_of_the_nll(saved, chosen):
    losses = {("none", "vector-odds"): np.ones(400), ("platt", "vector-odds"): np.full(400, 1 - saved)}
    misses = {("none", "vector-odds"): np.arange(400) < 40, ("platt", "vector-odds"): np.arange(400) < 80}
    assert compared(losses, misses) == (chosen, "vector-odds")
    assert compared(losses, dict.fromkeys(losses, misses["none", "vector-odds"]))[0] == "platt"


@pytest.mark.parametrize(("saved", "chosen"), [(0.45, "none"), (0.55, "platt")])
def test_a_share_of_right_answers_costs_as_large_a_share_of_the_nll(saved, chosen):
    losses = {("none", "vector-odds"): np.ones(400), ("platt", "vector-odds"): np.full(400, 1 - saved)}
    misses = {("none", "vector-odds"): np.arange(400) < 200, ("platt", "vector-odds"): np.arange(400) < 300}
    assert compared(losses, misses) == (chosen, "vector-odds")


def test_with_few_rows_calibration_outside_need_not_repair_what_calibration_inside_costs():
    pairs = [(i, e) for i in ("none", "platt") for e in ("none", "vector-odds")]
    losses = dict(zip(pairs, np.array([2.0, 1.0, 2.0, 0.95])[:, None] * np.ones(400), strict=True))
    misses = {pair: np.arange(400) < (200 if pair == ("platt", "none") else 40) for pair in pairs}
    assert compared(losses, misses) == ("platt", "vector-odds")
    assert compared(losses, misses, few_rows=True) == ("none", "vector-odds")


@pytest.mark.parametrize(
    ("errors", "largest", "chosen"),
    [(0.5, 0.0, "vector-odds"), (3.0, 0.0, "none"), (3.0, 4.0, "none"), (3.0, 9.0, "vector-odds")],
)
def test_nothing_outside_must_be_clearly_better_after_a_row_that_it_holds_for_impossible(
    errors, largest, chosen, rng
):
    noise = rng.normal(size=400)
    noise = 0.1 * (noise - noise.mean()) / noise.std()  # a standard error of 0.005: two rows of 401
    losses = {("none", "none"): np.ones(400), ("none", "vector-odds"): 1 + noise + errors * 0.1 / 20}
    right = dict.fromkeys(losses, np.zeros(400, dtype=bool))
    assert compared(losses, right, [largest, 0.0]) == ("none", chosen)


def test_folds_are_no_more_than_rows_of_a_class():
    sizes = (10, 20, 35, 40, 199, 200)
    assert [fold_count(n, 10, Folds(7, of_many=7)) for n in sizes] == [2, 2, 3, 4, 7, 7]
    assert [fold_count(n, 10, Folds(3, of_many=2)) for n in sizes] == [2, 2, 3, 3, 3, 2]
    with pytest.raises(ValueError, match="cv must be 'auto'"):
        NestedDichotomyClassifier(cv="more").fit([[0.0], [1.0]], [0, 1])


def test_a_weight_counts_in_the_comparison(few_digits):
    X, y = few_digits
    weight = np.where(np.arange(len(y)) % 2, 1.0, 1e-9)
    heavy = NestedDichotomyClassifier(NB, random_state=0).fit(X, y, sample_weight=weight).calibration_
    assert heavy.nll != fit(X, y).calibration_.nll
    assert np.isfinite(list(heavy.nll.values())).all()


def test_the_first_way_has_to_be_beaten_clearly(rng):
    noise = rng.normal(size=1000)
    losses = {"first": np.zeros(1000), "lucky": noise - noise.mean() - 0.01, "better": np.full(1000, -0.005)}
    assert best_of(losses, np.ones(1000)) == "first"
    assert best_of({"first": losses["first"], "better": losses["better"]}, np.ones(1000)) == "better"
    weight = (noise < 0).astype(float)
    assert best_of(losses, weight) == "lucky"


# ------------------------------------------------------------------ said and saved


def test_the_choice_is_said_and_saved(few_digits, tmp_path, capsys):
    X, y = few_digits
    clf = fit(X, y, verbose=True)
    assert f"calibration: {clf.calibration_}" in capsys.readouterr().err
    assert f"Calibration: {clf.calibration_}." in clf._repr_html_()
    clf.save(tmp_path / "model")
    assert load(tmp_path / "model").calibration_ == clf.calibration_
    assert "Calibration:" not in NestedDichotomyClassifier()._repr_html_()


@pytest.mark.parametrize("name", ["vector", "vector-odds", "temperature"])
def test_held_out_losses_are_near_those_of_fits_without_the_fold(rng, name):
    log_proba = log_softmax(rng.normal(size=(600, 4)), axis=1)
    y = np.argmax(2 * log_proba * [1, 1.3, 1, 0.7] + rng.gumbel(size=(600, 4)), axis=1)
    fold, calibrator = np.arange(600) % 3, MULTICLASS.create(name).fit(log_proba, y)
    settings = {} if name == "temperature" else {"spread": calibrator.spread_}
    losses = calibrator.fit_held_out(log_proba, y, fold).loss
    for f in range(3):
        mine = fold == f
        alone = MULTICLASS.create(name, **settings).fit(log_proba[~mine], y[~mine])
        loss = -alone.predict_log_proba(log_proba[mine])[np.arange(200), y[mine]].mean()
        tolerance = 1e-2 if name == "vector-odds" else 2e-3  # all refits share the bend
        assert losses[mine].mean() == pytest.approx(loss, rel=tolerance)


def test_nodes_that_cannot_be_calibrated_get_the_temperature_of_all(few_digits):
    """A class with one row has out-of-fold scores of one side only, and naive Bayes is far too sure of it."""
    X, y = few_digits
    y = np.where(np.arange(len(y)) == 0, 99, y)
    clf = fit(X, y, GaussianNB(), internal_calibration="platt", external_calibration=None)
    maps, node = clf.model_.scorer.maps, int(np.flatnonzero(clf.tree_.leaf_labels == 99)[0])
    above = [k for k in range(clf.tree_.n_nodes) if clf.tree_.start[k] <= node < clf.tree_.stop[k]]
    alone = [k for k in above if clf.tree_.stop[k] - clf.tree_.start[k] == 2]
    assert set(maps.names.tolist()) == {"platt", "temperature"}
    for k in alone:
        assert maps.names[k] == "temperature"
        assert 0 < maps.parameters[k, 0] < 0.5
