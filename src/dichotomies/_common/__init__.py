"""Utilities shared by all packages: array types, registries, parallel loops, files."""

#: Folder of the documentation that representations of estimators link to.
DOCS = "https://github.com/dichotomies/dichotomies/blob/main/docs/"
