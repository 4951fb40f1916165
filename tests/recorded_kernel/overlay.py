"""Draw the simulator's sawtooth over the kernel's, and print the numbers beside it.

Run `python tests/recorded_kernel/overlay.py docs/images`; the table goes to docs/validation.md by
hand.
"""

import sys
from pathlib import Path

import matplotlib as mpl
from jostle.figures.save import save
from jostle.figures.style import COLOURS, COLUMN_IN, DASHES, RC
from kernel_runs import SOLO, recorded, simulated
from matplotlib.figure import Figure


def overlay(name: str) -> Figure:
    """Draw cwnd and smoothed RTT of one flow alone, recorded and simulated."""
    setup, (kernel,) = recorded(name)
    (ours,) = simulated(setup)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(COLUMN_IN, 2.6), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True)
        for axis, quantity, label in (
            (upper, "cwnd_packets", "cwnd\n(packets)"),
            (lower, "srtt_ms", "SRTT\n(ms)"),
        ):
            for run, who, colour, dash in (
                (kernel, "Linux 6.1", COLOURS[0], DASHES[0]),
                (ours, "jostle", COLOURS[1], DASHES[1]),
            ):
                values = getattr(run, quantity)
                axis.plot(run.time_s, values, color=colour, linestyle=dash, label=who)
            axis.set_ylabel(label)
            axis.set_ylim(bottom=0)
        lower.set_xlabel("Time (s)")
        lower.set_xlim(0, setup["duration_s"])
        handles, labels = upper.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2, title=name)
    return figure


def row(name: str) -> str:
    """Format the numbers of one comparison as a row of a Markdown table."""
    setup, (kernel,) = recorded(name)
    (ours,) = simulated(setup)
    half_s, end_s = setup["duration_s"] / 2, setup["duration_s"]
    return (
        f"| {name} | {kernel.goodput_mbps(half_s, end_s):.2f} "
        f"| {ours.goodput_mbps(half_s, end_s):.2f} "
        f"| {kernel.mean_srtt_ms(half_s):.1f} | {ours.mean_srtt_ms(half_s):.1f} "
        f"| {kernel.retransmitted[-1]:.0f} | {ours.retransmitted[-1]:.0f} |"
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for controller in SOLO:
        save(overlay(controller), folder / f"kernel-{controller}", formats=("png",))
        print(row(controller))
