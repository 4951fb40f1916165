"""Patches of the kernel's files, which are few, small, and checked against their context.

A patch names a file and the text that it replaces, which must occur exactly once. If a kernel's
source has changed, the build fails with the name of the patch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    is_needed_without_text
        Whether a source without the text is an error. Otherwise such a source has the change.
    """

    file: str
    why: str
    before: str
    after: str
    is_needed_without_text: bool = True

    def applied_to(self, text: str) -> str:
        """Return the changed text.

        Raises
        ------
        PatchContextError
            If the text to replace does not occur exactly once.
        """
        count = text.count(self.before)
        if count == 0 and not self.is_needed_without_text:
            return text
        if count != 1:
            raise PatchContextError(
                f"{self.file} of this kernel is not as expected: the text to be changed "
                f"({self.why}) is there {count} times"
            )
        return text.replace(self.before, self.after)


HOOKS: tuple[SourcePatch, ...] = (
    # In `struct sk_buff`, 208 bytes become 216, and its memory remains 256 bytes: socket buffers
    # have room for as many packets as before.
    SourcePatch(
        "include/linux/skbuff.h",
        "room for what a controller of jostle knows of a sent packet",
        "\tchar\t\t\tcb[48] __aligned(8);\n",
        "\tchar\t\t\tcb[56] __aligned(8);\n",
    ),
    SourcePatch(
        "include/net/tcp.h",
        "packets in flight and lost when a packet was sent",
        "\t\t\tu64 delivered_mstamp;\n\t\t} tx;",
        "\t\t\tu64 delivered_mstamp;\n"
        "\t\t\t/* just after the last packet of the skb was sent */\n"
        "\t\t\tu32 jostle_in_flight;\n\t\t\tu32 jostle_lost;\n\t\t} tx;",
    ),
    SourcePatch(
        "include/net/tcp.h",
        "the same of the newest acknowledged packet",
        "\tbool is_ack_delayed;\t/* is this (likely) a delayed ACK? */\n};\n",
        "\tbool is_ack_delayed;\t/* is this (likely) a delayed ACK? */\n"
        "\tu32 jostle_in_flight;\n\tu32 jostle_lost;\n};\n",
    ),
    SourcePatch(
        "include/net/tcp.h",
        "calls of a controller of jostle",
        "\tvoid (*release)(struct sock *sk);\n} ____cacheline_aligned_in_smp;\n",
        "\tvoid (*release)(struct sock *sk);\n\n"
        "\t/* every ACK, after PRR; returns whether it has set the pacing rate */\n"
        "\tbool (*jostle_ack)(struct sock *sk, const struct rate_sample *rs, bool may_raise);\n"
        "\t/* an skb was sent, and is not yet counted as in flight */\n"
        "\tvoid (*jostle_sent)(struct sock *sk, struct sk_buff *skb);\n"
        "\t/* an skb was marked lost */\n"
        "\tvoid (*jostle_lost)(struct sock *sk, const struct sk_buff *skb);\n"
        "\t/* reason of the call of ssthresh that follows, if not fast recovery */\n"
        "\tvoid (*jostle_reason)(struct sock *sk, u8 reason);\n"
        "} ____cacheline_aligned_in_smp;\n\n"
        "enum { JOSTLE_TIMEOUT = 1, JOSTLE_CWR };\n"
        "/* sends what cwnd allows */\nvoid jostle_write(struct sock *sk);\n"
        "static inline void jostle_reason(struct sock *sk, u8 reason)\n{\n"
        "\tif (inet_csk(sk)->icsk_ca_ops->jostle_reason)\n"
        "\t\tinet_csk(sk)->icsk_ca_ops->jostle_reason(sk, reason);\n}\n",
    ),
    SourcePatch(
        "net/ipv4/tcp_rate.c",
        "a packet was sent",
        "\tTCP_SKB_CB(skb)->tx.is_app_limited\t= tp->app_limited ? 1 : 0;\n",
        "\tTCP_SKB_CB(skb)->tx.is_app_limited\t= tp->app_limited ? 1 : 0;\n"
        "\tTCP_SKB_CB(skb)->tx.jostle_in_flight =\n"
        "\t\ttcp_packets_in_flight(tp) + tcp_skb_pcount(skb);\n"
        "\tTCP_SKB_CB(skb)->tx.jostle_lost = tp->lost;\n"
        "\tif (inet_csk(sk)->icsk_ca_ops->jostle_sent)\n"
        "\t\tinet_csk(sk)->icsk_ca_ops->jostle_sent(sk, skb);\n",
    ),
    SourcePatch(
        "net/ipv4/tcp_rate.c",
        "the newest acknowledged packet",
        "\t\trs->last_end_seq     = scb->end_seq;\n",
        "\t\trs->last_end_seq     = scb->end_seq;\n"
        "\t\trs->jostle_in_flight = scb->tx.jostle_in_flight;\n"
        "\t\trs->jostle_lost\t     = scb->tx.jostle_lost;\n",
    ),
    SourcePatch(
        "net/ipv4/tcp_output.c",
        "packets of a divided skb",
        "\tTCP_SKB_CB(buff)->tx = TCP_SKB_CB(skb)->tx;\n",
        "\tTCP_SKB_CB(buff)->tx = TCP_SKB_CB(skb)->tx;\n"
        "\tTCP_SKB_CB(skb)->tx.jostle_in_flight -= tcp_skb_pcount(buff);\n",
    ),
    SourcePatch(
        "net/ipv4/tcp_output.c",
        "packets to send after a timer of a controller",
        "\t\ttcp_write_xmit(sk, tcp_current_mss(sk), tp->nonagle,\n"
        "\t\t\t       0, GFP_ATOMIC);\n\t}\n}\n",
        "\t\ttcp_write_xmit(sk, tcp_current_mss(sk), tp->nonagle,\n"
        "\t\t\t       0, GFP_ATOMIC);\n\t}\n}\n\n"
        "void jostle_write(struct sock *sk)\n{\n\ttcp_tsq_write(sk);\n}\n"
        "EXPORT_SYMBOL_GPL(jostle_write);\nEXPORT_SYMBOL_GPL(tcp_mstamp_refresh);\n",
    ),
    SourcePatch(
        "net/ipv4/tcp_input.c",
        "a packet was marked lost",
        "\ttp->lost += tcp_skb_pcount(skb);\n}\n",
        "\tstruct sock *sk = (struct sock *)tp;\n\n"
        "\ttp->lost += tcp_skb_pcount(skb);\n"
        "\tif (inet_csk(sk)->icsk_ca_ops->jostle_lost)\n"
        "\t\tinet_csk(sk)->icsk_ca_ops->jostle_lost(sk, skb);\n}\n",
    ),
    SourcePatch(
        "net/ipv4/tcp_input.c",
        "a timeout is the reason of a reduction",
        "\t\ttp->snd_ssthresh = icsk->icsk_ca_ops->ssthresh(sk);\n",
        "\t\tjostle_reason(sk, JOSTLE_TIMEOUT);\n"
        "\t\ttp->snd_ssthresh = icsk->icsk_ca_ops->ssthresh(sk);\n",
    ),
    SourcePatch(
        "net/ipv4/tcp_input.c",
        "a mark or a request is the reason of a reduction",
        "\t\ttp->undo_marker = 0;\n\t\ttcp_init_cwnd_reduction(sk);\n",
        "\t\ttp->undo_marker = 0;\n\t\tjostle_reason(sk, JOSTLE_CWR);\n"
        "\t\ttcp_init_cwnd_reduction(sk);\n",
    ),
    SourcePatch(
        "net/ipv4/tcp_input.c",
        "an ACK was processed",
        "\tif (icsk->icsk_ca_ops->cong_control) {\n\t\ticsk->icsk_ca_ops->cong_control(sk,",
        "\tif (icsk->icsk_ca_ops->jostle_ack) {\n"
        "\t\tbool reducing = tcp_in_cwnd_reduction(sk);\n"
        "\t\tbool may_raise = !reducing && tcp_may_raise_cwnd(sk, flag);\n\n"
        "\t\tif (!icsk->icsk_ca_ops->cong_control) {\n"
        "\t\t\tif (reducing)\n"
        "\t\t\t\ttcp_cwnd_reduction(sk, acked_sacked, rs->losses, flag);\n"
        "\t\t\telse if (may_raise)\n"
        "\t\t\t\ttcp_sk(sk)->snd_cwnd_stamp = tcp_jiffies32;\n"
        "\t\t}\n"
        "\t\tif (!icsk->icsk_ca_ops->jostle_ack(sk, rs, may_raise))\n"
        "\t\t\ttcp_update_pacing_rate(sk);\n\t\treturn;\n\t}\n"
        "\tif (icsk->icsk_ca_ops->cong_control) {\n\t\ticsk->icsk_ca_ops->cong_control(sk,",
    ),
)
"""Patches by which jostle's controllers learn what a module of Linux cannot (`tcp_jostle.c`).

Linux's own controllers have none of these functions, and behave as without the patches.
"""

WITHOUT_HOOKS = "hooks for jostle's controllers"
"""Entry in the list of changes that were left out, if a user's source has no place for `HOOKS`."""

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
    # The handler of timers, which run most of the time in virtual time, reads no such register.
    SourcePatch(
        "arch/um/os-Linux/signal.c",
        "no clearing of those registers at each timer",
        "\telse\n\t\tmemset(&regs, 0, sizeof(regs));\n",
        "\telse {\n\t\tmemset(regs.gp, 0, sizeof(regs.gp));\n"
        "\t\tmemset(&regs.faultinfo, 0,\n"
        "\t\t       sizeof(regs) - __builtin_offsetof(struct uml_pt_regs, faultinfo));\n\t}\n",
    ),
    # A fault is six changes between processes of the host. Linux sets the entries of up to 16 pages
    # of a file around one that is read. For writes, 8 pages get memory: stacks of threads use few.
    SourcePatch(
        "arch/um/kernel/trap.c",
        "pages around one that is written get memory",
        "/*\n * Note this is constrained to return 0, -EFAULT, -EACCES, -ENOMEM by\n",
        "static void jostle_write_around(struct vm_area_struct *vma, unsigned long address)\n{\n"
        "\tunsigned long end = min(vma->vm_end, (address | 0x7fffUL) + 1);\n\n"
        "\tif (vma->vm_flags & VM_SHARED)\n\t\treturn;\n"
        "\taddress = max(vma->vm_start, address & ~0x7fffUL);\n"
        "\tfor (; address < end; address += PAGE_SIZE) {\n"
        "\t\tpte_t *pte = pte_offset_kernel(pmd_off(vma->vm_mm, address), address);\n\n"
        "\t\tif (pte_none(*pte) &&\n"
        "\t\t    handle_mm_fault(vma, address, FAULT_FLAG_WRITE | FAULT_FLAG_USER, NULL) &\n"
        "\t\t    VM_FAULT_ERROR)\n\t\t\treturn;\n\t}\n}\n\n"
        "/*\n * Note this is constrained to return 0, -EFAULT, -EACCES, -ENOMEM by\n",
    ),
    SourcePatch(
        "arch/um/kernel/trap.c",
        "pages around a fault are mapped with it",
        "\terr = 0;\n\t/*\n\t * The below warning",
        "\terr = 0;\n\tif (is_user && is_write)\n\t\tjostle_write_around(vma, address);\n"
        "\tif (is_user)\n"
        "\t\tflush_tlb_range(vma, max(vma->vm_start, address & ~0xffffUL),\n"
        "\t\t\t\tmin(vma->vm_end, (address | 0xffffUL) + 1));\n"
        "\t/*\n\t * The below warning",
    ),
    # A thread has the mappings of its process. Mapping them again took 16 ms for the thousandth
    # thread. Linux 6.12 maps none again.
    SourcePatch(
        "arch/um/kernel/process.c",
        "a new thread maps nothing again",
        "\tforce_flush_all();\n\n\tschedule_tail(",
        "\tif (atomic_read(&current->mm->mm_users) == 1)\n\t\tforce_flush_all();\n\n"
        "\tschedule_tail(",
        is_needed_without_text=False,
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
    *HOOKS,
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
    # Each hook needs the others.
    groups = [(edit.why, (edit,)) for edit in EDITS if edit not in HOOKS]
    for why, edits in (*groups, (WITHOUT_HOOKS, HOOKS)):
        try:
            changed = _changed(folder, edits)
        except PatchContextError:
            if not is_foreign:
                raise
            left_out.append(why)
            continue
        for path, text in changed.items():
            write_if_changed(path, text)
    return left_out


def _changed(folder: Path, edits: Iterable[SourcePatch]) -> dict[Path, str]:
    """Return the texts of the files that patches change."""
    texts: dict[Path, str] = {}
    for edit in edits:
        path = folder / edit.file
        text = texts.get(path) or _read(path, edit.file)
        texts[path] = text if edit.after in text else edit.applied_to(text)
    return texts


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
