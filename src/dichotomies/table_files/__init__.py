"""Users' files: reading CSV, Parquet, svmlight and NPZ, models of tables, writing predictions."""

from dichotomies.table_files.base import TableFile
from dichotomies.table_files.errors import TableFileError
from dichotomies.table_files.files import FORMATS, format_of, open_table
from dichotomies.table_files.model import TableModel, allows_missing
from dichotomies.table_files.table import Columns, Table
from dichotomies.table_files.text import NGRAMS, TextFeatures
from dichotomies.table_files.writing import STDOUT, open_writer

__all__ = [
    "FORMATS",
    "NGRAMS",
    "STDOUT",
    "Columns",
    "Table",
    "TableFile",
    "TableFileError",
    "TableModel",
    "TextFeatures",
    "allows_missing",
    "format_of",
    "open_table",
    "open_writer",
]
