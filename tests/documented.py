"""Tables of the documentation, which tests compare with the code."""

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def documented(page, column):
    """Rows, by name, of the table on a page that has names and this column."""
    for table in re.findall(r"(?:^\|.*\n)+", (DOCS / page).read_text(), re.MULTILINE):
        lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
        header, _, *rows = lines
        if header[0] == "name" and column in header:
            return {
                name: dict(zip(header, row, strict=True))
                for row in rows
                for name in row[0][1:-1].split("`, `")
            }
    raise LookupError(f"docs/{page} has no table with the columns name and {column}")
