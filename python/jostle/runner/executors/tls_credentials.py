"""TLS between a command, a scheduler of Dask and its workers: who has a certificate may connect."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from jostle.errors import InputError

__all__ = ["check_address", "make_credentials"]

_AUTHENTICATED: Final = ("tls", "wss")
_SECTION: Final = 'docs/howto/large-sweeps.md, "Protect the scheduler"'


def make_credentials() -> Any:
    """Make a key and its certificate, in memory, by which the processes of a cluster know another.

    Raises
    ------
    InputError
        If the library that makes keys is not installed.
    """
    # Its calls have no types.
    distributed: Any = import_module("distributed")
    try:
        return distributed.Security.temporary()
    except ImportError as error:
        raise InputError('cryptography is not installed: pip install "jostle[cluster]"') from error


def check_address(address: str, warn: Callable[[str], object]) -> None:
    """Warn of a scheduler that anybody can use, and see that TLS has the certificates it needs.

    Raises
    ------
    InputError
        If Dask's configuration has no certificates for an address that needs them, or requires
        encryption.
    """
    import dask

    scheme, has_scheme, _ = address.partition("://")
    if not has_scheme:
        scheme = dask.config.get("distributed.comm.default-scheme")
    if scheme not in _AUTHENTICATED:
        if dask.config.get("distributed.comm.require-encryption"):
            raise InputError(
                f"dask={address}: Dask's configuration requires encryption "
                f"(distributed.comm.require-encryption). Use a tls:// address ({_SECTION})"
            )
        warn(
            f"dask={address} is neither encrypted nor authenticated: anybody who reaches this port "
            "can run programs as the user of its workers, and this command unpickles what the "
            f"scheduler sends. Use a tls:// address ({_SECTION})"
        )
    elif not dask.config.get("distributed.client.security-loader"):
        _check_certificates(address)


def _check_certificates(address: str) -> None:
    """See that the client's certificates can be read: Dask does not say which of them cannot."""
    # Its calls have no types.
    distributed: Any = import_module("distributed")
    security = distributed.Security()
    files = {"ca-file": security.tls_ca_file, "client.cert": security.tls_client_cert}
    if security.tls_client_key:
        files["client.key"] = security.tls_client_key
    missing = [
        f"distributed.comm.tls.{key}"
        for key, file in files.items()
        # The configuration may hold PEM instead of a path.
        if not file or ("\n" not in file and not os.access(file, os.R_OK))
    ]
    if missing:
        raise InputError(
            f"dask={address}: TLS needs certificates. Set {' and '.join(missing)} in Dask's "
            "configuration (such as ~/.config/dask/tls.yaml) to absolute paths of files that you "
            f"can read; see {_SECTION}"
        )
    import ssl

    try:
        security.get_connection_args("client")
    except ssl.SSLError as error:
        text = f"dask={address}: the files under distributed.comm.tls are no certificates and keys"
        raise InputError(f"{text} that belong together: {error}") from error
