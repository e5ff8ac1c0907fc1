"""Only what stands between the marks of a page is replaced."""

import pytest

from experiments.pages.regions import region_names, updated

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
    assert region_names(made) == ["one", "two"]


def test_replacing_twice_is_replacing_once():
    once = updated(PAGE, {"one": "a", "two": "b"})
    assert updated(once, {"one": "a", "two": "b"}) == once


def test_line_ends_and_a_missing_last_one_stay_as_they_are():
    page = "a\r\n<!-- table: one -->\r\nold\r\n<!-- end -->\r\nb\n\x0cc\u2028d"
    assert updated(page, {}) == page
    assert updated(page, {"one": "x\ny\n"}) == page.replace("old\r\n", "\r\nx\r\ny\r\n\r\n")
    ends_with_the_mark = "<!-- table: one -->\n<!-- end -->"
    assert updated(ends_with_the_mark, {"one": "x"}) == "<!-- table: one -->\n\nx\n\n<!-- end -->"


@pytest.mark.parametrize("page", ["<!-- table: one -->\n", PAGE.replace("<!-- end -->\nbetween", "between")])
def test_a_region_without_an_end_is_an_error(page):
    with pytest.raises(ValueError, match="'one' has no line '<!-- end -->'"):
        updated(page, {"one": "new"})
