"""A node of a tree while the tree is grown."""

from typing import Any

import numpy as np

from dichotomies._kernels.compile import kernel

#: Its split: local feature, -1 for none; last nonempty local bin on the left, next one on
#: the right; whether missing values go left; set of categories that go left. Its `score`, and the `least`
#: that it had to beat. Rows: ``order[begin:end]``, from `middle` on the positive ones (Gini) or those not
#: drawn (Newton); their number with those of other members of a team, `n_rows`. The first two amounts, summed
#: over all of them (`first`, `second`) and over those left of the split. `depth`; number as a `leaf` (the
#: left child of a split keeps it, the right one of split s has s + 1); `slot` of the histogram; left `child`,
#: which the right one follows; -1 for none. `key`: number in a heap, which the order of features depends on.
#: `is_open`: it may be split. Lists kept here, by position: the nodes that are split, in that order
#: (`split`), and the unused slots of histograms (`free`).
NODE = np.dtype(
    [
        *((name, "i8") for name in ("feature", "last_bin", "next_bin")),
        ("missing_left", "?"),
        ("is_open", "?"),
        ("bits", "u8", (4,)),
        *((name, "f8") for name in ("score", "least")),
        *((name, "i8") for name in ("begin", "middle", "end", "n_rows")),
        *((name, "i8") for name in ("first", "second", "first_left", "second_left")),
        *((name, "i8") for name in ("depth", "leaf", "slot", "child", "key", "split", "free")),
    ],
    align=True,
)


@kernel
def copy_split(source: Any, target: Any) -> None:
    """Copy the split that was found for a node."""
    target["feature"], target["score"] = source["feature"], source["score"]
    target["last_bin"], target["next_bin"] = source["last_bin"], source["next_bin"]
    target["missing_left"] = source["missing_left"]
    target["first_left"], target["second_left"] = source["first_left"], source["second_left"]
    bits, of_source = target["bits"], source["bits"]
    for i in range(4):
        bits[i] = of_source[i]
