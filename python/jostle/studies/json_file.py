"""Reading of the JSON files in a study's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from jostle.errors import InputError
from jostle.safe_io.untrusted_files import TEXT_BYTES, read_text

File = TypeVar("File", bound=BaseModel)


def read_json_file(form: type[File], path: Path, kind: str) -> File | None:
    """Read a JSON file of a study's folder; None if there is none.

    Parameters
    ----------
    form
        Format of the file.
    path
        The file. A link is ignored, because it could point outside the folder.
    kind
        Kind of file, for an error message.

    Raises
    ------
    InputError
        If the file is not valid.
    """
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return form.model_validate_json(read_text(path, TEXT_BYTES))
    except (OSError, ValueError) as error:
        why = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            why = f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"
        raise InputError(f"{path}: no {kind}: {why}") from error
