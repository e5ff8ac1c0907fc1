"""Type aliases of arrays."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.intp]
FloatArray: TypeAlias = npt.NDArray[np.float64]
SingleArray: TypeAlias = npt.NDArray[np.float32]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

#: Labels of any kind scikit-learn accepts: strings, integers, booleans.
LabelArray: TypeAlias = npt.NDArray[Any]

#: A dense array or a CSR matrix of shape (n_rows, n_features).
Matrix: TypeAlias = Any
