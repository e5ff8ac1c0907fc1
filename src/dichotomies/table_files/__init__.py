"""Reading users' files: CSV, Parquet, svmlight and NPZ."""
