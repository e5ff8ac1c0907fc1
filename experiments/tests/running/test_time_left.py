"""The time that is left is judged by the trials most like those that are left."""

from dataclasses import replace

from experiments.running.time_left import TimeLeft, kind_of
from experiments.tests.conftest import TRIAL


def test_before_the_first_like_trial_the_time_is_what_was_thought(make_result):
    time = TimeLeft(prior=lambda kind: 7.0 if kind[0] == "letter" else 8.0)
    assert time.seconds({kind_of(TRIAL): 3}) == 21.0
    time.note(make_result(seconds=1.0, scheme="both_ir"))
    assert time.seconds({kind_of(TRIAL): 3}) == 3.0
    assert time.seconds({kind_of(replace(TRIAL, base="boosted_trees")): 1}) == 7.0


def test_time_left_is_judged_by_the_likest_trials(make_result):
    time = TimeLeft()
    assert time.seconds({kind_of(TRIAL): 3}) is None
    for result in (
        make_result(seconds=10.0),
        make_result(seconds=20.0, fold=1),
        make_result(seconds=3.0, scheme="both_ir"),
        make_result(seconds=999.0, dataset="optdigits"),
    ):
        time.note(result)
    assert time.seconds({kind_of(TRIAL): 2}) == 30.0
    assert time.seconds({kind_of(replace(TRIAL, reading="as-printed")): 1}) == 15.0
    assert time.seconds({kind_of(replace(TRIAL, scheme="internal_ps")): 1}) == 11.0
    assert time.seconds({kind_of(replace(TRIAL, dataset="micromass")): 1}) == (10 + 20 + 3 + 999) / 4
