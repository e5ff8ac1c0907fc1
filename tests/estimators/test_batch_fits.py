"""Fits to batches of rows: what fits into memory is trained as by `fit`, the rest in passes or on samples."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

import dichotomies
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies.learners import choose
from dichotomies.learners.logistic import passes
from dichotomies.rows import Rows
from dichotomies.rows.spilled import RowCounts, SpilledRows
from dichotomies.training import batches
from dichotomies.training.binned_rows import BinnedRows, RowSample, save_binning
from tests.slow import slow

PLAIN = {"internal_calibration": None, "external_calibration": None, "random_state": 0}


@pytest.fixture(scope="module")
def rows(digits):
    return np.round(4 * digits[0][:700, 10:50]), digits[1][:700]


def _batches(X, y, *weight, form=np.asarray):
    parts = np.array_split(np.arange(len(y)), 5)
    return lambda: ((form(X[part]), y[part], *(each[part] for each in weight)) for part in parts)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(tol=1e-8),
        DecisionTreeClassifier(max_depth=3, random_state=0),
        *slow(HistGradientBoostClassifier(5, random_state=0)),
    ],
)
def test_with_enough_memory_nodes_are_those_of_a_fit_on_rows_sorted_by_class(estimator, form, rows):
    X, y = rows
    order = np.argsort(y, kind="stable")
    clf = NestedDichotomyClassifier(estimator, **PLAIN).fit_batches(_batches(X, y, form=form))
    whole = NestedDichotomyClassifier(estimator, clf.tree_, **PLAIN).fit(form(X[order]), y[order])
    np.testing.assert_allclose(clf.predict_proba(form(X)), whole.predict_proba(form(X)), atol=1e-6)


def test_nodes_whose_rows_fit_into_memory_are_trained_on_all_of_them(rows):
    X, y = rows
    most = 1_000  # at the least
    X, y = csr_array(np.concatenate([X] * 4)), np.concatenate([y] * 4)
    clf = NestedDichotomyClassifier(LogisticRegression(tol=1e-8), max_memory=1, **PLAIN)
    clf.fit_batches(_batches(X, y, form=csr_array))
    whole = NestedDichotomyClassifier(LogisticRegression(tol=1e-8), clf.tree_, **PLAIN).fit(X, y)
    tree = clf.tree_
    offset = np.concatenate([[0], np.cumsum(np.bincount(y)[tree.leaf_order])])
    size = offset[tree.stop] - offset[tree.start]
    one, two = clf.model_.scorer.log_odds(X), whole.model_.scorer.log_odds(X)
    assert (size > most).any()
    assert (size <= most).any()
    np.testing.assert_allclose(one[:, size <= most], two[:, size <= most], atol=1e-3)
    assert (np.abs(one - two).max(axis=0) > 1e-2)[size > most].all()
    assert np.corrcoef(one[:, 0], two[:, 0])[0, 1] > 0.95


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"C": 0.01, "class_weight": "balanced"},
        {"class_weight": {0: 3.0, 1: 1.0}, "fit_intercept": False},
        {"solver": "liblinear", "intercept_scaling": 2.0},
    ],
)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_large_nodes_of_dense_logistic_regression_reach_the_optimum_for_all_rows(params, is_weighted, rows):
    X, y = np.concatenate([rows[0]] * 4) / 16, np.concatenate([rows[1]] * 4)
    X += np.random.default_rng(0).standard_normal(X.shape)
    weight = [np.random.default_rng(1).exponential(size=len(y))] if is_weighted else []
    estimator = LogisticRegression(tol=1e-7, **params)
    clf = NestedDichotomyClassifier(estimator, max_memory=1, **PLAIN).fit_batches(_batches(X, y, *weight))
    whole = NestedDichotomyClassifier(estimator, clf.tree_, **PLAIN).fit(X, y, *weight)
    one, two = clf.model_.scorer.log_odds(X), whole.model_.scorer.log_odds(X)
    assert len(y) > 2 * 1_000  # the most that are in memory: those of the root are read in several blocks
    np.testing.assert_allclose(one, two, atol=2e-4)


def test_large_nodes_take_passes_also_if_classes_are_calibrated(rows, monkeypatch):
    sizes = []
    monkeypatch.setattr(passes, "minimise", lambda nodes, *_: sizes.append(len(nodes)))
    X, y = np.concatenate([rows[0]] * 4) / 16, np.concatenate([rows[1]] * 4)
    calibration = {"internal_calibration": None, "external_calibration": "vector"}
    clf = NestedDichotomyClassifier(LogisticRegression(), max_memory=1, random_state=0, **calibration)
    clf.fit_batches(_batches(X, y))
    assert sum(sizes) > 0


@pytest.mark.filterwarnings("ignore:Logistic regression did not converge")  # on the sample
def test_large_nodes_warn_if_passes_are_too_few(rows):
    X, y = np.concatenate([rows[0]] * 4) / 16, np.concatenate([rows[1]] * 4)
    clf = NestedDichotomyClassifier(LogisticRegression(tol=1e-12, max_iter=3), max_memory=1, **PLAIN)
    with pytest.warns(ConvergenceWarning, match="did not converge within 3 passes"):
        clf.fit_batches(_batches(X, y))


@pytest.mark.parametrize("estimator", [GaussianNB(), MultinomialNB()])
def test_naive_bayes_is_exact_in_one_pass(estimator, rows):
    X, y = rows
    passes = []

    def make_batches():
        passes.append(None)
        return _batches(X, y, np.ones(len(y)))()

    clf = NestedDichotomyClassifier(estimator, **PLAIN).fit_batches(make_batches)
    whole = NestedDichotomyClassifier(estimator, clf.tree_, **PLAIN).fit(X, y)
    np.testing.assert_allclose(clf.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-9, atol=1e-7)
    assert len(passes) == 2  # one of them for the first batch alone


@pytest.mark.parametrize(
    ("kind", "params"),
    [(NestedDichotomyClassifier, {}), (NestedDichotomyEnsemble, {"n_estimators": 3})],
)
@pytest.mark.parametrize("estimator", [LogisticRegression(), MultinomialNB()])
def test_calibrated_models_are_nearly_as_good_as_in_memory(kind, params, estimator, digits, tmp_path):
    X, y = np.concatenate([digits[0][:1_200]] * 3), np.concatenate([digits[1][:1_200]] * 3)
    X_test, y_test = digits[0][1_200:], digits[1][1_200:]
    clf = kind(estimator, random_state=0, **params).fit_batches(_batches(X, y))
    whole = kind(estimator, random_state=0, **params).fit(X, y)
    losses = [-m.predict_log_proba(X_test)[np.arange(len(y_test)), y_test].mean() for m in (clf, whole)]
    assert losses[0] < 1.3 * losses[1]
    assert clf.calibration_.external != "none"
    clf.save(tmp_path / "model")
    np.testing.assert_array_equal(dichotomies.load(tmp_path / "model").predict(X_test), clf.predict(X_test))


@pytest.mark.parametrize(("form", "row_bytes"), [(np.asarray, 56), (csr_array, 224)])
@pytest.mark.parametrize("early_stopping", [False, *slow(True)])
def test_boosted_trees_are_those_in_memory_of_the_same_bins(form, row_bytes, early_stopping):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 2_100)
    X = rng.integers(0, 3, (len(y), 40)) + 1.0 * (y[:, None] % np.arange(2, 42) == 0)
    if form is np.asarray:
        X[::7, 3], X[:, 5] = np.nan, np.nan
    order = np.argsort(y, kind="stable")
    estimator = HistGradientBoostClassifier(5, early_stopping=early_stopping)
    # all bins fit into memory at a time, all values do not
    clf = NestedDichotomyClassifier(estimator, "class-balanced", max_memory=8 * row_bytes * len(y), **PLAIN)
    clf.fit_batches(_batches(X, y, form=form))
    whole = NestedDichotomyClassifier(estimator, clf.tree_, **PLAIN).fit(form(X[order]), y[order])
    np.testing.assert_array_equal(clf.model_.scorer.log_odds(form(X)), whole.model_.scorer.log_odds(form(X)))


def test_rows_of_boosted_trees_are_spilled_as_bytes_and_read_as_values_of_the_same_bins(rows, tmp_path):
    learner = choose(HistGradientBoostClassifier(max_bins=4, categorical_features=[3]))
    X, y = rows[0].copy(), rows[1]
    X[::5, 2], X[:, 5] = np.nan, np.nan
    for form in (np.asarray, csr_array):
        batches = [
            Rows(form(a), np.unique(b, return_inverse=True)[1], np.unique(b)) for a, b in _batches(X, y)()
        ]
        sample = RowSample(2**30, np.random.RandomState(0))
        counts = RowCounts.of(sample.of(batches))
        save_binning(sample.binning(learner, None), tmp_path)
        spilled = BinnedRows.of(tmp_path, counts, learner)
        spilled.write(batches)
        assert (tmp_path / "values.bin").stat().st_size == (X.size if form is np.asarray else form(X).nnz)
        places = [np.arange(size) for size in counts.size]
        read = spilled.rows(np.arange(10), places).X
        every = form(X[np.argsort(y, kind="stable")])
        bins = [spilled.binning.encode(each) for each in (read, every)]
        np.testing.assert_array_equal(bins[0].codes, bins[1].codes)


def test_a_sample_for_bins_is_bounded_and_of_all_batches(rows):
    X, y = np.arange(20_000.0)[:, None], np.arange(20_000) % 2
    batches = [Rows(a, b, np.array([0, 1])) for a, b in _batches(X, y)()]
    sample = RowSample(8 * 2_000, np.random.RandomState(0))
    assert sum(map(len, sample.of(batches))) == 20_000
    binning = sample.binning(choose(HistGradientBoostClassifier(max_bins=100)), None)
    np.testing.assert_allclose(binning.edges, np.linspace(0, 20_000, 101)[1:-1], atol=1_000)


def test_trees_are_those_in_memory_though_grown_on_a_sample(digits):
    X, y = np.concatenate([digits[0][:, 20:44]] * 3), np.concatenate([digits[1]] * 3)
    whole = NestedDichotomyClassifier(GaussianNB(var_smoothing=0.1), "2-means", **PLAIN).fit(X, y)
    for estimator in (GaussianNB(var_smoothing=0.1), LogisticRegression()):
        for form in (np.asarray, csr_array)[: 1 if isinstance(estimator, GaussianNB) else 2]:
            clf = NestedDichotomyClassifier(estimator, "2-means", max_memory=1, **PLAIN)
            clf.fit_batches(_batches(X, y, form=form))
            assert clf.tree_ == whole.tree_


@pytest.mark.parametrize(
    ("estimator", "max_memory"), [(GaussianNB(var_smoothing=0.1), 1), (LogisticRegression(), 8 * 528 * 4_800)]
)
@pytest.mark.parametrize("internal", [None, "platt"])
def test_models_calibrated_on_rows_in_a_file_are_as_good_as_in_memory(
    estimator, max_memory, internal, digits
):
    X, y = np.concatenate([digits[0]] * 4), np.concatenate([digits[1]] * 4)
    X = X + 0.3 * np.random.default_rng(0).standard_normal(X.shape)
    given = {"internal_calibration": internal, "external_calibration": "vector", "random_state": 0}
    clf = NestedDichotomyClassifier(estimator, "2-means", max_memory=max_memory, **given)
    clf.fit_batches(_batches(X[:5_000], y[:5_000])).set_params(max_memory=None)
    whole = NestedDichotomyClassifier(estimator, clf.tree_, **given).fit(X[:5_000], y[:5_000])
    of = np.arange(len(y) - 5_000), y[5_000:]
    nll = [-each.predict_log_proba(X[5_000:])[of].mean() for each in (clf, whole)]
    assert nll[0] < 1.05 * nll[1]


def test_weights_count_as_rows(rows):
    X, y = rows
    twice = np.random.default_rng(0).integers(1, 3, len(y))
    given = {"structure": "class-balanced", **PLAIN}
    weighted = NestedDichotomyClassifier(LogisticRegression(tol=1e-8), **given)
    weighted.fit_batches(_batches(X, y, twice.astype(float)))
    repeated = NestedDichotomyClassifier(LogisticRegression(tol=1e-8), weighted.tree_, **PLAIN)
    repeated.fit_batches(_batches(np.repeat(X, twice, axis=0), np.repeat(y, twice)))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


def test_finished_passes_are_not_repeated_after_an_interruption_and_files_are_removed(rows, tmp_path):
    X, y = rows
    folder, started = tmp_path / "spill", []

    def make_batches(fails=False):
        started.append(None)
        for i, batch in enumerate(_batches(X, y)()):
            if fails and len(started) == 3 and i == 2:  # the first batch, counting, then spilling
                raise KeyboardInterrupt
            yield batch

    clf = NestedDichotomyClassifier(LogisticRegression(), **PLAIN)
    with pytest.raises(KeyboardInterrupt):
        clf.fit_batches(lambda: make_batches(fails=True), spill=folder)
    assert (folder / "counts.npz").exists()
    started.clear()
    clf.fit_batches(make_batches, spill=folder)
    assert len(started) == 2  # the first batch, spilling
    assert not folder.exists()
    assert clf.score(X, y) > 0.9


@pytest.mark.parametrize("estimator", [LogisticRegression(), HistGradientBoostClassifier(3)])
@pytest.mark.parametrize("at", [3, None])  # in the pass that spills, or in training
def test_a_fit_that_is_taken_up_equals_one_that_was_not_interrupted(
    estimator, at, rows, tmp_path, monkeypatch
):
    X, y = rows
    started, clf = [], NestedDichotomyClassifier(estimator, random_state=0)

    def make_batches():
        started.append(None)
        for i, batch in enumerate(_batches(X, y)()):
            if len(started) == at and i == 2:
                raise KeyboardInterrupt
            yield batch

    expected = clf.fit_batches(_batches(X, y)).predict_proba(X)
    if at is None:
        monkeypatch.setattr(batches.SpilledTraining, "run", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        clf.fit_batches(make_batches, spill=tmp_path / "spill")
    monkeypatch.undo()
    clf.fit_batches(_batches(X, y), spill=tmp_path / "spill")
    np.testing.assert_array_equal(clf.predict_proba(X), expected)


def _interrupt(*_):
    raise KeyboardInterrupt


def test_files_of_an_interrupted_fit_with_other_weights_are_not_used(rows, tmp_path, monkeypatch):
    X, y = rows
    clf, weight = NestedDichotomyClassifier(LogisticRegression(), **PLAIN), np.where(y == 1, 1e-3, 1.0)
    expected = clf.fit_batches(_batches(X, y, weight)).predict_proba(X)
    monkeypatch.setattr(batches.SpilledTraining, "run", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        clf.fit_batches(_batches(X, y), spill=tmp_path / "spill")
    monkeypatch.undo()
    found = clf.fit_batches(_batches(X, y, weight), spill=tmp_path / "spill").predict_proba(X)
    np.testing.assert_array_equal(found, expected)


def test_files_of_an_interrupted_fit_to_other_rows_are_not_used(rows, tmp_path, monkeypatch):
    X, y = rows
    clf = NestedDichotomyClassifier(LogisticRegression(), **PLAIN)
    monkeypatch.setattr(batches.SpilledTraining, "run", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        clf.fit_batches(_batches(X, y), spill=tmp_path / "spill")
    monkeypatch.undo()
    others = 9 - y
    assert clf.fit_batches(_batches(X, others), spill=tmp_path / "spill").score(X, others) > 0.9


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB(var_smoothing=0.01)])
def test_batches_without_rows_are_passed_over(estimator, rows):
    X, y = rows
    clf, nothing = NestedDichotomyClassifier(estimator, **PLAIN), (X[:0], y[:0])
    expected = clf.fit_batches(_batches(X, y)).predict_proba(X)
    clf.fit_batches(lambda: (each for batch in _batches(X, y)() for each in (nothing, batch)))
    np.testing.assert_array_equal(clf.predict_proba(X), expected)


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB(var_smoothing=0.01)])
def test_labels_may_be_strings_of_numpy_or_of_pandas(estimator, rows):
    pd = pytest.importorskip("pandas")
    X, y = rows
    names = np.array([f"class {c}" for c in y])
    clf = NestedDichotomyClassifier(estimator, **PLAIN)
    expected = clf.fit_batches(_batches(X, names)).predict_proba(X)
    half = len(y) // 2
    parts = (X[:half], pd.Series(names[:half])), (X[half:], names[half:].astype(object))
    clf.fit_batches(lambda: iter(parts))
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-6)
    assert clf.classes_.dtype.kind == "U"


def test_spilled_rows_are_those_of_the_batches_by_class(rows, tmp_path):
    X, y = rows
    for form in (np.asarray, csr_array):
        batches = [
            Rows(form(a), np.unique(b, return_inverse=True)[1], np.unique(b)) for a, b in _batches(X, y)()
        ]
        counts = RowCounts.of(batches)
        np.testing.assert_array_equal(counts.size, np.bincount(y))
        totals = counts.totals if form is np.asarray else counts.totals.toarray()
        np.testing.assert_allclose(totals, [X[y == c].sum(axis=0) for c in range(10)])
        spilled = SpilledRows(tmp_path, counts)
        spilled.write(batches)
        taken = spilled.rows(np.array([7, 2]), [np.array([0, 3]), np.array([5])])
        expected = np.concatenate([X[y == 7][[0, 3]], X[y == 2][[5]]])
        np.testing.assert_array_equal(taken.X if form is np.asarray else taken.X.toarray(), expected)
        assert taken.codes.tolist() == [7, 7, 2]


def test_errors_say_what_to_do(rows):
    X, y = rows
    clf = NestedDichotomyClassifier(LogisticRegression(), **PLAIN)
    with pytest.raises(ValueError, match="no batch"):
        clf.fit_batches(lambda: iter([]))
    with pytest.raises(ValueError, match="name one"):
        NestedDichotomyClassifier().fit_batches(_batches(X, y))
    with pytest.raises(ValueError, match="keep_rows"):
        NestedDichotomyClassifier(LogisticRegression(), keep_rows=5).fit_batches(_batches(X, y))
    with pytest.raises(ValueError, match="at least two classes"):
        clf.fit_batches(_batches(X, np.zeros(len(y), dtype=int)))
    with pytest.raises(ValueError, match="at least two classes"):
        NestedDichotomyClassifier(GaussianNB()).fit_batches(_batches(X, np.zeros(len(y), dtype=int)))
    for given in ([(X, y)], iter([(X, y)]), _batches(X, y)()):
        with pytest.raises(TypeError, match="lambda: iter"):
            clf.fit_batches(given)
    for batch in (X, (X,), (X, y, y, y)):
        with pytest.raises(TypeError, match="must be \\(X, y\\)"):
            clf.fit_batches(lambda batch=batch: iter([batch]))
    for estimator in (LogisticRegression(), GaussianNB()):
        once = iter([(X, y), (X, y)])
        with pytest.raises(ValueError, match="same iterator twice"):
            NestedDichotomyClassifier(estimator).fit_batches(lambda once=once: once)
        with pytest.raises(TypeError, match="like 'a', those of another like 0"):
            NestedDichotomyClassifier(estimator).fit_batches(lambda: iter([(X, ["a"] * len(y)), (X, y)]))
    calls = []

    def changing():
        calls.append(None)
        return _batches(X[len(calls) :], y[len(calls) :])()

    with pytest.raises(ValueError, match="same rows again"):
        clf.fit_batches(changing)
    assert not hasattr(clf, "model_")
