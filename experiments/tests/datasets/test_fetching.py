"""Fetching files from a server that cuts, lies, changes its mind and goes away."""

import errno
import hashlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from experiments.datasets import FetchError, UnreachableError, fetch
from experiments.datasets.partial_file import PartialFile

CONTENT = os.urandom(300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def quick(url, path, sha256=None, **options):
    return fetch(url, path, sha256, **{"progress": False, "pause": 0, "timeout": 5, **options})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def url(site):
    return site.put("a.zip", CONTENT)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "raw" / "a.zip"


def test_the_file_is_the_served_one_and_nothing_else_is_left(url, path):
    assert quick(url, path, DIGEST.upper()) == path
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["a.zip", "a.zip.sha256"]
    assert (path.parent / "a.zip.sha256").read_text() == f"{DIGEST}  a.zip\n"


def test_what_is_there_is_not_fetched_again(site, url, path):
    quick(url, path)
    quick(url, path)
    assert len(site.requests) == 1


def test_a_truncated_download_is_continued_where_it_stopped(site, url, path):
    site.cuts = [100_000, 0, 50_000]
    quick(url, path, DIGEST)
    assert path.read_bytes() == CONTENT
    asked = [site.headers_of(i).get("Range") for i in range(4)]
    assert asked == [None, "bytes=100000-", "bytes=100000-", "bytes=150000-"]
    assert site.headers_of(3)["If-Range"] == '"v1"'


def test_a_server_without_ranges_is_asked_for_the_whole_file(site, url, path):
    site.cuts, site.ranges = [100_000], False
    quick(url, path, DIGEST)
    assert path.read_bytes() == CONTENT


def test_without_a_strong_validator_the_parts_are_not_put_together(site, path):
    url = site.put("a.zip", CONTENT, etag='W/"weak"')
    site.cuts = [100_000]
    quick(url, path, DIGEST)
    assert "Range" not in site.headers_of(1)


def test_a_download_that_never_ends_well_says_so_and_keeps_what_it_has(site, url, path):
    site.cuts, site.ranges = [100_000] * 9, False
    with pytest.raises(UnreachableError, match=r"in 3 tries: the connection ended after 100,000 of 300,000"):
        quick(url, path, tries=3)
    assert len(site.requests) == 4  # the first came further than nothing
    assert (path.parent / "a.zip.part").stat().st_size == 100_000


def test_an_interrupted_download_is_continued_by_the_next_call(site, url, path, monkeypatch):
    append = PartialFile.append

    def interrupted(self, data):
        append(self, data)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PartialFile, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quick(url, path)
    kept = (path.parent / "a.zip.part").stat().st_size
    assert 0 < kept < len(CONTENT)
    quick(url, path, DIGEST)
    assert path.read_bytes() == CONTENT
    assert site.headers_of(1)["Range"] == f"bytes={kept}-"


def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(site, url, path):
    site.cuts, site.statuses = [100_000], [200, 404]
    with pytest.raises(UnreachableError):
        quick(url, path)
    site.put("a.zip", CONTENT[::-1], etag='"v2"')
    quick(url, path)
    assert path.read_bytes() == CONTENT[::-1]


def test_a_part_that_is_whole_already_is_only_checked(site, url, path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PartialFile, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quick(url, path)
    assert (path.parent / "a.zip.part").stat().st_size == len(CONTENT)
    quick(url, path, DIGEST)
    assert path.read_bytes() == CONTENT


def test_a_wrong_checksum_throws_the_download_away_and_names_both(url, path):
    with pytest.raises(FetchError, match=rf"{DIGEST} and not {'0' * 64}, so it was thrown away"):
        quick(url, path, "0" * 64)
    assert names(path.parent) == []


def test_the_first_download_without_checksum_is_trusted_and_the_second_must_equal_it(site, url, path):
    quick(url, path)
    path.unlink()
    site.put("a.zip", CONTENT[::-1])
    with pytest.raises(FetchError, match=rf"and not {DIGEST}"):
        quick(url, path)
    assert not path.exists()


def test_a_file_that_was_altered_is_complained_of_and_left_alone(url, path):
    quick(url, path)
    path.write_bytes(b"mine")
    with pytest.raises(FetchError, match="remove it to have it fetched again"):
        quick(url, path)
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_passed_on_at_once_and_leaves_nothing(site, url, path, status):
    site.statuses = [status] * 9
    with pytest.raises(UnreachableError, match=rf"{url} answers {status}"):
        quick(url, path)
    assert len(site.requests) == 1
    assert names(path.parent) == []


def test_a_busy_server_is_asked_again(site, url, path):
    site.statuses = [503, 500, 429]
    quick(url, path, DIGEST)
    assert path.read_bytes() == CONTENT


def test_a_server_that_stays_busy_is_given_up(site, url, path):
    site.statuses = [503] * 9
    with pytest.raises(UnreachableError, match=r"in 2 tries: the server answers 503 .* Try again later"):
        quick(url, path, tries=2)
    assert len(site.requests) == 2


def test_a_silent_server_is_given_up(site, url, path):
    silence = threading.Event()
    site.halfway = lambda: silence.wait(10)
    with pytest.raises(UnreachableError, match="the transfer stopped"):
        quick(url, path, tries=1, timeout=0.2)
    silence.set()


def test_a_closed_port_is_out_of_reach_at_once(site, path):
    with pytest.raises(UnreachableError, match="cannot be reached"):
        quick("http://127.0.0.1:9/a.zip", path, pause=60)
    assert names(path.parent) == []


def test_offline_nothing_is_waited_for_even_with_a_part_to_continue(path):
    path.parent.mkdir()
    (path.parent / "a.zip.part").write_bytes(b"begun")
    with pytest.raises(UnreachableError, match="cannot be reached"):
        quick("http://127.0.0.1:9/a.zip", path, pause=60)
    assert (path.parent / "a.zip.part").read_bytes() == b"begun"


def test_a_length_that_is_not_told_is_no_hindrance(site, url, path, capsys):
    site.lengths = False
    quick(url, path, DIGEST, progress=True)
    assert path.read_bytes() == CONTENT
    assert "fetched a.zip, 0.3 MB" in capsys.readouterr().err


def test_a_truncated_download_of_unknown_length_is_noticed_if_it_comes_in_chunks(site, url, path):
    site.chunked, site.cuts = True, [100_000]
    quick(url, path, DIGEST)
    assert path.read_bytes() == CONTENT
    assert len(site.requests) == 2


def test_only_web_addresses_are_fetched(path):
    with pytest.raises(ValueError, match="Only http and https"):
        quick("file:///etc/passwd", path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a full disk for whoever has one")
def test_a_full_disk_is_said_to_be_full(url, path):
    path.parent.mkdir()
    (path.parent / "a.zip.part").symlink_to("/dev/full")
    with pytest.raises(FetchError, match=r"The disk that holds .*a\.zip\.part is full") as caught:
        quick(url, path)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert not path.exists()


def test_a_disk_without_room_is_noticed_before_anything_is_written(url, path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(FetchError, match=r"has 1,000 bytes left and a\.zip needs 300,000"):
        quick(url, path)
    assert names(path.parent) == []


def test_a_folder_that_cannot_be_made_is_named(url, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FetchError, match=r"file/a\.zip\.part cannot be written"):
        quick(url, tmp_path / "file" / "a.zip")


def test_progress_is_reported_in_bytes_and_time(url, path, capsys):
    quick(url, path, progress=True)
    assert "[dichotomies] fetching a.zip, 0.3 MB: 100%, took" in capsys.readouterr().err


def test_of_two_that_fetch_the_same_file_one_waits_for_the_other(site, url, path, monkeypatch):
    second_waits = threading.Event()
    monkeypatch.setattr("experiments.datasets.partial_file.say", lambda _: second_waits.set())
    site.halfway = lambda: second_waits.wait(60)
    with ThreadPoolExecutor(2) as pool:
        fetched = list(pool.map(lambda _: quick(url, path, DIGEST).read_bytes(), range(2)))
    assert second_waits.is_set()
    assert fetched == [CONTENT, CONTENT]
    assert len(site.requests) == 1
    assert names(path.parent) == ["a.zip", "a.zip.sha256"]


def test_a_file_that_another_process_is_fetching_is_waited_for(site, url, path, monkeypatch):
    path.parent.mkdir()
    part = path.parent / "a.zip.part"
    code = (
        "import fcntl, os, sys; part = open(sys.argv[1], 'ab'); fcntl.flock(part, fcntl.LOCK_EX); "
        "print('locked', flush=True); input(); part.write(b'theirs'); os.replace(*sys.argv[1:])"
    )
    command = [sys.executable, "-I", "-c", code, str(part), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"

        def let_it_finish(_):
            other.stdin.write("\n")
            other.stdin.flush()

        monkeypatch.setattr("experiments.datasets.partial_file.say", let_it_finish)
        quick(url, path)
    assert path.read_bytes() == b"theirs"
    assert site.requests == []
    assert names(path.parent) == ["a.zip"]
