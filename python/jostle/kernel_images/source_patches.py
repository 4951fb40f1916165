"""Patches of the kernel's files, which are few, small, and checked against their context.

A patch names a file and the text that it replaces, which must occur exactly once. If a kernel's
source has changed, the build fails with the name of the patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import InputError

VIRTUAL_HZ = 1000
"""Ticks per second of the kernel in virtual time."""

OWN_FOLDER = Path("net/sched/jostle")
"""Folder for jostle's files and for copies, relative to the kernel source."""


class PatchContextError(InputError):
    """The kernel's source differs from the context of a patch."""


@dataclass(frozen=True)
class SourcePatch:
    """A change to one file.

    Attributes
    ----------
    file
        Path relative to the kernel source.
    why
        Purpose of the change.
    before, after
        Replaced text, and its replacement.
    """

    file: str
    why: str
    before: str
    after: str

    def applied_to(self, text: str) -> str:
        """Return the changed text.

        Raises
        ------
        PatchContextError
            If the text to replace does not occur exactly once.
        """
        count = text.count(self.before)
        if count != 1:
            raise PatchContextError(
                f"{self.file} of this kernel is not as expected: the text to be changed "
                f"({self.why}) is there {count} times"
            )
        return text.replace(self.before, self.after)


EDITS: tuple[SourcePatch, ...] = (
    SourcePatch(
        "arch/um/Kconfig",
        "a tick of 1 ms instead of 10, as servers have it",
        "config HZ\n\tint\n\tdefault 100\n",
        f"config HZ\n\tint\n\tdefault {VIRTUAL_HZ}\n",
    ),
    # User-Mode Linux passes the registers of its processes to the host (`restore_fp_registers`),
    # and the host requires the full size of its processor's registers: 11,008 bytes with AMX. The
    # host ignores excess bytes. Later kernels ask the host for the size (`host_fp_size`).
    SourcePatch(
        "arch/x86/um/user-offsets.c",
        "room for the registers of present processors",
        "\tDEFINE_LONGS(HOST_FP_SIZE, 2696);\n",
        "\tDEFINE_LONGS(HOST_FP_SIZE, 16384);\n",
    ),
    SourcePatch(
        "arch/um/Kconfig",
        "stacks on which those registers fit",
        "\tdefault 2 if 64BIT\n",
        "\tdefault 4 if 64BIT\n",
    ),
    SourcePatch(
        "arch/um/os-Linux/util.c",
        "random numbers from a seed",
        "ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)\n{\n",
        f'#include "../../../{OWN_FOLDER}/jostle_seed.h"\n\n'
        "ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)\n{\n"
        "\tif (jostle_seeded()) {\n\t\tjostle_fill(buf, len);\n\t\treturn len;\n\t}\n",
    ),
    SourcePatch(
        "drivers/char/random.c",
        "no random numbers from the timing of interrupts",
        "static void _mix_pool_bytes(const void *buf, size_t len)\n{\n",
        f'#include "../../{OWN_FOLDER}/jostle_seed.h"\n\n'
        "static void _mix_pool_bytes(const void *buf, size_t len)\n{\n"
        "\tif (jostle_seeded())\n\t\treturn;\n",
    ),
    SourcePatch(
        "drivers/char/random.c",
        "no timers that depend on how many interrupts there were",
        "\tif (new_count & MIX_INFLIGHT)\n\t\treturn;\n",
        "\tif (jostle_seeded() || (new_count & MIX_INFLIGHT))\n\t\treturn;\n",
    ),
    # SEARCH's module needs 132 bytes, BBRv3 needs 144.
    SourcePatch(
        "include/net/inet_connection_sock.h",
        "room for the data of a user's controller",
        "icsk_ca_priv[104 / sizeof(u64)];\n",
        "icsk_ca_priv[512 / sizeof(u64)];\n",
    ),
    # All configurations of a version have the same version magic. The kernel would load a module
    # that was compiled for other structures, and its results would be wrong.
    SourcePatch(
        "include/linux/vermagic.h",
        "modules for this build only",
        '\tUTS_RELEASE " "',
        '\tUTS_RELEASE " " JOSTLE_BUILD " "',
    ),
    SourcePatch(
        "include/linux/vermagic.h",
        "modules for this build only",
        "#include <generated/utsrelease.h>\n",
        "#include <generated/utsrelease.h>\n#include <linux/jostle_build.h>\n",
    ),
)
"""All patches of the kernel's files."""


def _named(file: str, name: str) -> SourcePatch:
    original = Path(file).stem.removeprefix("tcp_")
    return SourcePatch(file, "a unique name", f'.name\t\t= "{original}",', f'.name\t\t= "{name}",')


_CUBIC = "net/ipv4/tcp_cubic.c"
_BBR = "net/ipv4/tcp_bbr.c"

# BBR of Linux 4.15, with fq. Linux 4.19 added packets for probing on paths with a small BDP. Linux
# 4.20 subtracted packets held by pacing from the bytes in flight. Linux 5.1 added cwnd for
# aggregated ACKs.
_BBR_AS_IN_4_15 = (
    SourcePatch(
        _BBR,
        "no compensation for aggregated ACKs",
        "static const int bbr_extra_acked_gain = BBR_UNIT;\n",
        "static const int bbr_extra_acked_gain = 0;\n",
    ),
    SourcePatch(
        _BBR,
        "no room for the probe of a small BDP",
        "\tif (bbr->mode == BBR_PROBE_BW && bbr->cycle_idx == 0)\n\t\tcwnd += 2;\n",
        "",
    ),
    SourcePatch(
        _BBR,
        "all that is in flight counts",
        "\tif (interval_delivered >= inflight_at_edt)\n\t\treturn 0;\n"
        "\treturn inflight_at_edt - interval_delivered;\n",
        "\treturn inflight_now;\n",
    ),
    SourcePatch(
        _BBR,
        "the same RTT again confirms the minimum",
        "\t    (rs->rtt_us < bbr->min_rtt_us ||\n",
        "\t    (rs->rtt_us <= bbr->min_rtt_us ||\n",
    ),
)

# HyStart and the window prediction of Linux 4.15. Its clock is in milliseconds and its delays in
# 1/8 ms. Here both remain in microseconds, rounded to such multiples, so that every comparison has
# the same result.
_CUBIC_AS_IN_4_15 = (
    SourcePatch(
        _CUBIC,
        "a clock of milliseconds",
        "\treturn tcp_sk(sk)->tcp_mstamp;\n",
        "\treturn div_u64(tcp_sk(sk)->tcp_mstamp, USEC_PER_MSEC) * USEC_PER_MSEC;\n",
    ),
    SourcePatch(
        _CUBIC,
        "rounds that end where the window grows",
        "\tif (after(tp->snd_una, ca->end_seq))\n\t\tbictcp_hystart_reset(sk);\n\n"
        "\t/* hystart triggers",
        "\t/* hystart triggers",
    ),
    SourcePatch(
        _CUBIC,
        "rounds that end where the window grows",
        "\tif (tcp_in_slow_start(tp)) {\n\t\tacked =",
        "\tif (tcp_in_slow_start(tp)) {\n"
        "\t\tif (hystart && after(ack, ca->end_seq))\n\t\t\tbictcp_hystart_reset(sk);\n"
        "\t\tacked =",
    ),
    SourcePatch(
        _CUBIC,
        "trains of half the smallest delay",
        "\t\t\tthreshold = ca->delay_min + hystart_ack_delay(sk);\n",
        "\t\t\tthreshold = ca->delay_min / 125 / 16 * USEC_PER_MSEC;\n",
    ),
    SourcePatch(
        _CUBIC,
        "no regard to pacing",
        "\t\t\tif (sk->sk_pacing_status == SK_PACING_NONE)\n\t\t\t\tthreshold >>= 1;\n",
        "",
    ),
    SourcePatch(
        _CUBIC,
        "the smallest of the first eight delays",
        "\t\tif (ca->curr_rtt > delay)\n\t\t\tca->curr_rtt = delay;\n"
        "\t\tif (ca->sample_cnt < HYSTART_MIN_SAMPLES) {\n",
        "\t\tif (ca->sample_cnt < HYSTART_MIN_SAMPLES) {\n"
        "\t\t\tif (ca->curr_rtt > delay)\n\t\t\t\tca->curr_rtt = delay;\n",
    ),
    SourcePatch(
        _CUBIC,
        "delays in eighths of a millisecond",
        "\tdelay = sample->rtt_us;\n\tif (delay == 0)\n\t\tdelay = 1;\n",
        "\tdelay = max_t(u32, sample->rtt_us / 125, 1) * 125;\n",
    ),
    SourcePatch(
        _CUBIC,
        "a look ahead by whole milliseconds",
        "\tt += usecs_to_jiffies(ca->delay_min);\n",
        "\tt += msecs_to_jiffies(ca->delay_min / USEC_PER_MSEC);\n",
    ),
)

COPIES: Mapping[str, tuple[str, tuple[SourcePatch, ...]]] = {
    name: (file, (_named(file, name), *changes))
    for name, (file, changes) in {
        "cubic_2": (_CUBIC, ()),
        "cubic_415": (_CUBIC, _CUBIC_AS_IN_4_15),
        "cubic_415_2": (_CUBIC, _CUBIC_AS_IN_4_15),
        "bbr_415": (_BBR, _BBR_AS_IN_4_15),
    }.items()
}
"""Congestion controller → the file of which it is a patched copy, and the patches.

Parameters are per module, not per connection: two flows with different parameters need two modules.
"""


def apply(folder: Path, *, is_foreign: bool = False) -> list[str]:
    """Patch the extracted source in place; patches that were applied already are skipped.

    Parameters
    ----------
    is_foreign
        Whether the source is a user's: patches that do not apply are left out.

    Returns
    -------
    list
        The purposes of patches that were left out.

    Raises
    ------
    PatchContextError
        If the source differs from the context of a patch, and is not a user's.
    """
    left_out = []
    for edit in EDITS:
        try:
            path = folder / edit.file
            text = _read(path, edit.file)
            if edit.after not in text:
                path.write_text(edit.applied_to(text), "utf-8")
        except PatchContextError:
            if not is_foreign:
                raise
            left_out.append(edit.why)
    return left_out


def copies(folder: Path, *, is_foreign: bool = False) -> tuple[dict[str, str], list[str]]:
    """Return the text of every copy by its file name, and the copies that were left out.

    Parameters
    ----------
    is_foreign
        Whether the source is a user's: copies whose patches do not apply are left out.

    Raises
    ------
    PatchContextError
        If the source differs from the context of a patch, and is not a user's.
    """
    found, left_out = {}, []
    for name, (file, changes) in COPIES.items():
        try:
            text = _read(folder / file, file)
            for change in changes:
                text = change.applied_to(text)
            found[copy_file(name)] = text
        except PatchContextError:
            if not is_foreign:
                raise
            left_out.append(name)
    return found, left_out


def copy_file(name: str) -> str:
    """Return the file name of a copy."""
    return f"tcp_{name}.c"


def write_if_changed(path: Path, text: str) -> None:
    """Write a file unless its text is equal, because make compares modification times."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _read(path: Path, file: str) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise PatchContextError(f"this kernel has no file {file}: {error.strerror}") from error
