"""What the report says is what the rows say, by independent counts."""

import re
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom, false_discovery_control
from sklearn.metrics import accuracy_score, log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dichotomies import NestedDichotomyClassifier
from dichotomies.diagnostics import class_calibration
from dichotomies.report import listings, make, summary
from tests.report.conftest import CREATED, fitted


@pytest.fixture(scope="module")
def proba(digits_clf):
    clf, X, _ = digits_clf
    return clf.predict_proba(X)


def numbers_in(text):
    return [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def test_headline_is_what_the_rows_say(digits_clf, digits_report, proba):
    clf, _, y = digits_clf
    confidence, right = proba.max(axis=1), clf.classes_[proba.argmax(axis=1)] == y
    borders = [0.0, *np.arange(0.05, 1, 0.1), 1.0]
    bands = [(confidence >= low) & (confidence < high) for low, high in pairwise(borders)]
    judged = [rows for rows in bands if rows.sum() >= 30]

    def surprise(rows):  # gap in standard errors
        says = confidence[rows].mean()
        return abs(says - right[rows].mean()) / np.sqrt(max(says * (1 - says), 1e-6) / rows.sum())

    band = max(judged, key=surprise)
    says, is_right = numbers_in(digits_report.content["headline"])
    assert says == pytest.approx(100 * confidence[band].mean(), abs=0.5)
    assert is_right == pytest.approx(100 * right[band].mean(), abs=0.5)
    assert numbers_in(digits_report.content["headline_basis"])[:2] == [band.sum(), len(y)]


def test_tiles_agree_with_scikit_learn(digits_clf, digits_report, proba):
    clf, _, y = digits_clf
    tiles = {tile["name"]: tile for tile in digits_report.content["tiles"]}
    right = 100 * accuracy_score(y, clf.classes_[proba.argmax(axis=1)])
    assert numbers_in(tiles["Accuracy"]["value"])[0] == pytest.approx(right, abs=0.05)
    assert float(tiles["Loss"]["value"]) == pytest.approx(log_loss(y, proba, labels=clf.classes_), abs=5e-4)
    for tile in tiles.values():
        low, high = numbers_in(tile["interval"])
        assert low <= numbers_in(tile["value"])[0] <= high


def test_answers_from_a_confidence_on_are_counted(digits_clf, digits_report, proba):
    clf, _, y = digits_clf
    confidence, wrong = proba.max(axis=1), clf.classes_[proba.argmax(axis=1)] != y
    curve = digits_report.content["data"]["accepted"]
    for at in (0, 50, 80, 99):
        kept = confidence >= at / 100
        assert (curve["answered"][at], curve["wrong"][at]) == (kept.sum(), (wrong & kept).sum())
    table = {row["least"]: row for row in digits_report.content["acceptance"]}
    kept = confidence >= 0.9
    shown = next(row for least, row in table.items() if least.startswith("90"))
    assert (int(shown["rows"]), int(shown["wrong"])) == (kept.sum(), (wrong & kept).sum())
    low, high = numbers_in(shown["interval"])
    assert low <= numbers_in(shown["share"])[0] <= high


def test_verdicts_on_classes_control_false_discoveries(digits_clf, digits_report):
    clf, X, y = digits_clf
    found = class_calibration(clf, X, y)
    right, law = found.answered * found.precision, binom(found.answered, found.confidence)
    tail = np.minimum(law.cdf(np.round(right)), law.sf(np.round(right) - 1))
    significant = false_discovery_control(np.minimum(2 * tail, 1)) <= 0.05
    expected = set(found.classes[significant & (found.excess > 0)].astype(str).tolist())
    shown = {row["name"] for row in digits_report.content["classes"] if row["kind"] != "fine"}
    assert shown == expected
    outside = int((found.excess > 0).sum())
    text = digits_report.content["classes_text"]
    assert numbers_in(text)[:3] == [outside, 10, 0.5]


def test_calibrated_classes_with_few_predictions_are_within_chance():
    rng = np.random.default_rng(0)
    confidence, answered = rng.uniform(0.02, 0.3, 3000), rng.integers(1, 6, 3000).astype(float)
    precision = rng.binomial(answered.astype(int), confidence) / answered
    classes = SimpleNamespace(
        answered=answered, confidence=confidence, precision=precision, excess=np.ones(3000)
    )
    assert listings._beyond_chance(SimpleNamespace(classes=classes)).sum() <= 1


def test_bands_hold_every_row_once(digits_report):
    assert sum(numbers_in(band["rows"])[0] for band in digits_report.content["bands"]) == 897


def test_mistakes_are_the_surest_wrong_answers(digits_clf, digits_report, proba):
    clf, _, y = digits_clf
    answer = clf.classes_[proba.argmax(axis=1)]
    wrong = np.flatnonzero(answer != y)
    expected = wrong[np.argsort(-proba[wrong].max(axis=1), kind="stable")][:20]
    shown = digits_report.content["mistakes"]
    assert [int(row["row"]) for row in shown] == expected.tolist()
    assert [row["truth"] for row in shown] == y[expected].tolist()
    assert [row["answer"] for row in shown] == answer[expected].tolist()
    assert [row["example"] for row in shown] == [f"image {i}" for i in expected]


def test_pairs_part_at_their_node(digits_clf, digits_report):
    tree = digits_clf[0].tree_
    for row in digits_report.content["pairs"]:
        start, split, stop = (getattr(tree, name)[row["node"]] for name in ("start", "split", "stop"))
        assert start <= row["first_leaf"] < split <= row["second_leaf"] < stop
        assert tree.leaf_labels[row["first_leaf"]] == row["first"]


def test_drawn_ledger_sums_to_the_total(digits_report):
    data = digits_report.content["data"]
    assert sum(data["tree"]["nll"]) == pytest.approx(data["total"], rel=1e-3)
    assert data["tree"]["colourings"][-1]["diverging"]  # there is internal calibration


def test_drawn_classes_are_counted_by_leaf(digits_clf, digits_report, proba):
    clf, _, y = digits_clf
    drawn = digits_report.content["data"]["tree"]
    codes = np.searchsorted(clf.classes_, y)
    for leaf, name in enumerate(drawn["names"]):
        own = y == name
        assert drawn["class_rows"][leaf] == own.sum()
        right = (proba[own].argmax(axis=1) == codes[own]).mean()
        assert drawn["class_right"][leaf] == pytest.approx(right, rel=1e-3)
        loss = -np.log(proba[own, codes[own]]).mean()
        assert drawn["class_nll"][leaf] == pytest.approx(loss, rel=1e-3)


def test_weights_are_counts(digits_clf):
    clf, X, y = digits_clf
    X, y = X[:200], y[:200]
    times = np.random.default_rng(0).integers(0, 3, len(y))
    times[-1] = 0
    weighted = make(clf, X, y, sample_weight=times, created=CREATED).content
    repeated = make(clf, np.repeat(X, times, axis=0), np.repeat(y, times), created=CREATED).content
    for part in ("headline", "headline_basis", "bands", "classes", "pairs"):
        assert weighted[part] == repeated[part]
    assert [tile["value"] for tile in weighted["tiles"]] == [tile["value"] for tile in repeated["tiles"]]
    assert weighted["data"]["tree"]["class_rows"] == repeated["data"]["tree"]["class_rows"]


def test_facts_name_the_model(digits_report, digits_clf):
    facts = dict(digits_report.content["facts"])
    assert facts["Classes"] == "10"
    assert facts["Estimator"].startswith("LogisticRegression(")
    chosen = digits_clf[0].calibration_
    assert facts["Internal calibration"] == chosen.internal
    assert facts["External calibration"] == chosen.external
    assert "scikit-learn" in facts["Software"]
    assert dict(digits_report.content["parameters"])["random_state"] == "0"


@pytest.mark.parametrize("external", ["temperature", None])
def test_two_classes(rows, external):
    X, y = rows(["no", "yes"])
    report = make(fitted(X, y, external_calibration=external), X, y.astype(str))
    assert len(report.content["data"]["cuts"]["stages"]) == (1 if external is None else 2)
    assert [tile["name"] for tile in report.content["tiles"]] == [
        "Accuracy",
        "Calibration error",
        "Loss",
        "Brier score",
    ]


def test_one_row(digits_clf):
    clf, X, y = digits_clf
    content = make(clf, X[:1], y[:1]).content
    assert "rests on 1 row: too few" in content["headline"]
    assert content["tiles"][0]["interval"].startswith("20.7")  # not 100 % to 100 %: one row says little
    assert any("9 of the 10 classes have no row" in sentence for sentence in content["summary"])


def test_all_right(iris):
    X, y = iris
    clf = NestedDichotomyClassifier(random_state=0).fit(X, y)
    easy = y == 0
    content = make(clf, X[easy], y[easy]).content
    assert content["mistakes"] == []
    assert all(float(pair["mass"]) >= 0.5 for pair in content["pairs"])
    assert make(clf, X[:1], y[:1]).content["pairs"] == []  # never expected to be confused


@pytest.mark.parametrize(
    ("before", "after", "harms"), [(1.0, 0.9, False), (1.0, 1.1, True), (1.0, 1.0001, False)]
)
def test_calibration_that_did_harm_is_said_to(before, after, harms):
    assert ("worse" in summary._if_worse(before, after)) == harms


def test_a_loss_beyond_words_is_not_made_up(digits):
    X, y = digits
    clf = NestedDichotomyClassifier(
        GaussianNB(), internal_calibration=None, external_calibration=None, random_state=0
    )
    content = make(clf.fit(X[:300], y[:300]), X[300:600], y[300:600]).content
    assert any("less than 1 in 1,000,000,000 (" in sentence for sentence in content["summary"])


def test_nodes_that_answer_0_or_1(rows):
    X, y = rows(["a", "b", "c"])
    clf = fitted(
        X,
        y,
        estimator=DecisionTreeClassifier(random_state=0),
        internal_calibration=None,
        external_calibration=None,
    )
    X, y = rows(["a", "b", "c"], seed=1)
    content = make(clf, X, y.astype(str)).content
    loss = next(tile["value"] for tile in content["tiles"] if tile["name"] == "Loss")
    assert float(loss) == pytest.approx(
        -clf.predict_log_proba(X)[np.arange(len(y)), _codes(clf, y)].mean(), abs=5e-4
    )


def _codes(clf, y):
    return np.searchsorted(clf.classes_, y.astype(str))


@pytest.mark.parametrize("convert", [csr_array, np.float32])
def test_rows_of_any_kind(digits, convert):
    X, y = digits
    X = convert(X)
    clf = NestedDichotomyClassifier(random_state=0).fit(X[:600], y[:600])
    assert make(clf, X[600:], y[600:]).content["data"]["tree"]["names"] == [
        str(c) for c in clf.tree_.leaf_labels
    ]


def test_pipelines_are_reported_on(digits):
    X, y = digits
    pipeline = make_pipeline(StandardScaler(), NestedDichotomyClassifier(random_state=0)).fit(
        X[:600], y[:600]
    )
    facts = dict(make(pipeline, X[600:], y[600:]).content["facts"])
    assert facts["Model"] == "NestedDichotomyClassifier after StandardScaler"


def test_labels_that_are_unknown_are_named(digits_clf):
    clf, X, _ = digits_clf
    with pytest.raises(ValueError, match="eleven"):
        make(clf, X[:2], ["one", "eleven"])


def test_examples_may_be_any_iterable(digits_clf):
    clf, X, y = digits_clf
    named = make(clf, X, y, examples=(f"row {i}" for i in range(len(y)))).content["mistakes"]
    assert all(line["example"] == f"row {line['row']}" for line in named)


@pytest.mark.parametrize("examples", [["a"], "abc"])
def test_examples_must_name_every_row(digits_clf, examples):
    clf, X, y = digits_clf
    with pytest.raises(ValueError, match="examples must name each of the 3 rows"):
        make(clf, X[:3], y[:3], examples=examples)


def test_a_thousand_classes_stay_under_five_megabytes(rows):
    names = [f"class number {i} with quite a long name" for i in range(1000)]
    X, y = rows(names, n_rows=3000)
    clf = fitted(X, y, estimator=GaussianNB(var_smoothing=0.1), external_calibration="temperature")
    report = make(clf, *(each[:2000] for each in (X, y.astype(str))))
    assert len(report.html.encode()) < 2_000_000


def test_answers_are_as_deep_as_the_confidence_allows(digits_clf, digits_report):
    clf, X, y = digits_clf
    rows = {each["asked"].replace("\u00a0", " "): each for each in digits_report.content["answers"]}
    assert list(rows) == ["confidence 50 %", "confidence 80 %", "confidence 90 %", "confidence 95 %"]
    nodes = clf.predict_node(X, 0.9)
    shown = rows["confidence 90 %"]
    assert numbers_in(shown["single"])[0] == pytest.approx(100 * (nodes.size == 1).mean(), abs=0.5)
    assert numbers_in(shown["right"])[0] == pytest.approx(100 * nodes.holds(y).mean(), abs=0.5)
    assert float(shown["size"]) == pytest.approx(nodes.size.mean(), abs=0.05)
    assert float(shown["depth"]) == pytest.approx(nodes.depth.mean(), abs=0.05)


def test_sets_are_reported_if_the_model_has_them(rows):
    X, y = rows(["a", "b", "c", "d"])
    y = y.astype(str)
    clf = fitted(X[:200], y[:200]).calibrate_sets(X[200:300], y[200:300])
    shown = make(clf, X[300:], y[300:], created=CREATED).content["answers"][-1]
    sets = clf.predict_set(X[300:], 0.95)
    held = np.mean([label in labels for label, labels in zip(y[300:], sets, strict=True)])
    assert shown["asked"].startswith("sets, coverage 95")
    assert numbers_in(shown["right"])[0] == pytest.approx(100 * held, abs=0.5)
