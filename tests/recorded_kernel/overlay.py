"""Draw the simulator's sawtooth over the kernel's; write tables of docs/results/validation.md.

Run `python tests/recorded_kernel/overlay.py`.
"""

import matplotlib as mpl
import validation_page as page
from jostle.figures.save import save
from jostle.figures.style import COLOURS, COLUMN_IN, DASHES, RC
from kernel_runs import PAIRS, SOLO, pair_shares, recorded, simulated
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
            # The kernel's line is wide and pale, so that both are visible where they coincide.
            for run, who, dash, form in (
                (kernel, "Linux 6.1", DASHES[1], {"linewidth": 2.6, "alpha": 0.45}),
                (ours, "simulator", DASHES[0], {}),
            ):
                values = getattr(run, quantity)
                axis.plot(run.time_s, values, color=COLOURS[0], linestyle=dash, label=who, **form)
            axis.set_ylabel(label)
            axis.set_ylim(bottom=0)
        lower.set_xlabel("Time (s)")
        lower.set_xlim(0, setup["duration_s"])
        handles, labels = upper.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2, title=name)
    return figure


def alone_row(name: str) -> str:
    """Run a flow alone, and give its row of the table."""
    setup, (kernel,) = recorded(name)
    (ours,) = simulated(setup)
    return page.alone_row(name, kernel, ours, setup["duration_s"])


def pair_row(name: str) -> str:
    """Run a pair with every start, and give its row of the table."""
    setup, _ = recorded(name)
    return page.pair_row(name, *pair_shares(name, setup))


if __name__ == "__main__":
    save(overlay("cubic"), page.DOCS / "images" / "kernel-cubic", formats=("png",))
    page.write(page.ALONE, map(alone_row, SOLO))
    page.write(page.PAIRS, map(pair_row, PAIRS))
