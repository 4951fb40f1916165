"""Folders that `jostle measure` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jostle.errors import InputError
from jostle.safe_io.untrusted_files import TEXT_BYTES, read_json

__all__ = ["FORMAT", "MANIFEST", "measured_files"]

FORMAT: Final = "jostle.measurement/1"
MANIFEST: Final = "measurement.json"


def measured_files(folder: Path) -> list[Path] | None:
    """Give the files of a measurement: of each transfer the one that says most, then the pings.

    Returns
    -------
    list of Path or None
        None if the folder is none of a measurement.

    Raises
    ------
    InputError
        When its manifest is damaged, or names what is not there.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return None
    try:
        names = _names(read_json(manifest, TEXT_BYTES))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{manifest}: not what `jostle measure` writes ({error!r})") from error
    # A manifest from another person may name any file of this machine.
    beside = {path.name for path in folder.iterdir() if path.is_file()}
    for name in names:
        if name not in beside:
            raise InputError(f"{manifest}: there is no file {name} next to it")
    return [folder / name for name in names]


def _names(document: Any) -> list[str]:
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']}, and {FORMAT} is read")
    transfers = document["transfers"]
    pings = [document["idle"], *(one["pings"] for one in transfers)]
    return [
        *(str(one["data"]) for one in transfers),
        *(str(one["file"]) for one in pings if one is not None),
    ]
