"""The page: self-contained, safe to put any text into, written whole or not at all."""

import hashlib
import json
import re
import sys
from importlib import resources
from pathlib import Path

import pytest

from dichotomies.report import make
from dichotomies.report.page import as_json
from tests.report.conftest import CREATED, HOSTILE


def test_nothing_is_loaded_from_elsewhere(digits_report):
    without_library = digits_report.html.replace(_vendored("echarts.min.js"), "")
    assert re.findall(r"https?://|@import|url\(", without_library) == []
    assert re.findall(r"<(?:link|img|iframe)\b", without_library) == []
    assert "default-src &#39;none&#39;; script-src &#39;sha256-" in digits_report.html


def test_same_rows_same_page(digits_clf, digits_report):
    clf, X, y = digits_clf
    again = make(clf, X, y, examples=[f"image {i}" for i in range(len(y))], created=CREATED)
    assert again.html == digits_report.html


def test_hostile_labels_are_escaped(hostile_report):
    assert "<script>window.hacked" not in hostile_report.html
    assert "<img" not in hostile_report.html.replace(_vendored("echarts.min.js"), "")
    assert "<b onclick" not in hostile_report.html
    assert hostile_report.html.count("</script>") == 4


@pytest.mark.parametrize("text", HOSTILE)
def test_json_in_a_script_element_round_trips_and_cannot_end_it(text):
    written = as_json({"name": text, "value": None})
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {"name": text, "value": None}


def test_save_returns_the_path_and_replaces_what_was_there(digits_report, tmp_path):
    target = tmp_path / "report.html"
    target.write_text("old", encoding="utf-8")
    assert digits_report.save(str(target)) == target
    assert target.read_text(encoding="utf-8") == digits_report.html
    assert list(tmp_path.iterdir()) == [target]
    assert target.stat().st_mode & 0o777 == _mode_of_a_new_file(tmp_path)


def test_failed_save_leaves_the_old_file(digits_report, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old", encoding="utf-8")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        digits_report.save(target)
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_repr_says_what_it_is(digits_report):
    assert re.fullmatch(r"<Report: 10 classes · 897 rows, 1\.\d MB; save.*>", repr(digits_report))


def test_frame_carries_the_whole_page(digits_report):
    frame = digits_report._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert frame.count("<") == 2


def test_missing_jinja2_names_the_extra(digits_clf, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'dichotomies[report]'")):
        make(*digits_clf)


def test_drawing_library_is_the_published_file():
    digest = hashlib.sha256(_vendored("echarts.min.js").encode()).hexdigest()
    assert digest in _vendored("README.md")


def _vendored(name):
    return resources.files("dichotomies.report").joinpath("vendor", name).read_text(encoding="utf-8")


def _mode_of_a_new_file(folder):
    made = folder / "new"
    made.touch()
    return made.stat().st_mode & 0o777


def test_places_that_cannot_hold_a_file_are_named(digits_report, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*missing to save"):
        digits_report.save(tmp_path / "missing" / "report.html")
    with pytest.raises(IsADirectoryError, match="is a folder; give the path of a file"):
        digits_report.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
