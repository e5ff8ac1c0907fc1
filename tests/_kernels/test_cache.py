"""Whatever the state of the disk, kernels are compiled at worst once more, and answers are the same."""

import os
import subprocess
import sys

import pytest

#: Calls a kernel that calls others, and prints how many were compiled.
SCRIPT = """
import numpy as np
from dichotomies._kernels.isotonic import deal_folds
for _ in range(2):
    out = np.empty(3, np.intp)
    deal_folds(np.array([True, False, True]), np.ones(3), np.array([0, 3]), 2, out)
    assert sorted(out[[0, 2]]) == [0, 1]
from dichotomies._kernels.dispatch import compiled_so_far
print(len(compiled_so_far()))
"""


def _compiled(folder):
    """Signatures that a new process compiles for one small kernel, and what it says on stderr."""
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return int(process.stdout), process.stderr


def test_a_second_process_compiles_nothing(tmp_path):
    assert _compiled(tmp_path)[0] == 1
    assert _compiled(tmp_path) == (0, "")


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "junk": lambda content: os.urandom(len(content)),
    "zeros": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_costs_a_compilation(tmp_path, damage, ending):
    _compiled(tmp_path)
    [file] = tmp_path.rglob(f"*.{ending}")
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert _compiled(tmp_path)[1].count("RuntimeWarning: Compiled kernels cannot be kept") == 1


def test_a_folder_that_cannot_be_made_is_no_obstacle(tmp_path):
    (tmp_path / "file").write_text("in the way")
    _compiled(tmp_path / "file")


def test_a_read_only_folder_is_read(tmp_path, monkeypatch):
    _compiled(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(f"{__name__}.SCRIPT", "import os; os.access = lambda *_: False\n" + SCRIPT)
    assert _compiled(tmp_path) == (0, "")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_is_no_obstacle(tmp_path):
    """The folder takes an empty file, which numba tries, but no contents."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    limit += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    process = subprocess.run(
        [sys.executable, "-B", "-c", limit + SCRIPT],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("RuntimeWarning: Compiled kernels cannot be kept") == 1


def test_kernels_of_other_sources_are_not_used(tmp_path, monkeypatch):
    """Numba looks at the file of a kernel alone, but kernels call one another across files."""
    _compiled(tmp_path)
    other = "from dichotomies._kernels import dispatch; dispatch._sources = lambda: 'other'\n"
    monkeypatch.setattr(f"{__name__}.SCRIPT", other + SCRIPT)
    assert _compiled(tmp_path) == (1, "")


def test_processes_that_start_at_once_do_not_disturb_one_another(tmp_path):
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": variables}
    processes = [subprocess.Popen([sys.executable, "-c", SCRIPT], **pipe) for _ in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=600)
        assert (process.returncode, errors) == (0, "")
    assert _compiled(tmp_path)[0] == 0
