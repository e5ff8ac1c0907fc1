"""Models fitted on a Dask or Ray cluster equal those fitted here, bit for bit, also if a worker is killed."""

import os

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies._common import chunks, cluster, parallel
from dichotomies.inference import fitted
from dichotomies.learners import ScaledLogisticRegression, TunedLogisticRegression
from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier
from tests.clusters import DyingTree, dask_client, ray_workers
from tests.slow import slow

PLAIN = {"internal_calibration": None, "external_calibration": None}


def _problem(n_classes=24, n_rows=20, n_features=30):
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(n_classes), n_rows)
    X = rng.normal(size=(n_classes, n_features))[codes] + rng.normal(size=(len(codes), n_features))
    return X, np.array([f"class {c}" for c in codes])


def _sparse(X):
    return csr_array(np.where(np.abs(X) > 1, X, 0))


ESTIMATORS = {
    "naive Bayes": GaussianNB(),
    "logistic": LogisticRegression(),
    "scaled": ScaledLogisticRegression(),
    "tuned": TunedLogisticRegression(Cs=(0.1, 1.0)),
    "boosting": HistGradientBoostClassifier(n_estimators=5),
    "early stopping": HistGradientBoostClassifier(n_estimators=5, early_stopping=True),
    "AdaBoost": HistAdaBoostClassifier(n_estimators=3),
    "clones": DecisionTreeClassifier(max_depth=3),
}
STAY_HERE = ("naive Bayes", "logistic", "scaled", "tuned")
CASES = {
    "calibrated": (NestedDichotomyClassifier, {"cv": 3}),
    "plain": (NestedDichotomyClassifier, PLAIN),
    "ensemble": (NestedDichotomyEnsemble, {"n_estimators": 2, **PLAIN}),
}


@pytest.fixture(scope="module")
def client():
    with dask_client(n_workers=2, processes=False) as made:
        yield made


@pytest.fixture
def sent(monkeypatch):
    """Names of the functions that were called on the cluster, which gets work of any size."""
    monkeypatch.setattr(parallel, "_WORTH_SENDING", 0)
    for module in (chunks, fitted):  # a single chunk of rows stays here
        monkeypatch.setattr(module, "chunk_rows", lambda _: 64)
    calls, results = [], cluster.results

    def noted(function, *given):
        calls.append(function.__name__)
        return results(function, *given)

    monkeypatch.setattr(cluster, "results", noted)
    return calls


@pytest.mark.filterwarnings("ignore:Logistic regression did not converge")
@pytest.mark.parametrize("case", ["calibrated", *slow("plain", "ensemble")])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_on_a_cluster_equals_a_local_one(name, case, client, sent):
    X, y = _problem()
    kind, params = CASES[case]
    model = kind(ESTIMATORS[name], random_state=0, **params)
    expected = model.fit(X, y).predict_log_proba(X)
    with parallel_config("dask"):
        answers = model.fit(X, y).predict_log_proba(X)
    np.testing.assert_array_equal(answers, expected)
    np.testing.assert_array_equal(model.predict_log_proba(X), expected)
    assert "log_proba" in sent
    assert len(set(sent) - {"log_proba"}) == (name not in STAY_HERE)


def test_sparse_rows_on_a_cluster_equal_local_ones(client, sent):
    X, y = _problem()
    X = _sparse(X)
    model = NestedDichotomyClassifier(DecisionTreeClassifier(max_depth=3), random_state=0, cv=3)
    expected = model.fit(X, y).predict_log_proba(X)
    with parallel_config("dask"):
        answers = model.fit(X, y).predict_log_proba(X)
        labels = model.predict(X)
    np.testing.assert_array_equal(answers, expected)
    np.testing.assert_array_equal(labels, model.predict(X))
    assert "_fit_batch" in sent


def test_rows_travel_once_per_fit(client, sent, monkeypatch):
    monkeypatch.setattr(cluster, "LARGE", 1000)
    X, y = _problem()
    placed, place = [], cluster._placed

    def noted(backend, value):
        placed.append(value)
        return place(backend, value)

    monkeypatch.setattr(cluster, "_placed", noted)
    with parallel_config("dask"):
        NestedDichotomyEnsemble(
            DecisionTreeClassifier(max_depth=3), n_estimators=3, random_state=0, cv=3
        ).fit(X, y)
    assert sum(getattr(each, "shape", None) == X.shape for each in placed) == 1
    assert sum(isinstance(each, cluster.Parcel) for each in placed) >= 3  # one for each tree


def test_dask_arrays_are_fitted_as_a_whole_and_predicted_block_by_block(client):
    da = pytest.importorskip("dask.array")
    X, y = _problem()
    model = NestedDichotomyClassifier(LogisticRegression(), random_state=0, n_jobs=2)
    expected = model.fit(X, y).predict_proba(X)
    rows = da.from_array(X, chunks=(128, 7))
    model.fit(rows, da.from_array(y, chunks=128), sample_weight=da.ones(len(y)))
    answer = model.predict_proba(rows)
    assert answer.chunks == (rows.chunks[0], (24,))
    np.testing.assert_array_equal(answer.compute(), expected)
    np.testing.assert_array_equal(model.predict_log_proba(rows).compute(), model.predict_log_proba(X))
    np.testing.assert_array_equal(model.predict(rows).compute(), model.predict(X))
    assert model.n_jobs == 2


def test_dask_frames_are_fitted_as_a_whole_and_predicted_block_by_block(client):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, y = _problem()
    frame = pd.DataFrame(X[:, :5], columns=list("abcde"))
    frame["kind"] = pd.Categorical(np.where(X[:, 5] > 0, "high", "low"))
    model = NestedDichotomyClassifier(HistGradientBoostClassifier(n_estimators=3), random_state=0, **PLAIN)
    expected = model.fit(frame, y).predict_proba(frame)
    parts = dd.from_pandas(frame, npartitions=3)
    model.fit(parts, dd.from_pandas(pd.Series(y), npartitions=3))
    np.testing.assert_array_equal(model.predict_proba(parts).compute(), expected)
    assert model.predict_proba(parts[parts.a > 1e9]).compute().shape == (0, 24)


def _dying(tmp_path):
    return NestedDichotomyClassifier(
        DyingTree(str(tmp_path / "killed"), os.getpid()), random_state=0, cv=2, internal_calibration="platt"
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_dask_worker_that_is_killed_costs_time_only(n_workers, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_SENDING", 0)
    X, y = _problem()
    model = _dying(tmp_path)
    expected = model.fit(X, y).predict_proba(X)
    with dask_client(n_workers=n_workers, processes=True, threads=2), parallel_config("dask"):
        model.fit(X, y)
    assert (tmp_path / "killed").exists()
    np.testing.assert_array_equal(model.predict_proba(X), expected)


@pytest.mark.slow
def test_a_ray_worker_that_is_killed_costs_time_only(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_SENDING", 0)
    X, y = _problem()
    model = _dying(tmp_path)
    expected = model.fit(X, y).predict_proba(X)
    with ray_workers(2), parallel_config("ray", n_jobs=-1):
        model.fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert (tmp_path / "killed").exists()


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [LogisticRegression(), HistGradientBoostClassifier(n_estimators=3)])
def test_a_fit_on_ray_equals_a_local_one(estimator, monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_SENDING", 0)
    X, y = _problem()
    model = NestedDichotomyClassifier(estimator, random_state=0, cv=3)
    expected = model.fit(X, y).predict_proba(X)
    with ray_workers(2), parallel_config("ray", n_jobs=-1):
        np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), expected)
