"""Whoever watches a run learns how far it is, how long it may take and what failed."""

from io import StringIO

import pytest
from rich.console import Console

from experiments.running import progress
from experiments.running.progress import Account, BarWatcher, LineWatcher


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_time_left_is_shared_by_the_processes(clock, make_result):
    results = [make_result(seconds=10.0, fold=fold) for fold in range(9)]
    account = Account(results[:1], n_jobs=2)
    account.begin([result.trial for result in results[1:]])
    assert account.seconds_left() == 8 * 10 / 2
    clock.now = 5.0
    account.finished(results[1])
    assert account.seconds_left() == 7 * 10 / 2


def test_a_slow_machine_is_taken_into_account(clock, make_result):
    results = [make_result(seconds=10.0, fold=fold) for fold in range(3)]
    account = Account([], n_jobs=1)
    account.begin([result.trial for result in results])
    assert account.seconds_left() is None
    clock.now = 30.0  # for ten seconds of processor time
    account.finished(results[0])
    assert account.seconds_left() == 2 * 30


def test_lines_come_every_so_often_and_at_the_end(clock, make_result):
    results = [make_result(fold=fold) for fold in range(4)]
    page = StringIO()
    watcher = LineWatcher(Account([], 1), page, every=60.0)
    watcher.begin([result.trial for result in results])
    for result, clock.now in zip(results, (10.0, 61.0, 62.0, 63.0), strict=True):
        watcher.finished(result)
    assert [line.split(",")[0] for line in page.getvalue().splitlines()] == [
        "[dichotomies] 0 of 4 trials",
        "[dichotomies] 2 of 4 trials",
        "[dichotomies] 4 of 4 trials",
    ]


@pytest.mark.parametrize("kind", ["lines", "bar"])
def test_a_failure_is_told_in_full(kind, make_result):
    page, result = StringIO(), make_result()
    account = Account([], 1)
    console = Console(file=page, force_terminal=True, width=200)
    with LineWatcher(account, page) if kind == "lines" else BarWatcher(account, console) as watcher:
        watcher.begin([result.trial])
        watcher.failed(result.trial, "[the reason]")
    expected = "failed: letter, naive_bayes, none, as-numbers-imply, repeat 0, fold 0: [the reason]"
    assert expected in page.getvalue()
    assert str(account) == "1 of 1 trials, 1 failed, time left not known yet"


def test_the_bar_says_how_far_it_is(make_result):
    page, results = StringIO(), [make_result(fold=fold) for fold in range(3)]
    with BarWatcher(Account([], 1), Console(file=page, force_terminal=True, width=120)) as watcher:
        watcher.begin([result.trial for result in results])
        watcher.finished(results[0])
    assert "1 of 3 trials, about 4 s left; letter, naive_bayes" in page.getvalue()
