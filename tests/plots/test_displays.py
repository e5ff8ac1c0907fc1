"""Pictures: rendered without a screen, and checked for what they show."""

import builtins
import importlib
import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from dichotomies import NestedDichotomyClassifier, plots
from dichotomies.diagnostics import class_calibration, depth_cuts, ledger
from dichotomies.plots import (
    ClassCalibrationDisplay,
    DepthCalibrationDisplay,
    DepthReliabilityDisplay,
    LedgerDisplay,
    ReliabilityDisplay,
)
from dichotomies.plots.ledger import cells_of
from dichotomies.structures import resolve
from tests.tasks import growing_task

DISPLAYS = [getattr(plots, name) for name in plots.__all__]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def scored(digits):
    X, y = digits
    both = {"internal_calibration": "platt", "external_calibration": "vector"}
    clf = NestedDichotomyClassifier(GaussianNB(var_smoothing=1e-2), **both, random_state=0)
    return clf.fit(X[:900], y[:900]), X[900:], y[900:]


def uncalibrated(X, y, *tree):
    none = {"internal_calibration": None, "external_calibration": None}
    return NestedDichotomyClassifier(GaussianNB(), *tree, **none).fit(X, y)


def rendered(display):
    """The picture as an array of colours."""
    display.figure_.canvas.draw()
    return np.asarray(display.figure_.canvas.buffer_rgba())


@pytest.mark.parametrize("display", DISPLAYS)
def test_every_display_renders_into_a_new_figure(display, scored):
    picture = rendered(display.from_estimator(*scored))
    assert picture.std() > 10  # something is drawn


@pytest.mark.parametrize("display", DISPLAYS)
def test_every_display_draws_into_axes_put_anywhere(display, scored):
    ax = plt.figure().add_axes([0.3, 0.2, 0.6, 0.7])
    drawn = display.from_estimator(*scored, ax=ax)
    assert drawn.figure_ is ax.figure
    assert min(each.get_position().x0 for each in ax.figure.axes) >= 0.3 - 1e-9
    rendered(drawn)


@pytest.mark.parametrize("display", DISPLAYS)
def test_labels_are_written_as_they_are(display, iris):
    X, y = iris
    labels = np.array([r"$\foo$", "$5 or $6", "_b"])[y]
    clf = NestedDichotomyClassifier(random_state=0).fit(X, labels)
    rendered(display.from_estimator(clf, X, labels))


def test_names_of_models_are_written_as_they_are(scored):
    clf, X, y = scored
    drawn = ReliabilityDisplay.from_estimator({r"$\foo$": clf}, X, y)
    rendered(drawn)
    assert drawn.lines_[0].get_label().startswith(r"\$\foo\$: ECE")


@pytest.mark.parametrize("display", [DepthReliabilityDisplay, DepthCalibrationDisplay, LedgerDisplay])
def test_models_without_a_tree_are_refused_in_a_sentence(display, digits):
    X, y = digits
    with pytest.raises(NotFittedError, match="not fitted yet"):
        display.from_estimator(NestedDichotomyClassifier(), X, y)
    with pytest.raises(TypeError, match="not a GaussianNB"):
        display.from_estimator(GaussianNB().fit(X, y), X, y)


def test_the_colour_bar_of_the_ledger_leaves_room_for_the_labels(scored):
    figure, axes = plt.subplots(1, 2, figsize=(10, 4))  # no layout engine
    drawn = LedgerDisplay.from_estimator(*scored, ax=axes[1])
    rendered(drawn)
    bar = figure.axes[-1].get_tightbbox()
    assert bar.y1 < drawn.ax_.xaxis.label.get_window_extent().y0


def test_one_score_per_row_is_drawn_as_the_probability_of_the_event(rng):
    score = rng.random(200)
    drawn = ReliabilityDisplay.from_predictions(rng.random(200) < score, score)
    assert drawn.counts_ax_.get_xlabel() == "probability of True"
    assert drawn.curves["model"].count[:10].sum() > 0  # scores below one half, too


def test_no_models_are_refused(scored):
    _, X, y = scored
    with pytest.raises(ValueError, match="no model to draw"):
        ReliabilityDisplay.from_estimator({}, X, y)


@pytest.mark.parametrize("display", DISPLAYS)
def test_every_display_draws_into_given_axes(display, scored):
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 6), layout="constrained")
    shown = display.from_estimator(*scored, ax=right)
    assert shown.figure_ is figure
    rendered(shown)
    middle = left.get_position().x1
    panels = [ax for ax in figure.axes if ax not in (left, right)]
    assert panels
    assert all(ax.get_position().x0 >= middle for ax in panels)


@pytest.mark.parametrize("layout", ["constrained", None])
@pytest.mark.parametrize("size", [(2.2, 1.8), (3, 2.2), (4, 4)])
@pytest.mark.parametrize("display", DISPLAYS)
def test_titles_and_legends_stay_inside_small_axes(display, size, layout, scored):
    figure, ax = plt.subplots(figsize=size, layout=layout)
    display.from_estimator(*scored, ax=ax)
    figure.canvas.draw()
    whole = figure.bbox.padded(1.5)
    for part in figure.axes:
        legend = [part.get_legend()] if part.get_legend() else []
        for artist in [part.title, part._left_title, part.xaxis.label, *legend]:
            box = artist.get_window_extent()
            assert box.width == 0 or (box.x0 >= whole.x0 and box.x1 <= whole.x1 and box.y1 <= whole.y1)


@pytest.mark.parametrize("display", DISPLAYS)
def test_every_display_takes_a_pipeline_and_one_row(display, digits):
    X, y = digits
    clf = make_pipeline(MinMaxScaler(), NestedDichotomyClassifier(GaussianNB(), random_state=0))
    rendered(display.from_estimator(clf.fit(X[:900], y[:900]), X[:1], y[:1]))


@pytest.mark.parametrize("display", DISPLAYS)
def test_every_display_takes_two_classes(display, digits):
    X, y = digits
    few = y < 2
    rendered(display.from_estimator(uncalibrated(X[few], y[few]), X[few], y[few]))


def test_without_matplotlib_a_sentence_names_the_extra(scored, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'dichotomies\[plot\]'"):
        ReliabilityDisplay.from_estimator(*scored)


def test_importing_the_plots_needs_no_matplotlib(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args):
        assert not name.startswith("matplotlib")
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for name in ("style", "reliability", "ledger", "classes", "depth"):
        importlib.reload(importlib.import_module(f"dichotomies.plots.{name}"))


def test_reliability_overlays_models_with_bands_and_counts(scored):
    clf, X, y = scored
    models = {"tree": clf, "bayes": GaussianNB().fit(X[:500], y[:500])}
    display = ReliabilityDisplay.from_estimator(models, X, y)
    for line, (name, curve) in zip(display.lines_, display.curves.items(), strict=True):
        solid = curve.count >= 10
        np.testing.assert_allclose(line.get_ydata(), curve.observed[solid])
        assert line.get_label() == f"{name}: ECE {curve.ece:.3f}"
    assert len({line.get_color() for line in display.lines_}) == 2
    steps = [patch.get_data().values for patch in display.counts_ax_.patches]
    np.testing.assert_allclose(steps[0], display.curves["tree"].count)
    assert steps[0].sum() == len(y)


def test_reliability_from_predictions_is_that_from_the_estimator(scored):
    clf, X, y = scored
    one = ReliabilityDisplay.from_estimator(clf, X, y, name="model")
    two = ReliabilityDisplay.from_predictions(y, clf.predict_proba(X), labels=clf.classes_)
    np.testing.assert_allclose(one.lines_[0].get_xydata(), two.lines_[0].get_xydata())
    assert one.lines_[0].get_label() == two.lines_[0].get_label()


def test_reliability_of_one_class_says_so(scored):
    clf, X, y = scored
    display = ReliabilityDisplay.from_predictions(y, {"tree": clf.predict_proba(X)}, pos_label=3)
    assert display.counts_ax_.get_xlabel() == "probability of 3"


def test_depth_reliability_has_a_panel_for_each_depth_and_stage(scored):
    clf, X, y = scored
    cuts = depth_cuts(clf, X, y, depths=[1, 3])
    display = DepthReliabilityDisplay(cuts).plot(reading="pooled")
    assert display.axes_.shape == (2, 2)
    title = f"depth 3\n{cuts.n_groups[1]} groups\nECE {cuts.before.ece_pooled[1]:.3f}"
    assert display.axes_[0, 1].get_title() == title
    curve = cuts.after.pooled[0]
    drawn = display.axes_[1, 0].lines[-1].get_ydata()
    np.testing.assert_allclose(drawn, curve.observed[curve.count >= 10])
    with pytest.raises(ValueError, match="'top_label', 'pooled', got 'tea leaves'"):
        display.plot(reading="tea leaves")


def test_without_external_calibration_there_is_one_stage(digits):
    X, y = digits
    clf = uncalibrated(X, y)
    assert len(DepthReliabilityDisplay.from_estimator(clf, X, y).axes_) == 1
    assert len(DepthCalibrationDisplay.from_estimator(clf, X, y).axes_[1].lines) == 1


@pytest.mark.parametrize("reading", ["top_label", "pooled"])
def test_depth_calibration_shows_the_cuts(scored, reading):
    clf, X, y = scored
    cuts = depth_cuts(clf, X, y)
    shares, errors, groups = DepthCalibrationDisplay(cuts).plot(reading=reading).axes_
    lines = {line.get_label(): line.get_ydata() for line in [*shares.lines, *errors.lines]}
    np.testing.assert_array_equal(lines["accuracy, before"], cuts.before.accuracy)
    np.testing.assert_array_equal(lines["confidence, after"], cuts.after.confidence)
    np.testing.assert_array_equal(lines["after calibration"], getattr(cuts.after, f"ece_{reading}"))
    assert [bar.get_height() for bar in groups.patches] == cuts.n_groups.tolist()


def test_class_calibration_shows_the_worst_classes_first(scored):
    clf, X, y = scored
    worst = class_calibration(clf, X, y).worst(4)
    display = ClassCalibrationDisplay.from_predictions(y, clf.predict_proba(X), labels=clf.classes_, top=4)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == list(map(str, worst["class"]))
    np.testing.assert_allclose(display.ax_.lines[0].get_xdata(), worst["precision"])
    np.testing.assert_allclose(display.ax_.lines[1].get_xdata(), worst["confidence"])
    assert [bar.get_width() for bar in display.counts_ax_.patches] == worst["answered"].tolist()
    assert "(about 1 by chance)" in display.ax_.get_title(loc="left")


def test_long_class_names_are_shortened():
    labels = ["a" * 60, "b"]
    proba = np.tile([0.7, 0.3], (10, 1))
    display = ClassCalibrationDisplay.from_predictions(labels * 5, proba, labels=labels)
    assert display.ax_.get_yticklabels()[0].get_text() == "a" * 27 + "…"


def test_ledger_has_a_cell_for_every_wide_node(scored):
    clf, X, y = scored
    book = ledger(clf, X, y)
    display = LedgerDisplay(book).plot()
    cells = display.cells_
    assert sorted(cells.node) == list(range(clf.tree_.n_nodes))
    np.testing.assert_allclose(cells.right - cells.left, book.rows[cells.node] / len(y))
    np.testing.assert_allclose(cells.value, book.by_node()["nll_per_row"][cells.node])
    texts = {text.get_text() for text in display.ax_.texts}
    assert {str(label) for label in clf.classes_} <= texts
    assert f"{book.nll[0] / book.total:.0%}" in texts
    widths = [bar.get_width() for bar in display.depth_ax_.patches]
    np.testing.assert_allclose(widths, book.by_depth()["nll"])


@pytest.mark.parametrize("colour", ["internal_gain", "recoverable"])
def test_ledger_in_other_colours(scored, colour):
    rendered(LedgerDisplay.from_estimator(*scored, colour=colour))


def test_colours_that_there_are_not_are_refused(scored, digits):
    X, y = digits
    with pytest.raises(ValueError, match="'nll', 'internal_gain', 'recoverable', got 'red'"):
        LedgerDisplay.from_estimator(*scored, colour="red")
    plain = NestedDichotomyClassifier(GaussianNB(), internal_calibration=None).fit(X, y)
    with pytest.raises(ValueError, match="has no internal calibration"):
        LedgerDisplay.from_estimator(plain, X, y, colour="internal_gain")


def test_narrow_nodes_are_merged_and_nothing_is_lost(rng):
    labels = np.arange(1600)
    y = np.concatenate([labels, labels])
    task = growing_task(np.zeros((len(y), 1)), y, labels, None)
    tree = resolve("random").grow_from(task, np.random.RandomState(0))
    X = rng.normal(size=(len(y), 2))
    book = ledger(uncalibrated(X, y, tree), X, y)
    cells = cells_of(book, book.nll)
    assert len(cells.node) < 0.9 * tree.n_nodes
    wide = book.rows / len(y) >= 1 / 250
    assert set(np.flatnonzero(wide)) <= set(cells.node)
    order = np.lexsort((cells.left, cells.depth))
    left, right, depth = cells.left[order], cells.right[order], cells.depth[order]
    same_depth = depth[1:] == depth[:-1]
    assert (left[1:] >= right[:-1] - 1e-12)[same_depth].all()  # no two overlap
    picture = rendered(LedgerDisplay(book).plot())
    assert picture.std() > 10
