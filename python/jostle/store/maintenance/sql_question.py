"""A question in SQL about the tables of a store, which DuckDB answers and sees nothing else.

DuckDB reads the tables' files through a file system that has only them and writes none. All other
access to files, addresses, extensions and Python's variables is switched off, and stays off: the
configuration is locked before the question is read.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jostle.errors import InputError, StoreError, brief
from jostle.safe_io.untrusted_files import STORED_BYTES, read_bytes
from jostle.store import parquet_files
from jostle.store.maintenance.convert import runs_with_captures
from jostle.store.maintenance.export import NAMES, PLANS, files_of, name_damaged, plans_frame
from jostle.store.segments import folder
from jostle.store.store import Store

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from jostle.store.maintenance.duckdb_files import TableFiles

_ASKS_WHICH: Final = ("show", "schema", "duckdb_", "pragma", "pg_", "sqlite_")
"""Words of a question that wants to know which tables there are."""
_TELL_S: Final = 2.0
_LEAST_BYTES: Final = 1_000_000_000
"""Memory that DuckDB may take to answer."""
_BYTES_PER_BYTE: Final = 10
"""How much more for each byte of the files that it reads."""
_MOST_TEXT: Final = 300_000_000
"""Characters of all texts of an answer."""
_ATTEMPTS: Final = 3
"""Number of attempts to answer while other processes remove segments."""
_FEWER: Final = "ask for fewer rows or columns"
_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "allow_unsigned_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # Names of a question would be taken for variables of this program.
    "python_enable_replacements": "false",
    # It would write into the current folder what exceeds memory.
    "temp_directory": "",
}


def ask(
    root: Path, question: str, told: Callable[[str], object] = lambda _text: None
) -> pl.DataFrame:
    """Answer a question in SQL.

    The tables are the segments' tables, by name, and `plans`. Labels of a condition are a map:
    ``labels['bottleneck.rate']``. The question can neither read nor write anything else.

    Parameters
    ----------
    root
        The store.
    question
        One statement or several, of which only the last one is a SELECT.
    told
        Hears how many files were checked, if that takes long.

    Raises
    ------
    InputError
        When DuckDB is not installed, does not understand the question, or needs more memory for it
        than 1 GB and ten times the size of the files; when a file of a table is no such table; when
        the store has no runs, or is being compacted all the time.
    """
    try:
        import duckdb  # noqa: F401
        import fsspec  # type: ignore[import-untyped] # noqa: F401
    except ImportError as error:
        raise InputError('DuckDB is not installed: pip install "jostle[sql]"') from error

    for _ in range(_ATTEMPTS):
        before = set(folder.names(root))
        try:
            answer = _query(root, question, told)
        except InputError:
            if before.issubset(folder.names(root)):
                raise
        else:
            if before.issubset(folder.names(root)):
                return answer
        # A compaction has removed segments, so files may be missing.
    raise InputError(f"the store {root} is being compacted: ask again later")


def _query(root: Path, question: str, told: Callable[[str], object]) -> pl.DataFrame:
    import duckdb

    from jostle.store.maintenance.duckdb_files import TableFiles

    files = TableFiles()
    every = (*NAMES, PLANS)
    asked = question.lower()
    # To open all files of a large store takes longer than most answers.
    needed = [name for name in every if name in asked or any(w in asked for w in _ASKS_WHICH)]
    left = [name for name in every if name not in needed]
    try:
        _add(files, root, needed, told)
        try:
            return _run(files, question)
        except duckdb.CatalogException:
            # The tables that there are, or are meant, are a part of the message.
            _add(files, root, left, told)
            return _run(files, question)
    except duckdb.OutOfMemoryException as error:
        raise InputError(f"SQL: the answer takes too much memory: {_FEWER}") from error
    except duckdb.CatalogException as error:
        if files.tables.keys().isdisjoint(NAMES):
            raise InputError(f"the store {root} has no finished runs to query") from error
        raise InputError(f"SQL: {brief(str(error))}") from error
    except duckdb.Error as error:
        said = f"SQL: {brief(files.with_paths(_said(str(error))))}"
        if isinstance(error, _of_questions()):
            raise InputError(said) from error
        _name_damaged(files)
        raise InputError(f"{said} (in the store {root})") from error


def _of_questions() -> tuple[type[Exception], ...]:
    """Errors whose cause is the question, and no file."""
    import duckdb

    return (
        duckdb.BinderException, duckdb.DataError, duckdb.NotSupportedError,
        duckdb.ParserException, duckdb.PermissionException, duckdb.SyntaxException,
    )  # fmt: skip


def _name_damaged(files: TableFiles) -> None:
    """Name the first file of a table that cannot be decoded, if there is one."""
    for path in itertools.chain.from_iterable(files.tables.values()):
        if isinstance(path, Path):
            with name_damaged(path):
                parquet_files.read(path)


def _add(
    files: TableFiles, root: Path, tables: Iterable[str], told: Callable[[str], object]
) -> None:
    """Add files of tables, each checked."""
    captured = runs_with_captures(Store(root, warn=told))
    found = {name: files_of(root, name) for name in tables if name != PLANS}
    total = sum(map(len, found.values()))
    checked, next_s = 0, time.monotonic() + _TELL_S
    for name, paths in found.items():
        for path in paths:
            with name_damaged(path):
                parquet_files.checked(path)
            checked += 1
            if time.monotonic() >= next_s:
                told(f"checked {checked} of {total} files")
                next_s += _TELL_S
        more = _encode_tables([made[name] for made in captured if name in made])
        if paths or more:
            files.add(name, [*paths, *more])
    if PLANS in tables:
        buffer = io.BytesIO()
        try:
            plans_frame(root).write_parquet(buffer)
        except StoreError as error:
            raise InputError(f"{error}: remove that file") from error
        files.add(PLANS, [buffer.getvalue()])


def _encode_tables(frames: Sequence[pl.DataFrame]) -> list[bytes]:
    """Return a Parquet file of some tables; none without tables."""
    import polars as pl

    if not frames:
        return []
    buffer = io.BytesIO()
    pl.concat(frames, how="diagonal").write_parquet(buffer)
    return [buffer.getvalue()]


def _run(files: TableFiles, question: str) -> pl.DataFrame:
    import duckdb
    import polars as pl

    most_bytes = _LEAST_BYTES + _BYTES_PER_BYTE * files.size_bytes
    settings = _SETTINGS | {"memory_limit": f"{most_bytes}B"}
    with duckdb.connect(config=settings) as database:
        database.register_filesystem(files)
        database.execute(f"SET allowed_directories = ['{files.protocol}://']")
        database.execute("SET enable_external_access = false")
        for name in files.tables:
            database.execute(f"CREATE VIEW {name} AS {_view(files, name)}")
        database.execute("SET lock_configuration = true")
        statements = database.extract_statements(question)
        if not statements:
            raise InputError("SQL: there is no statement")
        if any(one.type == duckdb.StatementType.SELECT for one in statements[:-1]):
            raise InputError("SQL: only the last statement is answered: write a single SELECT")
        answer = database.execute(question)
        if answer.description is None:
            return pl.DataFrame()
        names = [column[0] for column in answer.description]
        rows = list(_rows(answer))
    columns = zip(*rows, strict=True) if rows else [[] for _ in names]
    unique = [name if names.index(name) == at else f"{name}_{at}" for at, name in enumerate(names)]
    made = [pl.Series(n, list(v), strict=False) for n, v in zip(unique, columns, strict=True)]
    return pl.DataFrame(made)


def _rows(answer: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    """Take rows one by one: texts that are one in a file are many in an answer."""
    length = 0
    while (row := answer.fetchone()) is not None:
        length += sum(len(value) for value in row if isinstance(value, str | bytes))
        if length > _MOST_TEXT:
            text = f"its texts have more than {_MOST_TEXT // 10**6} MB"
            raise InputError(f"SQL: the answer is too large ({text}): {_FEWER}")
        yield row


def _view(files: TableFiles, name: str) -> str:
    listed = ", ".join(f"'{address}'" for address in files.addresses(name))
    if name == PLANS:
        columns = "* REPLACE (map_from_entries(labels) AS labels)"
        return f"SELECT {columns} FROM read_parquet([{listed}])"
    more = ", union_by_name = true" if _differ(files.tables[name]) else ""
    return f"FROM read_parquet([{listed}]{more})"


def _differ(paths: Sequence[Path | bytes]) -> bool:
    """Whether files may have other columns: segments of several versions, and other files."""
    versions = {_versions(path) for path in paths if isinstance(path, Path)}
    return len(versions) + sum(isinstance(path, bytes) for path in paths) > 1


def _versions(path: Path) -> str:
    """Versions that wrote a table's segment; those that cannot be read are unlike any other."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        manifest = json.loads(read_bytes(path.with_name(folder.MANIFEST), STORED_BYTES))
        return json.dumps(manifest["versions"], sort_keys=True)
    return str(path)


def _said(text: str) -> str:
    """Leave out the lines of Python that the error of a refused write has."""
    return text.rstrip().rpartition("\n")[2] if "Traceback" in text else text
