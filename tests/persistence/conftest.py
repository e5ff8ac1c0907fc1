"""Models that have been to a file and back."""

import pytest

from dichotomies import load
from dichotomies.persistence import save


@pytest.fixture
def through_file(tmp_path):
    """Save a model and load it again."""

    def there_and_back(model, **given):
        save(model, tmp_path / "a.model")
        return load(tmp_path / "a.model", **given)

    return there_and_back
