"""Users' table files: reading CSV, Parquet, svmlight and NPZ, models of tables, writing predictions."""

from dichotomies.tables.batches import arrow_batches, fit_to_files, parquet_batches
from dichotomies.tables.dates import DateFeatures
from dichotomies.tables.dialect import Dialect
from dichotomies.tables.encoders import NGRAMS, CategoryFeatures, NumberFeatures, TextFeatures
from dichotomies.tables.errors import TableFileError
from dichotomies.tables.formats import FORMATS, STDOUT, format_of, open_table, open_writer
from dichotomies.tables.model import TableModel, allows_missing
from dichotomies.tables.table import Columns, Table, TableFile

__all__ = [
    "FORMATS",
    "NGRAMS",
    "STDOUT",
    "CategoryFeatures",
    "Columns",
    "DateFeatures",
    "Dialect",
    "NumberFeatures",
    "Table",
    "TableFile",
    "TableFileError",
    "TableModel",
    "TextFeatures",
    "allows_missing",
    "arrow_batches",
    "fit_to_files",
    "format_of",
    "open_table",
    "open_writer",
    "parquet_batches",
]
