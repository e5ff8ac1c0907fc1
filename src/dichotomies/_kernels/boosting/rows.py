"""Rows of a node, dense or sparse: one name for what both can do."""

from dichotomies._kernels.boosting.local_rows import (
    Bins,
    LocalRows,
    add_local_rows,
    global_code,
    local_row_keys,
    local_rows,
    write_local_bins,
    write_local_codes,
)
from dichotomies._kernels.boosting.sparse_rows import (
    SparseBins,
    SparseRows,
    add_sparse_rows,
    local_sparse_rows,
    sparse_global_code,
    sparse_row_keys,
    write_sparse_bins,
    write_sparse_codes,
)
from dichotomies._kernels.compile import by_type

rows_of_node = by_type({Bins: local_rows, SparseBins: local_sparse_rows})
code_of_row = by_type({Bins: global_code, SparseBins: sparse_global_code})
write_codes = by_type({Bins: write_local_codes, SparseBins: write_sparse_codes})
add_amounts = by_type({LocalRows: add_local_rows, SparseRows: add_sparse_rows})
write_bins = by_type({LocalRows: write_local_bins, SparseRows: write_sparse_bins})
write_row_keys = by_type({LocalRows: local_row_keys, SparseRows: sparse_row_keys})
