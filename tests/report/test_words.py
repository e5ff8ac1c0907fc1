"""Numbers and names as people read them."""

import numpy as np
import pytest

from dichotomies.report.page import LONGEST_NAME, count, name_of, percent, plural


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.8, "80"), (1.0, "100"), (0.0, "0"), (0.997, "99.7"), (0.002, "0.2")],
)
def test_percent_keeps_0_and_100_for_what_is_exactly_that(share, text):
    assert percent(share) == f"{text}\u00a0%"


def test_shares_that_are_almost_0_or_1_and_none_are_said_to_be_so():
    shown = [percent(share).replace("\u00a0", " ") for share in (0.9999999, 1e-12, np.nan)]
    assert shown == ["over 99.999 %", "under 0.001 %", "–"]


def test_counts_may_be_weights():
    assert [count(n) for n in (1234, 1234.0, 0.25)] == ["1,234", "1,234", "0.2"]
    assert [plural(n, "row", "rows") for n in (1, 2)] == ["1 row", "2 rows"]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("cat", "cat"),
        (np.int64(3), "3"),
        (np.True_, "True"),
        ("", "''"),
        ("  ", "'  '"),
        ("½ 日本", "½ 日本"),
    ],
)
def test_every_label_has_a_visible_name(label, name):
    assert name_of(label) == name


def test_names_are_cut_and_can_be_written():
    assert len(name_of("x" * 10_000)) == LONGEST_NAME
    assert name_of("half \ud83d a pair").encode("utf-8")
