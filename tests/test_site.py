"""The machinery of the documentation site: its link checker, its inventories, the pages of its reference."""

import zlib

from docs.site.inventories import INVENTORIES
from docs.site.links import broken_links
from docs.site.public import SECTIONS
from docs.site.reference import page, write_reference
from tests.documented import DOCS


def test_links_inside_the_site_must_lead_to_a_file_and_an_anchor(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "picture.png").touch()
    (tmp_path / "folder" / "other.html").write_text(
        '<h1 id="title">Other</h1> <a href="../start.html#top">up</a>'
    )
    (tmp_path / "start.html").write_text(
        '<a href="folder/other.html#title">right</a> <a href="https://example.org/nowhere">elsewhere</a>'
        '<img src="picture.png"> <img src="lost.png"> <a href="#lost">here</a>'
        '<a href="folder/other.html#lost">anchor</a> <a href="folder/lost.html">page</a>'
    )
    assert broken_links(tmp_path) == [
        "start.html: #lost",
        "start.html: folder/lost.html",
        "start.html: folder/other.html#lost",
        "start.html: lost.png",
    ]


def test_inventories_are_in_the_format_of_sphinx(tmp_path):
    for inventory in INVENTORIES:
        head, _, body = inventory.write(tmp_path).read_bytes().partition(b"zlib.\n")
        assert head.startswith(b"# Sphinx inventory version 2\n# Project: " + inventory.project.encode())
        lines = zlib.decompress(body).decode().splitlines()
        assert len(lines) == len(set(lines)) == len(inventory.lines())
        assert all(len(line.split(" ", 4)) == 5 for line in lines)


def test_the_reference_has_a_page_for_each_module_and_a_line_for_each_name(tmp_path):
    write_reference(tmp_path)
    for section in SECTIONS:
        text = (tmp_path / f"{section.module}.rst").read_text()
        assert text == page(section)
        assert all(name in text.split() for name in section.names())
        assert (DOCS / f"{section.page}.md").is_file()
        assert f"   {section.module}\n" in (tmp_path / "index.rst").read_text()
