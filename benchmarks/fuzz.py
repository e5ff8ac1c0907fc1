"""Coverage-guided fuzzing of the parsers: files of data, and model files with a correct checksum.

``python -m benchmarks.fuzz --parser csv --seconds 600``; needs atheris (``pip install atheris``). Every input
is either read or refused by a documented exception with a sentence. Anything else stops the run, and the
input is kept in the corpus.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_SEEDS = {
    "csv": [b"a,b,y\n1,x,u\n2.5,z,v\n", b"a;b;y\n1,5;2020-01-01;u\n;x;v\n", b'"a b","c",y\n"1\n2","""",u\n'],
    "tsv": [b"a\tb\ty\n1\tx\tu\n2\tz\tv\n"],
    "svmlight": [b"1 1:0.5 3:2\n2 2:1e3 # note\n", b"-1 qid:1 4:1\n+1 1:nan\n"],
}
PARSERS = (*_SEEDS, "npz", "parquet", "model")


def seeds(parser: str, folder: Path) -> list[bytes]:
    """Return small valid files."""
    import numpy as np

    path = folder / f"seed.{parser}"
    if parser == "npz":
        np.savez(path, X=np.eye(3), y=np.arange(3))
    elif parser == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"a": [1.0, None], "b": ["x", "z"], "y": ["u", "v"]}), path)
    elif parser == "model":
        from tests.persistence.models import ESTIMATORS, model

        found = []
        for name in [each for each in ESTIMATORS if not each.startswith("clones")][:4]:
            model(name).save(path)
            found.append(path.read_bytes())
        return found
    else:
        return _SEEDS[parser]
    return [path.read_bytes()]


def target(parser: str, folder: Path) -> Callable[[bytes], None]:
    """Return a function that reads bytes as a file; it raises if anything undocumented happens."""
    from dichotomies import load
    from dichotomies.persistence import ModelFileError
    from dichotomies.tables import Columns, TableFileError, open_table

    path = folder / f"input.{parser}"

    def read(data: bytes) -> None:
        path.write_bytes(_sealed(data) if parser == "model" else data)
        try:
            if parser == "model":
                load(path)
            else:
                table = open_table(path)
                columns = Columns(label="y") if parser in ("csv", "tsv", "parquet") else Columns()
                table.read(table.with_roles(columns))
        except (TableFileError, ModelFileError) as refusal:
            if not str(refusal).strip():
                raise AssertionError("an exception without a sentence") from refusal

    return read


def _sealed(data: bytes) -> bytes:
    """Correct the checksum, so that what is behind it is tested."""
    import re
    from hashlib import sha256

    found = re.search(rb'\\"sha256\\": ?\\"([0-9a-f]{64})', data[:100_000])
    if found is None:
        return data
    start, stop = found.span(1)
    blank = data[:start] + b"0" * 64 + data[stop:]
    return data[:start] + sha256(blank).hexdigest().encode() + data[stop:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parser", choices=PARSERS, default="csv")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="folder to keep inputs in that reach new code")
    options = parser.parse_args()
    try:
        import atheris
    except ImportError:
        raise SystemExit("Fuzzing needs atheris: pip install atheris") from None
    with atheris.instrument_imports(include=["dichotomies.tables", "dichotomies.persistence"]):
        import dichotomies.persistence
        import dichotomies.tables  # noqa: F401
    folder = Path(tempfile.mkdtemp())
    read: Any = target(options.parser, folder)
    corpus = options.corpus or folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds(options.parser, folder)):
        read(seed)
        (corpus / f"seed-{i}").write_bytes(seed)
    limits = [
        f"-max_total_time={options.seconds}",
        "-max_len=65536",
        "-timeout=60",
        "-len_control=0",
        "-rss_limit_mb=4096",
    ]
    atheris.Setup([sys.argv[0], str(corpus), f"-artifact_prefix={corpus}/found-", *limits], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
