"""Fetching a file over HTTP: continued where it stopped, checked, and put in its place all at once.

Written with the standard library: pooch, the usual choice, cannot continue a download that was cut short,
and some of these files have hundreds of megabytes.
"""

from __future__ import annotations

import re
import time
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from dichotomies._common.progress import Progress, say
from experiments.datasets.partial_file import FetchError, PartialFile, checked, recorded_digest

if TYPE_CHECKING:
    import os

_CHUNK = 1 << 16
#: Status codes of busy servers, after which the request is repeated.
_PASSING_TROUBLE = {408, 429, 500, 502, 503, 504}


class UnreachableError(FetchError):
    """There is no such file at the address, or no way to the address."""


class _BrokenOffError(Exception):
    """The transfer stopped before the end; asking again may help."""


def fetch(
    url: str,
    path: str | os.PathLike[str],
    sha256: str | None = None,
    *,
    progress: bool = True,
    tries: int = 5,
    timeout: float = 30.0,
    pause: float = 1.0,
) -> Path:
    """Fetch a file, unless it is there already.

    The bytes go to ``<path>.part``, which is kept when the transfer is interrupted and continued by the next
    call if the server can (a server that cannot is asked for the whole file). The file appears as `path`
    only when it is complete and its checksum is right. Processes that fetch the same file wait for the
    first of them.

    Parameters
    ----------
    url : str
        The address, http or https.
    path : path
        Target file; its folder is made.
    sha256 : str, optional
        The checksum in hexadecimal. Without one, that of the first download is recorded in
        ``<path>.sha256`` and demanded from then on.
    progress : bool
        Report progress on stderr.
    tries : int
        Number of consecutive failures without progress after which to give up.
    timeout : float
        Seconds without a byte after which a transfer has stopped.
    pause : float
        Seconds before the second try, doubled before each further one.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    FetchError
        If the file cannot be had; the message says why and what to do. Its subclass UnreachableError
        says that the address does not answer or has no such file.
    """
    path = Path(path)
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"Only http and https addresses can be fetched, got {url!r}.")
    expected = recorded_digest(path) or sha256
    if path.is_file():
        return checked(path, expected)
    with PartialFile(path) as part:
        if path.is_file():  # another process fetched it while this one waited
            return checked(path, expected)
        _download(url, part, _Manner(progress, tries, timeout, pause))
        part.finish(expected, url)
    return path


class _Manner:
    """Parameters of `fetch` that every request needs."""

    def __init__(self, progress: bool, tries: int, timeout: float, pause: float) -> None:
        self.progress, self.tries, self.timeout, self.pause = progress, tries, timeout, pause


def _download(url: str, part: PartialFile, manner: _Manner) -> None:
    """Ask until the partial file is whole."""
    furthest, failures = part.size, 0
    while True:
        try:
            return _one_request(url, part, manner)
        except _BrokenOffError as stopped:
            reason = str(stopped)
        failures = 0 if part.size > furthest else failures + 1
        furthest = max(furthest, part.size)
        if failures >= manner.tries:
            kept = f"; the {part.size:,} bytes so far are kept in {part.path}" if part.size else ""
            raise UnreachableError(
                f"{url} could not be fetched in {manner.tries} tries: {reason}{kept}. Try again later."
            )
        time.sleep(manner.pause * 2.0 ** min(failures, 6))


def _one_request(url: str, part: PartialFile, manner: _Manner) -> None:
    """Ask once for what is missing and append it."""
    try:
        with _answer(url, part, manner.timeout) as response:
            total = _make_ready(response, part)
            part.expect_room(total)
            part.validator = _validator(response)
            _copy(response, part, total, manner)
    except _WholeAlready:
        return
    if total is not None and part.size != total:
        raise _BrokenOffError(f"the connection ended after {part.size:,} of {total:,} bytes")


class _WholeAlready(Exception):  # noqa: N818  it is not an error
    """Nothing is missing."""


def _answer(url: str, part: PartialFile, timeout: float) -> HTTPResponse:
    headers = {"User-Agent": "dichotomies", "Accept-Encoding": "identity"}
    if part.size and part.validator:
        # If the file has changed since, If-Range makes the server send all of it.
        headers |= {"Range": f"bytes={part.size}-", "If-Range": part.validator}
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=timeout)
        return response
    except HTTPError as error:
        with error:
            _explain(url, error, part)
            raise _BrokenOffError(f"the server answers {error.code} {error.reason}") from None
    except URLError as error:
        if part.has_grown:  # it could be reached a moment ago
            raise _BrokenOffError(f"the server cannot be reached ({error.reason})") from None
        raise UnreachableError(f"{url} cannot be reached ({error.reason}).") from None
    except (OSError, HTTPException) as error:
        raise _BrokenOffError(f"the server does not answer ({_in_words(error)})") from None


def _explain(url: str, error: HTTPError, part: PartialFile) -> None:
    """Raise what an error status means, unless it may pass."""
    if error.code == 416 and part.size:
        if error.headers.get("Content-Range", "").endswith(f"/{part.size}"):
            raise _WholeAlready
        part.start_over()
    elif error.code not in _PASSING_TROUBLE:
        raise UnreachableError(f"{url} answers {error.code} {error.reason}.")


def _make_ready(response: HTTPResponse, part: PartialFile) -> int | None:
    """Bring the partial file to where the response begins; returns the size of the whole file, if known."""
    if response.status == 206:
        place = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if place is None or int(place[1]) != part.size:
            part.start_over()
            raise _BrokenOffError("the server sent another part of the file than was asked for")
        return None if place[2] == "*" else int(place[2])
    part.start_over()
    length = response.headers.get("Content-Length")
    return None if length is None else int(length)


def _validator(response: HTTPResponse) -> str:
    """Version of the file for If-Range, which does not allow weak tags."""
    tag = response.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")


def _copy(response: HTTPResponse, part: PartialFile, total: int | None, manner: _Manner) -> None:
    already = part.size
    size = f", {total / 1e6:.1f} MB" if total else ""
    resumed = f" ({already / 1e6:.1f} MB were there)" if already else ""
    reporter = Progress(f"fetching {part.target.name}{size}{resumed}")
    while True:
        try:
            chunk = response.read(_CHUNK)
        except (OSError, HTTPException) as error:
            raise _BrokenOffError(f"the transfer stopped ({_in_words(error)})") from None
        if not chunk:
            break
        part.append(chunk)
        if manner.progress and total:
            reporter.show((part.size - already) / (total - already))
    if manner.progress and total is None:
        say(f"fetched {part.target.name}, {part.size / 1e6:.1f} MB")


def _in_words(error: Exception) -> str:
    return str(error) or type(error).__name__
