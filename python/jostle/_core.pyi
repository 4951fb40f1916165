"""The compiled engine."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

ENGINE_VERSION: Final[str]
"""Version of the package and a hash of the engine's source."""

DISSECT_VERSION: Final[str]
"""A hash of the source of what measures captures."""

RECORD_VERSION: Final[str]
"""A hash of the source of what measures."""

class Cancelled(Exception):  # noqa: N818 (what happened is no error)
    """A run was cancelled before its end."""

class ControllerError(Exception):
    """A controller written in Python failed; the text names the file and the line."""

@final
class Record:
    """What a run leaves behind.

    Columns are arrays of one length per table; values that do not exist are NaN.
    """

    @property
    def summary(self) -> str:
        """The measures per phase, as a JSON document."""
    @property
    def flows(self) -> dict[str, npt.NDArray[np.generic]]:
        """One row per interval and flow; `flow` counts the spec's flows, `mode` is a code."""
    @property
    def links(self) -> dict[str, npt.NDArray[np.generic]]:
        """One row per interval and link; `link` counts the spec's links."""
    @property
    def internals(self) -> dict[str, npt.NDArray[np.generic]]:
        """One row per interval, flow and quantity that its controller shows."""
    @property
    def acks(self) -> dict[str, npt.NDArray[np.generic]] | None:
        """One row per ACK, if the spec asks for it."""
    @property
    def transfers(self) -> dict[str, npt.NDArray[np.generic]] | None:
        """One row per transfer of flows that are many connections, if there are any."""
    @property
    def modes(self) -> list[str]:
        """What the codes of `flows["mode"]` mean."""
    @property
    def quantities(self) -> list[str]:
        """What the codes of `internals["quantity"]` mean."""

@final
class Measurement:
    """What was measured of captures that belong together."""

    @property
    def files(self) -> list[int]:
        """The files, as positions of what was given."""
    @property
    def spec(self) -> str:
        """What stands for the specification of a run, as JSON."""
    @property
    def record(self) -> Record:
        """The measures and all columns."""
    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
    @property
    def packets(self) -> int:
        """Packets in the files."""

def analyze_captures(
    files: Sequence[str | PathLike[str]],
    *,
    flows: int,
    interval_ns: int,
    told: Callable[[int], bool] | None = None,
) -> list[Measurement]:
    """Measure captures (pcap or pcapng, plain or compressed by gzip or zstd).

    Parameters
    ----------
    files
        Those that belong together become one measurement.
    flows
        Most flows of a measurement, the largest ones.
    interval_ns
        Bin of the series.
    told
        Called every now and then with the bytes read so far (each file is read twice); true stops.

    Raises
    ------
    ValueError
        If a file is no capture, or has nothing that can be measured.
    OSError
        If a file cannot be read.
    Cancelled
        If `told` said so.
    """

@final
class Diagram:
    """A flow, packet by packet. Bytes count from the first one of data."""

    @property
    def file(self) -> int:
        """The file, as a position of what was given."""
    @property
    def flow(self) -> str:
        """Name of the flow."""
    @property
    def controller(self) -> str:
        """Its controller, if the file says it."""
    @property
    def is_near_sender(self) -> bool:
        """Whether it was captured near the sender."""
    @property
    def start_ns(self) -> int:
        """When the flow began."""
    @property
    def from_ns(self) -> int:
        """Part of the clock that the tables cover."""
    @property
    def to_ns(self) -> int:
        """Its end."""
    @property
    def is_cut(self) -> bool:
        """Whether there were more rows: `to_ns` is earlier than asked for."""
    @property
    def kinds(self) -> list[str]:
        """Names of what `packets["kind"]` counts."""
    @property
    def packets(self) -> dict[str, npt.NDArray[Any]]:
        """Packets of data: `time_ns`, `start`, `end`, `kind`."""
    @property
    def answers(self) -> dict[str, npt.NDArray[Any]]:
        """Segments of the receiver: `time_ns`, `acknowledged`, `edge` (NaN where not known)."""
    @property
    def sacks(self) -> dict[str, npt.NDArray[Any]]:
        """Blocks of selective acknowledgements: `time_ns`, `start`, `end`, `is_duplicate`."""

def sequence_diagrams(
    files: Sequence[str | PathLike[str]],
    *,
    flow: str | None,
    from_ns: int,
    to_ns: int,
    rows: int,
    flows: int,
    told: Callable[[int], bool] | None = None,
) -> list[Diagram]:
    """Read a TCP flow of captures packet by packet: what a time–sequence diagram is drawn from.

    Parameters
    ----------
    files
        Of those that belong together the one near the flow's sender is read.
    flow
        Its name; of each measurement the flow with the most payload if none is given.
    from_ns, to_ns
        A window on the clock of the measurement, its end excluded.
    rows
        Rows of each table at most.
    flows
        Most flows of a measurement, the largest ones, among which the flow is.
    told
        As in `analyze_captures`.

    Raises
    ------
    ValueError
        If a file is no capture, or none has the flow.
    OSError
        If a file cannot be read.
    Cancelled
        If `told` said so.
    """

@final
class Series:
    """The series of a run, asked for measures over any window.

    Parameters
    ----------
    spec_json
        The RunSpec.
    facts
        What the summary has of each flow beside its phases: `start_s`, `completion_s`, `pings`.
    flows, links
        Columns of the series, rows in order of time, then of the spec.

    Raises
    ------
    ValueError
        If these are not of one run.
    """

    def __new__(
        cls,
        spec_json: str,
        facts: list[dict[str, Any]],
        flows: dict[str, npt.NDArray[Any]],
        links: dict[str, npt.NDArray[Any]],
    ) -> Series: ...
    def over(self, measure: str, position: int, from_s: float, to_s: float) -> float | None:
        """Compute a measure over a window, of the flow or the link at a position."""
    def bins(
        self, measure: str, position: int, from_s: float, to_s: float, bin_s: float | None = None
    ) -> npt.NDArray[np.float64]:
        """Compute a measure in each bin of a window, by default the series' own; NaN if absent."""
    def span_of_shares(
        self, position: int, from_share: float, to_share: float
    ) -> tuple[float, float]:
        """Find when the flow at a position had delivered two shares, 0 … 1, of its bytes."""
    def asked(
        self,
        measure: str,
        flow: str,
        *,
        size_bytes: int | None = None,
        percentile: float | None = None,
        above_ms: float | None = None,
        below_ms: float | None = None,
    ) -> float | None:
        """Compute a measure of the whole run, of a flow given by its name."""

@final
class Episodes:
    """Simulations of one shape in which Python decides for some flows, stepped by threads.

    Parameters
    ----------
    count
        How many.
    designs
        One per learner in each.
    threads
        How many threads carry steps out.

    Raises
    ------
    ValueError
        If a design is none.
    """

    def __new__(cls, count: int, designs: list[str], threads: int) -> Episodes: ...
    def reset(self, which: list[int], specs: list[str], flows: list[list[int]]) -> _Stepped:
        """Begin simulations anew, and let each go on to its first decision; as from `step`.

        Parameters
        ----------
        which
            Their places.
        specs
            A RunSpec for each, as JSON.
        flows
            Positions of the learners in each, whose controllers have names of no registry.
        """
    def step(self, actions: npt.NDArray[np.float64]) -> _Stepped:
        """Leave actions for learners, and go on to where the next interval of one of them ends.

        Parameters
        ----------
        actions
            One after the other: simulations, learners, numbers of their actions.

        Returns
        -------
        tuple
            Observations, the values of the latest intervals, which learners' intervals end now,
            which episodes are over, and the time in each in seconds: flat arrays.
        """
    def finish(self, which: int) -> Record:
        """Let a simulation go on to the end of the run without another decision, and end it."""

_Stepped = tuple[
    npt.NDArray[np.float32],
    npt.NDArray[np.float64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    npt.NDArray[np.float64],
]

@final
class Policy:
    """A policy: what the controller `learned` has in its file.

    Parameters
    ----------
    file
        Content of the file.

    Raises
    ------
    ValueError
        If it is none: what is wrong, and in which line.
    """

    def __new__(cls, file: bytes) -> Policy: ...
    @property
    def inputs(self) -> int:
        """Numbers in an observation."""
    @property
    def outputs(self) -> int:
        """Numbers in an action."""
    def act(self, observation: npt.NDArray[np.float32]) -> list[float]:
        """Return the action for an observation, before it is held within its bounds."""

def learning() -> tuple[list[tuple[str, str, float, float, float]], list[str]]:
    """Return what there is to observe.

    Returns
    -------
    tuple
        The features, each with name, description, least and largest value and the value before the
        first interval; the names of the values of an interval.
    """

def design(text: str) -> tuple[int, list[tuple[float, float]]]:
    """Read a design.

    Returns
    -------
    tuple
        Numbers in an observation; least and largest value of each number of an action.

    Raises
    ------
    ValueError
        If it is none: what is wrong, and in which line.
    """

def record_of_samples(
    spec_json: str,
    time_ns: npt.NDArray[np.int64],
    flows: Sequence[dict[str, Any]],
    links: Sequence[dict[str, Any]],
) -> Record:
    """Measure a run of which samples are known.

    Parameters
    ----------
    spec_json
        The RunSpec.
    time_ns
        When samples were taken.
    flows, links
        What was seen of each: arrays of a value per sample, counters so far and states.

    Raises
    ------
    ValueError
        If the spec is none, or makes no sense, or the samples are none of it.
    """

def run(
    spec_json: str,
    cancelled: Callable[[], Any] | None = None,
    capture_folder: str | PathLike[str] | None = None,
    make_controller: Callable[[str, Mapping[str, Any], int], object] | None = None,
) -> Record:
    """Run a RunSpec given as JSON, without holding the interpreter's lock.

    Parameters
    ----------
    spec_json
        The RunSpec.
    cancelled
        Asked every 50 ms or so whether to give up.
    capture_folder
        Where the packets' headers go, if the spec asks for them: an empty folder.

    Raises
    ------
    ValueError
        If the spec is none, or makes no sense.
    Cancelled
        If `cancelled` returned true. What it raises is passed on, as is Ctrl-C.
    ControllerError
        If a controller written in Python failed.
    RuntimeError
        If the simulator failed. That is a bug; the message has all it takes to repeat it.
    """

def check(spec_json: str) -> None:
    """Check a RunSpec given as JSON.

    Raises
    ------
    ValueError
        If it is none, or makes no sense.
    """

def find_problem(spec_json: str) -> tuple[str | None, str, tuple[int, int, int] | None] | None:
    """Find out what is wrong with a RunSpec given as JSON.

    Returns
    -------
    tuple or None
        The place, such as ``links[0].delay.steps[0].delay_ns`` (None if the text is no RunSpec);
        the message; and for a number out of range the number, the smallest and the largest
        accepted.
    """

def check_file(registry: str, row: str, parameter: str, content: bytes) -> None:
    """Check the content of a file that a parameter names.

    Raises
    ------
    ValueError
        What is wrong with it, and where; or if there is no such parameter.
    """

def toml_lines(text: str) -> dict[str | int, tuple[int, Any]]:
    """Return the lines, counted from 1, of all tables, keys and elements of a TOML text.

    Returns
    -------
    dict
        Key, or position in a list → the line, and the same of what lies below (None for a single
        value). A table's line is that of its first header or key.

    Raises
    ------
    ValueError
        If it is not TOML.
    OverflowError
        If more than a few of its numbers have more than 64 bits.
    RecursionError
        If it nests deeper than 80 levels.
    """

def draw_quantities(quantities_json: list[str], seed: int, name: str, count: int) -> list[int]:
    """Draw so many values of quantities from a named stream, in turn, as a simulation draws them.

    Parameters
    ----------
    quantities_json
        The quantities, as a RunSpec has them.
    seed
        Of the run.
    name
        Of the stream, as `flow/web/sizes`.
    count
        How many values.

    Returns
    -------
    list of int
        Whole bytes or nanoseconds.

    Raises
    ------
    ValueError
        If one is no quantity, or makes no sense.
    """

def draw_impairments(
    spec_json: str, link: int, points: int, cancelled: Callable[[], bool] | None = None
) -> dict[str, Any]:
    """Draw what a link's random parts will do in a run, to be played back elsewhere.

    Parameters
    ----------
    spec_json
        The RunSpec.
    link
        Position of the link.
    points
        Values of jitter at most.
    cancelled
        Asked now and then whether to stop.

    Returns
    -------
    dict
        `outages_ns`, start and end of each in turn; `rate_steps`, time in ns and bit/s of each in
        turn if the rate is random; `jitter_ns`, delays beyond the base delay
        every `jitter_step_ns`, linear in between; `jitter_seed`, `queue_seed` and `loss_seed` of
        the streams of decisions per packet; `loss_bad`, whether a Gilbert–Elliott chain starts in
        its bad state, and `loss_drawn`, how many numbers of its stream are used up.

    Raises
    ------
    Cancelled
        If `cancelled` returned true. What it raises is passed on.
    ValueError
        If the spec is none, or makes no sense, or has no such link.
    """

def capture_from_ring(
    spec_json: str,
    flow: int,
    end: str,
    *,
    system: str,
    start_ns: int,
    received: int,
    dropped: int,
    blocks: str | PathLike[str],
    folder: str | PathLike[str],
    secrets: str = "",
) -> int:
    """Write what a packet socket of the kernel captured as a pcapng file.

    Parameters
    ----------
    spec_json
        The RunSpec.
    flow
        Position of the flow.
    end
        `sender` or `receiver`.
    system
        What the packets went through.
    start_ns
        What the clock of the packets showed at the start of the run.
    received, dropped
        Packets that the socket saw, and those of them that it had no room for.
    blocks
        The filled blocks of the socket's ring (TPACKET_V3), one after the other.
    folder
        Where the file goes.
    secrets
        What opens the packets, in lines of the form of `SSLKEYLOGFILE`.

    Returns
    -------
    int
        Packets in the file.

    Raises
    ------
    ValueError
        If the spec makes no sense or has no such end, or `blocks` is damaged.
    OSError
        On reading and writing.
    """

def registry() -> str:
    """All registries as a JSON document: lists of rows by kind."""

def run_spec_schema() -> str:
    """JSON Schema of a RunSpec."""

@final
class Emulation:
    """What an emulation leaves behind."""

    @property
    def summary(self) -> str:
        """Counts, utilisation and lateness, as a JSON document."""
    @property
    def events(self) -> dict[str, npt.NDArray[np.generic]] | None:
        """One row per drop or mark, if the spec asks for them.

        `direction` is 0 for forward; `link` counts its links, `reason` counts `reasons`, `flow`
        counts `flows` and is 2³² - 1 for what was no IP packet.
        """
    @property
    def flows(self) -> list[tuple[int, str, int, str, int]]:
        """Protocol, source, its port, destination, its port."""
    @property
    def reasons(self) -> list[str]:
        """What the codes of `events["reason"]` mean."""

@final
class Emulator:
    """Links between two TUN devices, in real time. There is none but on Linux."""

    def __new__(cls, spec_json: str, first: str, second: str) -> Emulator:
        """Make both devices in the present network namespace.

        Parameters
        ----------
        spec_json
            Links `forward` from the first device to the second and `reverse`, `seed`,
            `mtu_bytes`, `lateness_bound_ns`, `journal`.
        first, second
            Names of the devices.

        Raises
        ------
        ValueError
            If the specification makes no sense.
        OSError
            If a device cannot be made.
        """
    def run(self) -> Emulation:
        """Carry packets until it is stopped, without holding the interpreter's lock.

        The time of the links begins now. It can be done once.

        Raises
        ------
        OSError
            If a device is gone.
        """
    def stop(self) -> None:
        """End it, from any thread."""
