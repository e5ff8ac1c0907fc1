"""Whatever the state of the disk, kernels are compiled at worst once more, and answers are the same."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from dichotomies._kernels import cache, dispatch
from dichotomies._kernels.compile import kernel

SCRIPT = """
import sys
import numpy as np
from dichotomies._kernels.isotonic import pool_violators
from dichotomies._kernels import cache
misses = []
load = cache.KernelCache.load_overload
def counting(self, *arguments):
    found = load(self, *arguments)
    misses.append(found is None)
    return found
cache.KernelCache.load_overload = counting
assert pool_violators(np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0]), np.empty(3, np.intp)) == 2
print(sum(misses))
"""


def _compiled(folder=None, **environment):
    """Signatures that a new process compiles for one small kernel, and what it says on stderr."""
    variables = {**os.environ, **environment}
    if folder is not None:
        variables["NUMBA_CACHE_DIR"] = str(folder)
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=variables, capture_output=True, text=True, check=True, timeout=600
    )
    return int(process.stdout), process.stderr


def test_a_second_process_compiles_nothing(tmp_path):
    assert _compiled(tmp_path)[0] == 1
    assert _compiled(tmp_path) == (0, "")


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "junk": lambda content: os.urandom(len(content)),
    "one bit": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The file of the one kernel that the script compiles, as it should be."""
    folder = tmp_path_factory.mktemp("cache")
    _compiled(folder)
    [file] = folder.rglob("*.nbk")
    return file


def _doubling(folder, monkeypatch):
    """A kernel of a new dispatcher, so that it is sought on disk, with that folder as its cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))

    def double(x, out):
        for i in range(len(x)):
            out[i] = 2 * x[i]

    def run():
        out = np.empty(3)
        kernel(double)(np.arange(3.0), out)
        assert out.tolist() == [0, 2, 4]

    return run


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_compiled_again_and_mended(tmp_path, monkeypatch, damage):
    run = _doubling(tmp_path, monkeypatch)
    run()
    [file] = tmp_path.rglob("*.nbk")
    whole = file.read_bytes()
    file.write_bytes(DAMAGES[damage](whole))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run()
    again = file.read_bytes()
    assert cache.hashlib.sha256(again[32:]).digest() == again[:32]


def test_a_file_that_cannot_be_rebuilt_is_reported_once(tmp_path, monkeypatch):
    run = _doubling(tmp_path, monkeypatch)
    run()
    [file] = tmp_path.rglob("*.nbk")
    content = cache.pickle.dumps(("not", "a", "kernel"))
    file.write_bytes(cache.hashlib.sha256(content).digest() + content)
    cache._warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        run()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), PermissionError(13, "denied")])
def test_a_full_or_unwritable_disk_is_reported_once_and_leaves_nothing_behind(tmp_path, monkeypatch, error):
    run = _doubling(tmp_path, monkeypatch)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(error))
    cache._warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        run()
    run()  # a second warning would be an error
    assert list(tmp_path.rglob("*.*")) == []


def test_a_folder_that_cannot_be_made_is_no_obstacle(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    run = _doubling(tmp_path / "file", monkeypatch)
    cache._warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        run()


def test_a_new_version_takes_the_place_of_the_old(tmp_path, monkeypatch):
    run = _doubling(tmp_path, monkeypatch)
    run()
    [old] = tmp_path.rglob("*.nbk")
    monkeypatch.setattr(cache, "_sources", lambda: "other sources")
    run()
    [new] = tmp_path.rglob("*.nbk")
    assert new != old


def test_a_read_only_cache_is_read(tmp_path, monkeypatch):
    run = _doubling(tmp_path, monkeypatch)
    run()
    monkeypatch.setattr(cache, "_write", lambda *_: pytest.fail("nothing to write"))
    missed = []
    monkeypatch.setattr(dispatch, "_announce", missed.append)
    run()
    assert missed == []


def test_a_cache_of_another_processor_is_not_used(filled):
    """Another processor has another name of the file; here it is this one that is renamed."""
    *kernel_name, machine, version, ending = filled.name.split(".")
    other = filled.with_name(".".join([*kernel_name, machine[::-1], version, ending]))
    filled.rename(other)
    try:
        assert _compiled(filled.parent.parent)[0] == 1
    finally:
        other.replace(filled)


def test_without_a_home_there_is_still_a_place_or_none_at_all(monkeypatch):
    monkeypatch.setattr(cache._CONFIG, "CACHE_DIR", "")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    assert cache.folders() == [Path(cache.__file__).parent / "__pycache__"]


def test_processes_that_start_at_once_do_not_disturb_one_another(tmp_path):
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": variables}
    processes = [subprocess.Popen([sys.executable, "-c", SCRIPT], **pipe) for _ in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=600)
        assert (process.returncode, errors) == (0, "")
    assert len(list(tmp_path.rglob("*"))) == 2  # the folder and one file, nothing temporary
    assert _compiled(tmp_path)[0] == 0


def test_people_who_wait_are_told_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(dispatch, "is_interactive", lambda: True)

    @kernel(seconds=7)
    def slow(x, out):
        for i in range(len(x)):
            out[i] = x[i]

    slow(np.ones(2), np.empty(2))
    slow(np.ones(3), np.empty(3))
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "compiling slow, usually 7 s; the result is kept" in said
