"""Users' table files: reading CSV, Parquet, svmlight and NPZ, models of tables, writing predictions."""

from dichotomies.tables.base import TableFile
from dichotomies.tables.batches import arrow_batches, fit_to_files, parquet_batches
from dichotomies.tables.categories import CategoryFeatures
from dichotomies.tables.dates import DateFeatures
from dichotomies.tables.dialect import Dialect
from dichotomies.tables.errors import TableFileError
from dichotomies.tables.formats import FORMATS, format_of, open_table
from dichotomies.tables.model import TableModel, allows_missing
from dichotomies.tables.numbers import NumberFeatures
from dichotomies.tables.table import Columns, Table
from dichotomies.tables.text import NGRAMS, TextFeatures
from dichotomies.tables.writing import STDOUT, open_writer

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
