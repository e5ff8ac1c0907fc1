"""Whatever the arguments: a sentence, or finite probabilities that sum to 1."""

import pytest

from tests.fuzzing import Caller


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_give_probabilities_or_a_sentence(seed):
    found = Caller(seed).make(300)
    assert found.wrong == []
    assert found.answers > 50
    assert found.refusals > 50
