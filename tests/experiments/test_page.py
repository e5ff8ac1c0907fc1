"""Only what stands between the marks of a page is replaced."""

import pytest

from dichotomies.experiments.page import regions, updated

PAGE = """# Title
<!-- table: one -->
old
<!-- end -->
between
<!-- table: two -->

kept
<!-- end -->
"""


def test_named_regions_are_replaced_and_the_rest_is_kept():
    made = updated(PAGE, {"one": "| new |\n", "three": "unused"})
    assert made == PAGE.replace("old\n", "\n| new |\n\n")
    assert regions(made) == ["one", "two"]


def test_replacing_twice_is_replacing_once():
    once = updated(PAGE, {"one": "a", "two": "b"})
    assert updated(once, {"one": "a", "two": "b"}) == once


@pytest.mark.parametrize("page", ["<!-- table: one -->\n", PAGE.replace("<!-- end -->\nbetween", "between")])
def test_a_region_without_an_end_is_an_error(page):
    with pytest.raises(ValueError, match="'one' has no line '<!-- end -->'"):
        updated(page, {"one": "new"})
