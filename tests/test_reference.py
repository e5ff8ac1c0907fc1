"""Every public class, function and parameter is documented."""

import inspect
import re
from enum import Enum
from importlib.util import find_spec

import pytest

import dichotomies
from docs.site.public import SECTIONS, kind_of

PUBLIC = {
    f"{section.module}.{name}": section.value(name)
    for section in SECTIONS
    if section.module != "dichotomies.plots" or find_spec("matplotlib")
    for name in section.names()
    if kind_of(section.value(name)) != "constant"
}
METHODS = {
    method.__qualname__: [method, *(vars(base)[name] for base in value.__mro__ if name in vars(base))]
    for value in PUBLIC.values()
    if inspect.isclass(value)
    for name, method in inspect.getmembers(value, inspect.isroutine)
    if not name.startswith("_") and str(getattr(method, "__module__", "")).startswith("dichotomies.")
}
_SECTION = r"^{}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}\n|\Z)"


def documented(docs):
    """Names in the sections of parameters and attributes, and names in the text that stand in backticks."""
    for heading in ("Parameters", "Attributes"):
        for section in re.findall(_SECTION.format(heading), docs, flags=re.MULTILINE | re.DOTALL):
            for line in re.findall(r"^\S.*", section, flags=re.MULTILINE):
                yield from (name.strip("* ") for name in line.split(" : ")[0].split(","))
    yield from re.findall(r"`\*{0,2}([A-Za-z_]\w*)", docs)


def parameters(value):
    if inspect.isclass(value) and issubclass(value, BaseException | Enum):
        return []
    if getattr(value, "_is_protocol", False) or _has_the_constructor_of_scikit_learn(value):
        return []
    return [
        name
        for name in inspect.signature(value).parameters
        if name not in ("self", "cls") and not name.startswith("_")
    ]


def _has_the_constructor_of_scikit_learn(value):
    return inspect.isclass(value) and str(inspect.getmodule(value.__init__)).startswith("<module 'sklearn.")


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_and_parameter_is_documented(name):
    docs = inspect.getdoc(PUBLIC[name])
    assert docs
    assert set(parameters(PUBLIC[name])) <= set(documented(docs))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_and_its_parameters_are_documented_there_or_where_they_are_inherited_from(name):
    docs = [inspect.getdoc(method) or "" for method in METHODS[name]]
    assert docs[0]
    assert set(parameters(METHODS[name][0])) <= {each for text in docs for each in documented(text)}


@pytest.mark.parametrize("name", [name for name in dichotomies.__all__ if not name.startswith("_")])
def test_what_users_construct_has_an_example(name):
    assert ">>> " in inspect.getdoc(getattr(dichotomies, name))


def test_every_module_that_the_package_lists_is_in_the_reference():
    listed = {section.module.removeprefix("dichotomies.").partition(".")[0] for section in SECTIONS}
    assert set(dichotomies._MODULES) <= listed
