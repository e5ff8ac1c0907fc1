"""The documentation site: `make docs` builds it offline into docs/_build/html."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]  # for docs.site and experiments

from numpydoc.xref import DEFAULT_LINKS  # noqa: E402

import dichotomies  # noqa: E402
from docs.site.inventories import mapping  # noqa: E402
from docs.site.reference import write_reference  # noqa: E402

os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:1] + os.environ.get("PYTHONPATH", "").split(os.pathsep))
write_reference(HERE / "reference")

project = "dichotomies"
author = "The dichotomies developers"
copyright = "2026, the dichotomies developers"  # noqa: A001
version = release = dichotomies.__version__
_REPOSITORY = "https://github.com/dichotomies/dichotomies"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docs.site.name_links",
]
exclude_patterns = ["_build", "gallery", "site", "figures", "README.md"]
templates_path = ["_templates"]
suppress_warnings = ["toc.not_included", "config.cache"]  # a page that is in no list is still found by search
nitpicky = False

# Pages: Markdown as in the repository. Links to its other files lead to the repository.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# Reference
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings have the types
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {
    "ndarray": "numpy.ndarray",
    "array-like": ":term:`numpy:array_like`",
    "RandomState": "numpy.random.RandomState",
    "Generator": "numpy.random.Generator",
    "ClassTree": "dichotomies.ClassTree",
    "BinaryCalibrator": "dichotomies.calibrators.binary.BinaryCalibrator",
    "MulticlassCalibrator": "dichotomies.calibrators.multiclass.MulticlassCalibrator",
    "LogisticRegression": "sklearn.linear_model.LogisticRegression",
}
numpydoc_xref_ignore = "all"
DEFAULT_LINKS.clear()  # no links on str, int and None
default_role = "literal"
toc_object_entries_show_parents = "hide"
intersphinx_mapping = mapping(HERE / "_build" / "inventories")

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "backreferences_dir": "reference/backreferences",
    "doc_module": ("dichotomies",),
    "reference_url": {"dichotomies": None},
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_memory": False,
    "ignore_repr_types": r"dichotomies\.plots",
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "filename_pattern": os.environ.get("GALLERY", "/plot_"),  # GALLERY=plot_03 runs one, GALLERY=- none
}

# Theme
html_theme = "pydata_sphinx_theme"
html_title = "dichotomies"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_build/extra"]  # the live reports
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "dichotomies"},
    "github_url": _REPOSITORY,
    "show_toc_level": 2,
    "secondary_sidebar_items": {  # none beside wide tables
        "**": ["page-toc"],
        **{page: [] for page in ("index", "choosing", "study", "reproduction")},
    },
    "navigation_with_keys": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "get-started": [], "changelog": []}


#: Pages that are files of the repository's root.
_ROOT_PAGES = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}


def link_to_the_repository(app, docname, source):  # noqa: ARG001
    """Let links to files outside of docs/ lead to the repository, and tidy code blocks."""
    there = f"]({_REPOSITORY}/blob/main/"
    if docname in _ROOT_PAGES:
        text = (HERE.parent / _ROOT_PAGES[docname]).read_text(encoding="utf-8")
        source[0] = re.sub(r"\]\((?!docs/|https:|#)", there, text).replace("](docs/", "](")
    else:
        levels = re.escape("../" * (docname.count("/") + 1))
        source[0] = re.sub(rf"\]\({levels}(?!\.\.)", there, source[0])
    # Doctests end in an empty line, which readers need not see.
    source[0] = re.sub(r"(^```python\n.*?)\n+^```$", r"\1\n```", source[0], flags=re.DOTALL | re.MULTILINE)


def setup(app):
    """Connect the hook above."""
    app.connect("source-read", link_to_the_repository)
