"""Parameters of tests that take long."""

import pytest


def slow(*values):
    """Each value, or tuple of values of several arguments, as a case that `make test-quick` leaves out."""
    cases = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*case, marks=pytest.mark.slow) for case in cases]
