"""Trials run again are equal to the store exactly where their numbers are."""

from dataclasses import replace

import pytest

from experiments.reproduce import recompute
from experiments.reproduce.trial import PaperStore


@pytest.mark.parametrize(("change", "verdict"), [(0.0, "3 of 3 trials"), (1e-9, "0 of 3 trials")])
def test_a_trial_is_equal_if_all_its_numbers_are(change, verdict, monkeypatch, capsys):
    with PaperStore(recompute.STORE, must_exist=True) as store:
        stored = {each.trial: each for each in store.rows()}
    monkeypatch.setattr(
        recompute, "measure", lambda trial: replace(stored[trial], nll=stored[trial].nll + change)
    )
    monkeypatch.setattr("sys.argv", ["recompute", "--trials", "3"])
    recompute.main()
    assert verdict in capsys.readouterr().out
