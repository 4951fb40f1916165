"""Reading of TOML files with error messages for the user."""

from __future__ import annotations

import errno
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from jostle.safe_io.untrusted_files import SCENARIO_BYTES, read_bytes
from jostle.scenario.parsing.key_lines import line_of, positions
from jostle.scenario.parsing.problems import Problem, ScenarioError
from jostle.scenario.parsing.size_limits import check_document_size

__all__ = ["parse", "read_text"]

_AT_LINE: Final = re.compile(r"\s*\(at line (\d+), column \d+\)|\s*\(at end of document\)")

_LOOKED_THROUGH_BYTES: Final = 16 * SCENARIO_BYTES
_HEADER: Final = re.compile(rb"^[ \t]*\[{1,2}([^][\n]{1,100})\]", re.MULTILINE)

# Hints for error messages of tomllib.
_HINTS: Final = (
    ("Cannot overwrite a value", "this key is there already"),
    ("Cannot declare ('flows',) twice", "write [[flows]] above each flow"),
    ("Cannot declare ('links',) twice", "write [[links]] above each link"),
    (r"Illegal character '\n'", "is a quote not closed?"),
    ("Expected newline", 'texts and quantities have quotes, as in "20 ms"'),
    ("Invalid value", 'texts and quantities have quotes, as in "20 ms"'),
)


def read_text(path: str | Path) -> str:
    """Return the text of a file.

    Raises
    ------
    ScenarioError
        If the file cannot be read or is not UTF-8.
    """
    source = str(path)
    try:
        return read_bytes(path, SCENARIO_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        message = "not UTF-8 text — a scenario is a TOML file, saved as UTF-8"
        raise ScenarioError(source, [Problem(line, "", message)]) from None
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.EFBIG and (problem := _largest_table(path)):
            raise ScenarioError(source, [problem]) from None
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot be read: {reason[0].lower()}{reason[1:]}"
        raise ScenarioError(source, [Problem(0, "", message)]) from None


def _largest_table(path: str | Path) -> Problem | None:
    """Return a problem that names the largest table of an oversized file; None if it has none."""
    try:
        content = read_bytes(path, _LOOKED_THROUGH_BYTES)
    except (OSError, ValueError):
        return None
    headers = [(found.start(), found[1]) for found in _HEADER.finditer(content)]
    if not headers:
        return None
    ends = [*(start for start, _ in headers[1:]), len(content)]
    size, start, name = max(
        (end - start, start, name) for (start, name), end in zip(headers, ends, strict=True)
    )
    line = content.count(b"\n", 0, start) + 1
    key = name.decode("utf-8", "replace").strip()
    message = f"{size / 1e6:.1f} MB of a file that is larger than {SCENARIO_BYTES // 10**6} MB"
    return Problem(line, key, f"{message}, the most that is read here")


def parse(text: str, source: str) -> tuple[str, dict[str, Any]]:
    """Return the text with normalised line ends, and the parsed document.

    Parameters
    ----------
    text
        TOML text.
    source
        Name for error messages.

    Raises
    ------
    ScenarioError
        If the text is not TOML, or exceeds a limit: size, nesting, or keys per table.
    """
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").replace("\r\n", "\n")
    if len(text) > SCENARIO_BYTES:
        message = f"{len(text)} characters — at most {SCENARIO_BYTES}"
        raise ScenarioError(source, [Problem(0, "", message)])
    try:
        # Call this first: tomllib takes minutes for a dotted key with very many components.
        positions(text)
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(source, [_syntax_problem(str(error), text)]) from None
    except RecursionError:
        message = "not valid TOML: nested too deeply"
        raise ScenarioError(source, [Problem(0, "", message)]) from None
    except OverflowError as error:
        raise ScenarioError(source, [Problem(0, "", str(error))]) from None
    except ValueError:
        # Raised by `int`, which accepts only some thousand digits.
        message = "not valid TOML: a number of too many digits"
        raise ScenarioError(source, [Problem(0, "", message)]) from None
    found = check_document_size(document)
    if found is not None:
        path, message = found
        line = line_of(positions(text), path)
        raise ScenarioError(source, [Problem(line, ".".join(map(str, path)), message)])
    return text, document


def _syntax_problem(message: str, text: str) -> Problem:
    match = _AT_LINE.search(message)
    line = int(match[1]) if match and match[1] else text.rstrip("\n").count("\n") + 1
    said = _AT_LINE.sub("", message)
    hint = next((f" — {hint}" for start, hint in _HINTS if said.startswith(start)), "")
    return Problem(line, "", f"not valid TOML: {said[:1].lower()}{said[1:]}{hint}")
