"""Output to a pipe whose reader closes it before the command has ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

__all__ = ["PipeStream", "outlive_readers", "pipe_streams"]


class PipeStream:
    """A text stream that records whether its reader has closed it.

    Attributes
    ----------
    is_broken
        Whether the reader has closed the pipe.
    outlives_reader
        Whether later output is discarded, so that the command goes on. Otherwise writing raises
        `BrokenPipeError`.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_broken = False
        self.outlives_reader = False

    def write(self, text: str) -> int:
        """Write text."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._break()
            return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._break()

    def _break(self) -> None:
        """Handle the present `BrokenPipeError`."""
        self.is_broken = True
        if not self.outlives_reader:
            raise  # noqa: PLE0704
        # The stream still holds what it could not write.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def pipe_streams() -> Iterator[list[PipeStream]]:
    """Replace stdout and stderr by streams that record whether their readers have closed them."""
    streams = sys.stdout, sys.stderr
    watched = [PipeStream(stream) for stream in streams]
    sys.stdout, sys.stderr = (cast("TextIO", stream) for stream in watched)
    try:
        yield watched
    finally:
        sys.stdout, sys.stderr = streams


def outlive_readers() -> None:
    """Discard later output to closed pipes, so that the command still writes its files."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, PipeStream):
            stream.outlives_reader = True
