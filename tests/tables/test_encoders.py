"""Columns become features: numbers without gaps, categories as zeros and ones, dates on scales."""

from datetime import UTC, datetime

import numpy as np
import pytest

from dichotomies.tables import CategoryFeatures, DateFeatures, NumberFeatures, TableFileError
from dichotomies.tables.encoders import MAX_CATEGORIES


@pytest.mark.parametrize("scaled", [True, False])
def test_weight_two_is_a_row_twice(scaled):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(41, 3)).round(2)
    X[rng.random(X.shape) < 0.2] = np.nan
    times = rng.integers(0, 4, size=41)
    weighted = NumberFeatures.fit(X, times.astype(float), scaled=scaled)
    repeated = NumberFeatures.fit(np.repeat(X, times, axis=0), scaled=scaled)
    np.testing.assert_allclose(weighted.fill, repeated.fill, rtol=1e-12)
    np.testing.assert_allclose(weighted.scale, repeated.scale, rtol=1e-12)


def test_columns_without_values_or_of_one_value_are_finite():
    X = np.array([[np.nan, 7.0], [np.nan, 7.0]])
    features = NumberFeatures.fit(X)
    assert features.matrix(X).tolist() == [[0, 7, 1], [0, 7, 1]]
    assert features.matrix(np.array([[3.0, np.nan]])).tolist() == [[3, 7, 0]]


def test_rare_and_new_categories_share_the_last_feature():
    features = CategoryFeatures.fit("c", ["a", "a", " b", "b ", "rare", ""])
    assert features.categories.tolist() == ["a", "b"]
    assert features.matrix(["a", "b", "rare", "new", ""]).toarray().argmax(axis=1).tolist() == [0, 1, 2, 2, 2]


def test_no_more_than_the_most_frequent_categories_have_features():
    texts = [f"c{i}" for i in range(MAX_CATEGORIES + 5) for _ in range(2)] + ["often"] * 3
    features = CategoryFeatures.fit("c", texts)
    assert features.n_features == MAX_CATEGORIES + 1
    assert "often" in features.categories


@pytest.mark.parametrize(
    ("written", "format"),
    [
        ("2024-03-05", "year-month-day"),
        ("2024-03-05T07:08:09", "year-month-day"),
        ("2024-03-05 07:08:09.123456", "year-month-day"),
        ("2024-03-05T07:08:09+02:00", "year-month-day"),
        ("05.03.2024", "day.month.year"),
        ("5.3.2024 07:08", "day.month.year hour:minute"),
        ("25/03/2024", "day/month/year"),
        ("03/25/2024", "month/day/year"),
        ("2024/03/05", "year/month/day"),
    ],
)
def test_dates_are_read_as_they_are_written(written, format):  # noqa: A002
    assert DateFeatures.fit("d", [written, "", "NA"]).format == format


def test_features_of_dates_are_their_place_in_time_year_week_and_day():
    moments = [datetime(2024, 3, 5, 6, tzinfo=UTC), datetime(2025, 7, 1, 18, tzinfo=UTC)]
    texts = [moment.isoformat() for moment in moments]
    found = DateFeatures.fit("d", texts).matrix([*texts, ""]).toarray()
    np.testing.assert_allclose(found[:, 0], [-1, 1, 0])
    np.testing.assert_allclose(found[:2, 5:7], [[1, 0], [-1, 0]], atol=1e-9)  # six o'clock and eighteen
    weekday = np.array(
        [2 * np.pi * ((moment.weekday() + 4) % 7 + moment.hour / 24) / 7 for moment in moments]
    )
    np.testing.assert_allclose(found[:2, 3], np.sin(weekday), atol=1e-9)  # the first of 1970 was a Thursday
    assert found[:, -1].tolist() == [0, 0, 1]


def test_what_is_no_date_is_refused_in_a_sentence():
    with pytest.raises(TableFileError, match="'d' cannot be read as dates"):
        DateFeatures.fit("d", ["2024-03-05", "someday soon"])
    features = DateFeatures.fit("d", ["2024-03-05", "2024-03-06"])
    with pytest.raises(TableFileError, match=r"has '05\.03\.2024' where .* written as year-month-day"):
        features.matrix(["2024-03-05", "05.03.2024"])
