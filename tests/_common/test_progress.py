"""One bar over all stages of a call says what is being done, and the fraction of it that is done."""

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


def work(clock, stage, steps=4):
    Bar.stage(stage)
    for i in range(steps):
        clock.now += 1
        Bar.current().show((i + 1) / steps)


def test_stages_are_named_with_the_fraction_done_and_the_end_with_its_time(clock, capfd):
    with Bar.over("all"):
        work(clock, "read")
        assert re.findall(r"read: +(\d+)%", capfd.readouterr().err) == ["25", "50", "75", "99"]
        work(clock, "train")
    assert capfd.readouterr().err.endswith("[dichotomies] all: 100%, took 8.0 s\n")


def test_blocks_inside_are_stages_of_the_same_bar(clock, capfd):
    with Bar.over("outer"):
        work(clock, "read")
        with Bar.over("inner"):
            work(clock, "train")
            clock.now += 1
            Context(verbose=True).progress("nodes").show(1.0)
    err = capfd.readouterr().err
    assert "inner" not in err
    assert err.count("100%") == 1
    assert Bar.current() is None


def test_parts_of_the_work_divide_their_stage(clock, capfd):
    context = Context(verbose=True).titled("tree 2 of 4: ", 1, 4)
    with Bar.over("all"):
        Bar.stage("train")
        clock.now += 1
        context.progress("fold 1 of 2", 0, 2).show(1.0)
        assert capfd.readouterr().err.endswith("tree 2 of 4: fold 1 of 2:  38%\n")


@pytest.mark.parametrize("estimator", [NestedDichotomyClassifier, NestedDichotomyEnsemble])
def test_a_fit_has_one_bar(estimator, iris, capfd):
    estimator(random_state=0, verbose=1).fit(*iris)
    assert capfd.readouterr().err.count("100%") == 1
    assert Bar.current() is None


def test_a_fit_that_fails_leaves_no_bar(iris, capfd):
    X, y = iris
    with pytest.raises(ValueError, match="structure"):
        NestedDichotomyClassifier(structure="nonsense", verbose=1).fit(X, y)
    assert Bar.current() is None
    assert "100%" not in capfd.readouterr().err
