"""Doctests are those of the pages; the gallery and the configuration are run by `make docs`."""

collect_ignore = ["conf.py", "_build"]
collect_ignore_glob = ["gallery/*", "examples/*", "reference/*", "site/*"]
