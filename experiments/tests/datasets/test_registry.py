"""The registry agrees with the data folder, with the published texts and with the documentation."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.feature_extraction.text import CountVectorizer

from experiments.datasets import DATASETS

PAGE = Path(__file__).parents[3] / "experiments" / "datasets" / "README.md"
PAPERS = ("optdigits", "micromass", "letter", "devanagari", "rcv1", "sector", "aloi", "ilsvr2010", "odp5k")
IN_THE_FOLDER = sorted({*DATASETS.names()} - {"devanagari", "rcv1", "sector", "aloi", "ilsvr2010", "odp5k"})


def test_the_papers_nine_are_there():
    assert {name for name in DATASETS.names() if "the paper's own" in DATASETS.get(name).paper} == {*PAPERS}


@pytest.mark.parametrize("name", DATASETS.names())
def test_every_dataset_is_described(name):
    source = DATASETS.create(name)
    for said in (source.title, source.paper, source.licence, source.reference):
        assert said
        assert "\n" not in said
    assert source.by_hand or all(file.url for file in source.files)
    assert (source.kind == "sparse") == bool(source.values)
    assert bool(source.split_note) or source.evaluation == "cross-validation"
    for file in source.files:
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_THE_FOLDER)
def test_the_data_folder_has_the_sizes_of_the_registry(real_data, name):
    data, source = real_data(name), DATASETS.create(name)
    assert (*data.X.shape, len(np.unique(data.y))) == (source.rows, source.features, source.classes)
    assert issparse(data.X) == (source.kind == "sparse")


#: Published texts, the first or so of each, by row of the dataset.
EXCERPTS = {
    "clinc150": {
        0: "what expression would i use to say i love you if i were an italian",
        4: "if i were mongolian, how would i say that i am a tourist",
        8: "can you tell me how i would say, 'more bread please' in french",
    },
    "reuters52": {
        1: "CHAMPION PRODUCTS <CH> APPROVES STOCK SPLIT Champion Products Inc said its board of directors "
        "approved a two-for-one stock split of its common shares for shareholders of record as of April 1, "
        "1987. The company also said its board voted to recommend to shareholders at the annual meeting "
        "April 23 an increase in the authorized capital stock from five mln to 25 mln shares. Reuter",
    },
    "onet_titles": {
        0: "Aeronautics Commission Director",
        8: "Chief Diversity Officer (CDO)",
        10: "Chief Executives",
    },
}


@pytest.mark.parametrize("name", EXCERPTS)
def test_published_texts_are_counted_as_in_the_data_folder(real_data, name):
    data = real_data(name)
    counter = CountVectorizer(vocabulary=data.extra["vocab"], **DATASETS.get(name).counting)
    for row, text in EXCERPTS[name].items():
        assert csr_array(counter.transform([text])).toarray().tolist() == data.X[[row]].toarray().tolist()


def what_it_is(name, source):
    size = f"{source.rows:,} x {source.features:,}" if source.rows else "as built"
    return f"`{name}`", source.title, source.kind, size, f"{source.classes:,}", source.paper


def where_it_is_tested(name, source):
    evaluation = "10 x 10-fold" if source.evaluation == "cross-validation" else source.evaluation
    return f"`{name}`", evaluation, source.split_note or "at random"


def whose_it_is(name, source):
    places = sorted({file.url.rpartition("/")[0] for file in source.files if file.url})
    return f"`{name}`", source.licence, source.reference, source.by_hand or f"<{places[0]}>"


def test_the_documentation_says_of_every_dataset_what_the_registry_says():
    order = [*PAPERS, *(name for name in DATASETS.names() if name not in PAPERS)]
    expected = [
        f"| {' | '.join(cells(name, DATASETS.create(name)))} |"
        for cells in (what_it_is, where_it_is_tested, whose_it_is)
        for name in order
    ]
    assert [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")] == expected
