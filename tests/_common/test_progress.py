"""One bar over all stages shows the share of the time that has passed, and never falls."""

import re

import pytest

from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies._common import progress
from dichotomies._common.parallel import Context
from dichotomies._common.progress import Bar


class Clock:
    """Seconds that pass when told."""

    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def shown(err):
    """Percentages in the order of their lines."""
    return [int(each) for each in re.findall(r": +(\d+)%", err)]


def work(clock, stage, seconds, steps=10, expected=None):
    Bar.stage(stage, expected)
    for i in range(steps):
        clock.now += seconds / steps
        Bar.current().show((i + 1) / steps)


def test_with_true_estimates_the_bar_shows_the_time(clock, capfd):
    with Bar.over("all", {"read": 10.0, "train": 30.0, "calibrate": 60.0}):
        work(clock, "read", 10)
        assert shown(capfd.readouterr().err)[-1] == 10
        work(clock, "train", 30)
        assert shown(capfd.readouterr().err)[-1] == 40
        work(clock, "calibrate", 60)
    err = capfd.readouterr().err
    assert shown(err) == sorted(shown(err))
    assert err.endswith("[dichotomies] all: 100%, took 100.0 s\n")


def test_a_slow_machine_is_noticed(clock, capfd):
    with Bar.over("all", {"read": 10.0, "train": 30.0}):
        work(clock, "read", 30)  # thrice the estimate
        Bar.stage("train")
        clock.now += 45
        Bar.current().show(0.5)
        assert shown(capfd.readouterr().err)[-1] == round(100 * (30 + 45) / 120)


def test_better_estimates_take_the_place_of_the_first_and_the_bar_never_falls(clock, capfd):
    with Bar.over("all", {"choose": 10.0, "train": 10.0}):
        work(clock, "choose", 10)
        work(clock, "train", 90, expected={"train": 90.0})
    percents = shown(capfd.readouterr().err)
    assert percents == sorted(percents)
    assert percents[10] == 50  # the end of the first stage, by the first estimate
    assert percents[-2] == 99


def test_blocks_inside_are_stages_of_the_same_bar(clock, capfd):
    with Bar.over("outer", {"read": 1.0}):
        work(clock, "read", 1)
        with Bar.over("inner", {"train": 1.0}):
            work(clock, "train", 1)
            clock.now += 1
            Context(verbose=True).progress("nodes").show(1.0)
    err = capfd.readouterr().err
    assert "inner" not in err
    assert err.count("100%") == 1
    assert Bar.current() is None


def test_parts_of_the_work_divide_their_stage(clock, capfd):
    context = Context(verbose=True).titled("tree 2 of 4: ", 1, 4)
    with Bar.over("all", {"train": 10.0}):
        Bar.stage("train")
        clock.now += 1
        context.progress("fold 1 of 2", 0, 2).show(1.0)
        assert capfd.readouterr().err.endswith("tree 2 of 4: fold 1 of 2:  38%, 2 s left\n")


@pytest.mark.parametrize("estimator", [NestedDichotomyClassifier, NestedDichotomyEnsemble])
def test_a_fit_has_one_bar(estimator, iris, capfd):
    estimator(random_state=0, verbose=1).fit(*iris)
    err = capfd.readouterr().err
    assert shown(err) == sorted(shown(err))
    assert err.count("100%") == 1
    assert Bar.current() is None


def test_a_fit_that_fails_leaves_no_bar(iris, capfd):
    X, y = iris
    with pytest.raises(ValueError, match="structure"):
        NestedDichotomyClassifier(structure="nonsense", verbose=1).fit(X, y)
    assert Bar.current() is None
    assert "100%" not in capfd.readouterr().err
