"""The account that got root's rights by sudo, doas, pkexec or run0: its rights and environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError

if TYPE_CHECKING:
    from pwd import struct_passwd

__all__ = ["account_of", "environment_of", "rights_of"]

_ROOT: Final = 0
_RUNTIME_OF_ROOT: Final = "/run/user/0"
_NAMES_OF_ROOT: Final = ("SUDO_GID", "SUDO_COMMAND", "MAIL", "USERNAME")
"""Further variables that sudo sets, for root."""


def account_of(environment: Mapping[str, str]) -> struct_passwd | None:
    """Return the account that called for root's rights.

    Each variable is set by the program whose manual names it: SUDO_UID and SUDO_USER by sudo(8) and
    run0(1), DOAS_USER by doas(1), PKEXEC_UID by pkexec(1). `su` sets none.

    Parameters
    ----------
    environment
        The environment of jostle.

    Returns
    -------
    struct_passwd or None
        None if root itself called.

    Raises
    ------
    InputError
        When a variable names no account, or two of them name different accounts.
    """
    found: dict[str, struct_passwd] = {}
    for variable, look_up in _look_ups().items():
        value = environment.get(variable)
        if value is None:
            continue
        try:
            found[variable] = look_up(value)
        except (KeyError, ValueError, OverflowError):
            raise InputError(
                f"{variable}={value} names no account of this machine — unset it to run COMMAND "
                "as root, or add --run-as-root"
            ) from None
    if len({account.pw_uid for account in found.values()}) > 1:
        named = " and ".join(f"{name}={environment[name]}" for name in found)
        raise InputError(
            f"{named} name different accounts — unset those that did not call, or add --run-as-root"
        )
    account = next(iter(found.values()), None)
    return None if account is None or account.pw_uid == _ROOT else account


def rights_of(account: struct_passwd) -> list[str]:
    """Return arguments of `setpriv` that give a program the account's rights, and no more.

    With another user ID the kernel clears all capabilities but the inheritable ones
    (capabilities(7)). The program can still get rights by `sudo` or a file's capabilities, as
    `ping` does: the account could do so without jostle, too.
    """
    user, group = str(account.pw_uid), str(account.pw_gid)
    return ["--reuid", user, "--regid", group, "--init-groups", "--inh-caps=-all"]


def environment_of(account: struct_passwd, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program of the account.

    Variables that lead to root's home or runtime folder are left out; a list of folders, such as
    PATH, loses only these.
    """
    import pwd

    folders = "|".join(map(re.escape, (pwd.getpwuid(_ROOT).pw_dir, _RUNTIME_OF_ROOT)))
    of_root = re.compile(rf"(?:.*=)?(?:{folders})/*(?:/.*)?")
    kept = {}
    for name, value in environment.items():
        parts = value.split(":")
        own = [part for part in parts if not of_root.fullmatch(part)]
        if own == parts:
            kept[name] = value
        elif own and len(parts) > 1 and all(part.startswith("/") for part in own):
            kept[name] = ":".join(own)
    for name in (*_look_ups(), *_NAMES_OF_ROOT):
        kept.pop(name, None)
    return kept | {
        "HOME": account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "SHELL": account.pw_shell or "/bin/sh",
    }


def _look_ups() -> dict[str, Callable[[str], struct_passwd]]:
    # Windows, where nothing is emulated, has no accounts of this kind.
    import pwd

    def by_number(text: str) -> struct_passwd:
        if not (text.isascii() and text.isdigit()):
            raise ValueError(text)
        return pwd.getpwuid(int(text))

    return {
        "SUDO_UID": by_number,
        "SUDO_USER": pwd.getpwnam,
        "DOAS_USER": pwd.getpwnam,
        "PKEXEC_UID": by_number,
    }
