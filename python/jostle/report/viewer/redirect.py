"""A file that leads the browser to the viewer, so that the secret is in no list of processes."""

from __future__ import annotations

import html
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from jostle.errors import InputError
from jostle.safe_io.scratch_folder import temporary_folder

__all__ = ["redirect_file"]

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>jostle view</title>
<p><a href="{url}">Open the page</a></p>
"""


@contextmanager
def redirect_file(url: str) -> Iterator[Path]:
    """Write a page that only this user can read, and that leads to `url`; remove it in the end.

    Every user of the machine can read the command lines of its processes, and a browser is started
    with the address to show.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    with ExitStack() as stack:
        try:
            path = stack.enter_context(temporary_folder("view")) / "jostle-view.html"
            path.touch(0o600, exist_ok=False)
            path.write_text(_PAGE.format(url=html.escape(url)), "utf-8")
        except OSError as error:
            raise InputError(
                f"cannot write a page that leads to the viewer ({error.strerror or error}): set "
                "TMPDIR to a folder with some room, or add --no-open"
            ) from error
        yield path
