"""The compiled engine."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

ENGINE_VERSION: Final[str]
"""Version of the package, with a hash of all engine sources."""

PCAP_ANALYSIS_VERSION: Final[str]
"""Hash of the sources that analyse captures."""

METRICS_VERSION: Final[str]
"""Hash of the sources that compute measures."""

class CancelledError(Exception):
    """A run was cancelled before its end."""

class ControllerError(Exception):
    """A controller of the user failed; the text names the file and the line."""

@final
class RunRecord:
    """Summary and time series of a run.

    All columns of a table have equal length. Missing values are NaN.
    """

    @property
    def summary(self) -> str:
        """The measures per phase, as canonical JSON."""
    @property
    def flows(self) -> dict[str, npt.NDArray[np.generic]]:
        """One row per interval and flow; `flow` is an index into the spec, `mode` is a code."""
    @property
    def links(self) -> dict[str, npt.NDArray[np.generic]]:
        """One row per interval and link; `link` is an index into the spec."""
    @property
    def internals(self) -> dict[str, npt.NDArray[np.generic]]:
        """One row per interval, flow and internal quantity of its controller."""
    @property
    def acks(self) -> dict[str, npt.NDArray[np.generic]] | None:
        """One row per ACK, if the spec requests them."""
    @property
    def transfers(self) -> dict[str, npt.NDArray[np.generic]] | None:
        """One row per transfer of multi-connection flows; None without such flows."""
    @property
    def modes(self) -> list[str]:
        """Names of the codes in `flows["mode"]`."""
    @property
    def quantities(self) -> list[str]:
        """Names of the codes in `internals["quantity"]`."""

@final
class Measurement:
    """Measures of one capture, or of captures that belong together."""

    @property
    def files(self) -> list[int]:
        """Indices of the files in the list passed to `analyze_captures`."""
    @property
    def spec(self) -> str:
        """Run specification that describes the flows, as JSON."""
    @property
    def record(self) -> RunRecord:
        """Summary and time series."""
    @property
    def notes(self) -> list[str]:
        """Notes for the user, for example about truncated files."""
    @property
    def packets(self) -> int:
        """Number of packets in the files."""

def capture_formats() -> list[tuple[str, list[str]]]:
    """Return kinds of formats of captures with the formats of each kind that are read."""

def analyze_captures(
    files: Sequence[str | PathLike[str]],
    *,
    flows: int,
    interval_ns: int,
    progress_callback: Callable[[int], bool] | None = None,
) -> list[Measurement]:
    """Measure packet captures, plain or compressed with gzip or zstd.

    Parameters
    ----------
    files
        Captures. Captures of both ends of a connection become one measurement.
    flows
        Maximum number of flows per measurement. The largest ones are measured.
    interval_ns
        Sampling interval of the time series.
    progress_callback
        Called regularly with the bytes read so far (each file is read twice). Return true to stop.

    Raises
    ------
    ValueError
        If a file is not a capture, or contains no flow with data.
    OSError
        If a file cannot be read.
    CancelledError
        If `progress_callback` returned true.
    """

@final
class TimeSequence:
    """Packets and ACKs of one flow. Bytes are counted from the first byte of data."""

    @property
    def file(self) -> int:
        """Index of the file in the list of files."""
    @property
    def flow(self) -> str:
        """Name of the flow."""
    @property
    def controller(self) -> str:
        """Congestion controller, if the file names it, else `unknown`."""
    @property
    def is_near_sender(self) -> bool:
        """Whether it was captured near the sender."""
    @property
    def start_ns(self) -> int:
        """Start of the flow."""
    @property
    def from_ns(self) -> int:
        """Start of the time that the tables cover."""
    @property
    def to_ns(self) -> int:
        """End of that time."""
    @property
    def is_cut(self) -> bool:
        """Whether rows were omitted because a table was full; then `to_ns` is earlier."""
    @property
    def kinds(self) -> list[str]:
        """Names of the codes in `packets["kind"]`."""
    @property
    def packets(self) -> dict[str, npt.NDArray[Any]]:
        """Data packets: `time_ns`, `start`, `end`, `kind`."""
    @property
    def answers(self) -> dict[str, npt.NDArray[Any]]:
        """ACKs of the receiver: `time_ns`, `acknowledged`, `edge` (NaN if the scale is unknown)."""
    @property
    def sacks(self) -> dict[str, npt.NDArray[Any]]:
        """SACK blocks: `time_ns`, `start`, `end`, `is_duplicate`."""

def sequence_diagrams(
    files: Sequence[str | PathLike[str]],
    *,
    flow: str | None,
    from_ns: int,
    to_ns: int,
    rows: int,
    flows: int,
    progress_callback: Callable[[int], bool] | None = None,
) -> list[TimeSequence]:
    """Read the packets and ACKs of TCP flows in captures, the data of time–sequence diagrams.

    Parameters
    ----------
    files
        Captures. If both ends were captured, the capture near the flow's sender is used.
    flow
        Name of the flow. None: the largest TCP flow of each file.
    from_ns, to_ns
        Time window on the clock of the measurement; the end is exclusive.
    rows
        Maximum number of rows per table.
    flows
        Maximum number of flows per measurement. The flow must be among the largest ones.
    progress_callback
        As in `analyze_captures`.

    Raises
    ------
    ValueError
        If a file is not a capture, or none contains the flow.
    OSError
        If a file cannot be read.
    CancelledError
        If `progress_callback` returned true.
    """

@final
class Series:
    """Time series of a run, from which measures are computed.

    Parameters
    ----------
    spec_json
        The RunSpec.
    facts
        Per flow, values of the summary that are not per phase: `start_s`, `completion_time_s`,
        `pings`.
    flows, links
        Columns of the series. Rows are sorted by time, then in the order of the spec.

    Raises
    ------
    ValueError
        If the arguments do not belong to one run.
    """

    def __new__(
        cls,
        spec_json: str,
        facts: list[dict[str, Any]],
        flows: dict[str, npt.NDArray[Any]],
        links: dict[str, npt.NDArray[Any]],
    ) -> Series: ...
    def window_measure(
        self, measure: str, position: int, from_s: float, to_s: float
    ) -> float | None:
        """Compute a measure over a time window, for the flow or link with an index."""
    def bins(
        self, measure: str, position: int, from_s: float, to_s: float, bin_s: float | None = None
    ) -> npt.NDArray[np.float64]:
        """Compute a measure in each bin of a time window; the default is the sampling interval."""
    def span_of_shares(
        self, position: int, from_share: float, to_share: float
    ) -> tuple[float, float]:
        """Return the times at which a flow had delivered two shares, 0 … 1, of its bytes."""
    def run_measure(
        self,
        measure: str,
        flow: str,
        *,
        size_bytes: int | None = None,
        percentile: float | None = None,
        above_ms: float | None = None,
        below_ms: float | None = None,
    ) -> float | None:
        """Compute a measure of the complete run, for the flow with a name."""

@final
class Episodes:
    """A batch of simulations with equal agents, which Python controls; stepped by threads.

    Parameters
    ----------
    count
        Number of simulations.
    designs
        One design per agent.
    threads
        Number of threads.

    Raises
    ------
    ValueError
        If a design is not valid.
    """

    def __new__(cls, count: int, designs: list[str], threads: int) -> Episodes: ...
    def reset(self, which: list[int], specs: list[str], flows: list[list[int]]) -> _Stepped:
        """Restart simulations and run each to its first decision. Return values as from `step`.

        Parameters
        ----------
        which
            Indices of the simulations.
        specs
            A RunSpec per simulation, as JSON.
        flows
            Indices of the agents' flows in each spec. Their controllers must not be in the
            registry.
        """
    def step(self, actions: npt.NDArray[np.float64]) -> _Stepped:
        """Set the actions of all agents, and run until a monitor interval of an agent ends.

        Parameters
        ----------
        actions
            Flat array: for each simulation, the action of each agent.

        Returns
        -------
        tuple
            Flat arrays: observations, values of the last intervals, which agents' intervals end
            now, which episodes are over, and the time of each simulation in seconds.
        """
    def finish(self, which: int) -> RunRecord:
        """Run a simulation to the end without further actions, and remove it."""

_Stepped = tuple[
    npt.NDArray[np.float32],
    npt.NDArray[np.float64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    npt.NDArray[np.float64],
]

@final
class Policy:
    """A policy, the content of a file of the controller `learned`.

    Parameters
    ----------
    file
        Content of the file.

    Raises
    ------
    ValueError
        If the file is not valid, with the line and the problem.
    """

    def __new__(cls, file: bytes) -> Policy: ...
    @property
    def inputs(self) -> int:
        """Length of an observation."""
    @property
    def outputs(self) -> int:
        """Length of an action."""
    def act(self, observation: npt.NDArray[np.float32]) -> list[float]:
        """Return the action for an observation, before it is clamped to its bounds."""

def learning_features() -> tuple[list[tuple[str, str, float, float, float]], list[str]]:
    """Return the features that an observation can contain.

    Returns
    -------
    tuple
        The features, each with name, description, minimum, maximum, and the value before the first
        interval; and the names of the values of an interval.
    """

def design(text: str) -> tuple[int, list[tuple[float, float]]]:
    """Parse a design.

    Returns
    -------
    tuple
        Length of an observation; minimum and maximum of each component of an action.

    Raises
    ------
    ValueError
        If the design is not valid, with the line and the problem.
    """

class Step:
    """Action of an application.

    Attributes
    ----------
    waits
        Whether the application waits before its connection opens.
    write_bytes
        Number of bytes to write.
    writes_forever
        Whether to write without limit.
    is_last
        Whether no message follows before the written bytes are acknowledged.
    next_ns
        Time of the next action; None if that depends on acknowledgements or requests.
    """

    waits: bool
    write_bytes: int | None
    writes_forever: bool
    is_last: bool
    next_ns: int | None

class Application:
    """Application of a connection whose endpoints are sockets. Times are in ns of the run.

    Attributes
    ----------
    is_requested_by_receiver
        Whether the receiver requests each message after the first.
    """

    is_requested_by_receiver: bool

    def act(self, now_ns: int) -> Step:
        """Act when the connection opens, and at each time that the application asked for."""
    def on_acknowledged(self, now_ns: int, retransmitted_packets: int) -> int | None:
        """Handle the acknowledgement of all messages.

        Returns
        -------
        int or None
            Time of the next action; None after the last message.
        """
    def next_message_bytes(self) -> int | None:
        """Return the size of the next message that the receiver waits for; None after the last."""
    def on_received(self, now_ns: int) -> int | None:
        """Handle the completion of the oldest message at the receiver.

        Returns
        -------
        int or None
            Time at which the receiver requests the next message; None if it requests none.
        """
    def messages(self, retransmitted_packets: int) -> str:
        """Return the log of all messages, for `record_of_samples`."""

class Browser:
    """Web browser whose requests are not lost. Times are in ns of the run.

    Its steps are `("open", line)`, `("send", connection)`, `("close", connection)` and
    `("wake", time)`.

    Attributes
    ----------
    request_bytes
        Size of a request.
    """

    request_bytes: int

    def on_time(self, now_ns: int) -> list[tuple[str, int]]:
        """Start the browser, or perform what is due; return its steps."""
    def opened(self, line: int, connection: int) -> None:
        """Assign the number `connection` to an opened `line`."""
    def on_request(self, connection: int) -> int | None:
        """Return the size of the object of a request that reached the server.

        None if the page was abandoned.
        """
    def on_object(self, connection: int, now_ns: int) -> list[tuple[str, int]]:
        """Handle an object that is complete at the browser; return steps."""
    def awaited_bytes(self, connection: int) -> int | None:
        """Return the size of the oldest object that a connection waits for; None if it is idle."""
    def stop(self) -> list[tuple[str, int]]:
        """Stop the browser, which abandons its page; return steps."""
    def pages(self) -> str:
        """Return the log of all pages, for `record_of_samples`."""

class SlowReader:
    """Slow application at a receiver.

    Attributes
    ----------
    read_bytes
        Maximum number of bytes of one read.
    """

    @property
    def read_bytes(self) -> int: ...
    def next_read_ns(self, now_ns: int) -> int:
        """Return the time at which it reads data that are available at `now_ns`."""
    def on_read(self, now_ns: int, size_bytes: int) -> None:
        """Handle a read of a number of bytes."""

class Traffic:
    """Applications of a run, for backends that own sockets, threads and clocks.

    Parameters
    ----------
    spec_json
        The RunSpec.

    Raises
    ------
    ValueError
        If it is not valid.
    """

    def __new__(cls, spec_json: str) -> Traffic: ...
    def application(self, flow: int, connection: int | None = None) -> Application:
        """Return the application of a flow, or of one of its connections."""
    def arrivals_ns(self, flow: int) -> list[int]:
        """Return the times at which the connections of a flow open during the run."""
    def datagram_times(self, flow: int, start_ns: int) -> Iterator[int]:
        """Return the departure times of a flow's datagrams, beginning at `start_ns`."""
    def reader(self, flow: int) -> SlowReader | None:
        """Return the slow application at a flow's receiver; None if it reads at once."""
    def browser(self, flow: int) -> Browser:
        """Return the browser of a flow."""

def record_of_samples(
    spec_json: str,
    time_ns: npt.NDArray[np.int64],
    flows: Sequence[dict[str, Any]],
    links: Sequence[dict[str, Any]],
) -> RunRecord:
    """Compute the measures of a run from samples.

    Parameters
    ----------
    spec_json
        The RunSpec.
    time_ns
        Times of the samples.
    flows, links
        Per flow and link: arrays of cumulative counters and states, with one value per sample. A
        flow can also have logs of its applications: `messages` (per connection, see
        `Application.messages`), `pages` (see `Browser.pages`), `datagrams_ns` (arrival time,
        number and one-way delay of each CBR datagram), and `pings_ns` (time of the reply or
        timeout, number, and RTT or None of each ping).

    Raises
    ------
    ValueError
        If the spec is not valid, or the samples do not match it.
    """

def run(
    spec_json: str,
    cancelled: Callable[[], Any] | None = None,
    capture_folder: str | PathLike[str] | None = None,
    make_controller: Callable[[str, Mapping[str, Any], int], object] | None = None,
    libraries: Mapping[str, str | PathLike[str]] | None = None,
) -> RunRecord:
    """Run a RunSpec given as JSON, without holding the interpreter's lock.

    Parameters
    ----------
    spec_json
        The RunSpec.
    cancelled
        Polled about every 50 ms; return true to stop.
    capture_folder
        Empty folder for the capture files, if the spec requests captures.

    Raises
    ------
    ValueError
        If the spec is not valid.
    CancelledError
        If `cancelled` returned true. Exceptions of `cancelled` and Ctrl-C are propagated.
    ControllerError
        If a controller written in Python failed.
    RuntimeError
        If the simulator failed because of a bug. The message contains all data to reproduce it.
    """

def run_summary(
    spec_json: str,
    cancelled: Callable[[], Any] | None = None,
    make_controller: Callable[[str, Mapping[str, Any], int], object] | None = None,
    libraries: Mapping[str, str | PathLike[str]] | None = None,
) -> str:
    """Run a RunSpec without a capture; return its summary alone, as canonical JSON; see `run`."""

def drawn_starts(seed: int, starts: Sequence[tuple[int, str, int]]) -> list[int]:
    """Draw the start of each flow for a seed.

    A start is uniform from the earliest one on, and depends on seed and name only: it is the first
    64 bits of SHA-256 over ``"start_jitter/SEED/FLOW"``, scaled.

    Parameters
    ----------
    seed
        The seed.
    starts
        Earliest start in ns, name, and number of possible starts of each flow.

    Returns
    -------
    list of int
        The starts in ns.
    """

def run_text(pieces: Sequence[str], starts: Sequence[tuple[int, str, int]], seed: int) -> str:
    """Return the specification of a run as canonical JSON.

    Parameters
    ----------
    pieces
        The text before, between and after the starts of the flows and the seed.
    starts
        See `drawn_starts`; empty if no start depends on the seed.
    seed
        The seed.
    """

def run_names(
    pieces: Sequence[str],
    starts: Sequence[tuple[int, str, int]],
    around: tuple[str, str],
    seeds: Sequence[int],
) -> list[str]:
    """Return the names of runs that differ in the seed.

    Parameters
    ----------
    pieces, starts
        See `run_text`.
    around
        Text to hash before and after the specification.
    seeds
        The seeds.
    """

def names_of_specs(specs: Sequence[str], around: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names of runs.

    Parameters
    ----------
    specs
        Their specifications as canonical JSON.
    around
        Text to hash before and after each specification.
    """

def thrift_structure(content: bytes) -> tuple[dict[int, Any], int]:
    """Read the fields of a structure of Thrift's compact protocol.

    Parameters
    ----------
    content
        Begins with the structure.

    Returns
    -------
    tuple
        Its values by field number, and its length. Text and floating-point numbers are bytes.

    Raises
    ------
    ValueError
        If it is nested too deeply, or is no structure.
    IndexError
        If the content ends before the structure.
    """

def measure_columns(
    summaries: Sequence[str], scopes: Sequence[tuple[str, Sequence[str], Sequence[str]]]
) -> list[
    tuple[dict[str, npt.NDArray[np.uint32]], list[str | None], dict[str, npt.NDArray[np.float64]]]
]:
    """Take the measures out of summaries.

    Parameters
    ----------
    summaries
        The summaries, one per run.
    scopes
        `flow`, `group`, `link` or `run`; keys of measures per phase, and of measures of the
        complete run.

    Returns
    -------
    list of tuple
        For each scope, a row per run, flow (or group, link, run) and phase: its run, name,
        controller and phase as numbers; the words to which the last three refer, of which the first
        is None; and the values of the keys by key, NaN if there is none.

    Raises
    ------
    ValueError
        If a text is no summary.
    """

def check(spec_json: str) -> None:
    """Check a RunSpec given as JSON.

    Raises
    ------
    ValueError
        If it is not valid.
    """

def find_problem(spec_json: str) -> tuple[str | None, str, tuple[int, int, int] | None] | None:
    """Return the first error in a RunSpec given as JSON.

    Returns
    -------
    tuple or None
        The location, such as ``links[0].delay.steps[0].delay_ns`` (None if the text is not a
        RunSpec); the message; and for a number out of range the number, the minimum and the
        maximum.
    """

def constant_service_bps(link_json: str) -> int | None:
    """Return the service rate of a link of a RunSpec, given as JSON.

    Returns
    -------
    int or None
        In bit/s; None if it varies.

    Raises
    ------
    ValueError
        If it is no link.
    """

def check_file(registry: str, row: str, parameter: str, content: bytes) -> None:
    """Validate the content of a file to which a parameter refers.

    Raises
    ------
    ValueError
        If the content is invalid, with the location; or if there is no such parameter.
    """

def toml_lines(text: str) -> dict[str | int, tuple[int, Any]]:
    """Return the lines, counted from 1, of all tables, keys and elements of a TOML text.

    Returns
    -------
    dict
        Key or list index → line number, and the same mapping for its children (None for a scalar).
        The line of a table is the line of its first header or key.

    Raises
    ------
    ValueError
        If it is not TOML.
    OverflowError
        If several numbers exceed 64 bits.
    RecursionError
        If it is nested deeper than 80 levels.
    """

def draw_impairments(
    spec_json: str, link: int, points: int, cancelled: Callable[[], bool] | None = None
) -> dict[str, Any]:
    """Draw the random impairments of a link in a run, for playback on another backend.

    Parameters
    ----------
    spec_json
        The RunSpec.
    link
        Index of the link.
    points
        Maximum number of jitter values.
    cancelled
        Polled regularly; return true to stop.

    Returns
    -------
    dict
        `outages_ns`: start and end of each outage, alternating; `rate_steps`: time in ns and rate
        in bit/s, alternating, if the rate is random; `jitter_ns`: delays added to the base delay
        every `jitter_step_ns`, with linear interpolation; `jitter_seed`, `queue_seed`, `loss_seed`,
        `loss_steps_seed`, `contention_seed`: seeds of random streams; `loss_bad`: whether a
        Gilbert–Elliott model starts in the bad state; `loss_drawn`: how many numbers of its stream
        are already used.

    Raises
    ------
    CancelledError
        If `cancelled` returned true. Exceptions raised by `cancelled` are propagated.
    ValueError
        If the spec is not valid, or has no such link.
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
    """Write the packets captured by a packet socket of Linux as a pcapng file.

    Parameters
    ----------
    spec_json
        The RunSpec.
    flow
        Index of the flow.
    end
        `sender` or `receiver`.
    system
        System that processed the packets, such as the kernel version.
    start_ns
        Start of the run on the clock of the packets.
    received, dropped
        Packets that the socket received, and packets of these that did not fit into the ring.
    blocks
        Filled blocks of the socket's ring (TPACKET_V3), one after another.
    folder
        Folder of the new file.
    secrets
        TLS secrets in `SSLKEYLOGFILE` format.

    Returns
    -------
    int
        Number of packets in the file.

    Raises
    ------
    ValueError
        If the spec is not valid or has no such end, or if `blocks` is damaged.
    OSError
        If reading or writing fails.
    """

def host_capture_from_ring(
    name: str,
    address: str,
    *,
    comment: str,
    system: str,
    snap_bytes: int,
    start_ns: int,
    duration_ns: int,
    received: int,
    dropped: int,
    blocks: str | PathLike[str],
    file: str | PathLike[str],
) -> int:
    """Write the packets that a packet socket of Linux captured on a host as a pcapng file.

    Parameters
    ----------
    name, address
        The host and its IPv4 address.
    comment
        Comment of the file.
    system
        System that processed the packets, such as the kernel version.
    snap_bytes
        Maximum size of the stored part of a packet.
    start_ns, duration_ns
        Start of the run on the clock of the packets, and its length. Other packets are omitted.
    received, dropped
        Packets that the socket received, and packets of these that did not fit into the ring.
    blocks
        Filled blocks of the socket's ring (TPACKET_V3), one after another.
    file
        The new file.

    Returns
    -------
    int
        Number of packets in the file.

    Raises
    ------
    ValueError
        If the address is not valid, or if `blocks` is damaged.
    OSError
        If reading or writing fails.
    """

def registry() -> str:
    """Return all registries as a JSON document: lists of entries by kind."""

def describe_library(path: str | PathLike[str]) -> str:
    """Load the shared library of a crate, and return the rows of its controllers as JSON.

    Loading executes code of the crate.

    Raises
    ------
    ValueError
        If it is no such library, or one of its controllers panicked.
    """

def kernel_registration(flow_json: str, seed: int) -> str:
    """Return the line that registers the controller of a flow, given as JSON, in the kernel module.

    Raises
    ------
    ValueError
        If it is no flow of a RunSpec.
    """

def run_spec_schema() -> str:
    """Return the JSON Schema of a RunSpec."""

@final
class Emulation:
    """Result of an emulation."""

    @property
    def summary(self) -> str:
        """Counters, utilisation and lateness, as a JSON document."""
    @property
    def events(self) -> dict[str, npt.NDArray[np.generic]] | None:
        """One row per drop or mark, if the spec requests them.

        `direction` is 0 for forward. `link` is an index into the links of the direction, `reason`
        into `reasons`, `flow` into `flows`, or 2³² - 1 if the packet is not IP.
        """
    @property
    def flows(self) -> list[tuple[int, str, int, str, int]]:
        """Protocol, source address, source port, destination address, destination port."""
    @property
    def reasons(self) -> list[str]:
        """Names of the codes in `events["reason"]`."""

@final
class Emulator:
    """Real-time links between two TUN devices. Available on Linux only."""

    def __new__(cls, spec_json: str, first: str, second: str) -> Emulator:
        """Create both devices in the current network namespace.

        Parameters
        ----------
        spec_json
            Specification with `forward` (links from the first device to the second), `reverse`,
            `seed`, `mtu_bytes`, `lateness_bound_ns`, `memory_bytes` and `journal`, as JSON.
        first, second
            Names of the devices.

        Raises
        ------
        ValueError
            If the specification is not valid.
        OSError
            If a device cannot be created.
        """
    def run(self) -> Emulation:
        """Forward packets until it is stopped, without holding the GIL.

        The logical time of the links starts now. An emulator can run once.

        Raises
        ------
        OSError
            If a device was removed.
        """
    def stop(self) -> None:
        """Stop the emulation, from any thread."""

@final
class TestKit:
    """A simulation whose endpoints are Python objects with the methods of aioquic's connections."""

    def __new__(cls, network_json: str, seed: int) -> TestKit:
        """Create a simulation with a network: `forward`, `reverse` and `mtu_bytes`, as JSON.

        Raises
        ------
        ValueError
            If the network is invalid.
        """
    @staticmethod
    def of_flow(run_json: str, flow: str, seed: int) -> TestKit:
        """Create a simulation with the network of a flow of a RunSpec."""
    def add(self, is_left: bool, address: str, endpoint: object) -> int:
        """Add an endpoint; return the number of its host."""
    def wake(self, host: int) -> None:
        """Say that an endpoint may have something to send, or another timer."""
    @property
    def now(self) -> float:
        """Time in s."""
    def run_until(self, limit_s: float, is_met: Callable[[], object] | None = None) -> float:
        """Run until a condition is met, or without one to `limit_s`; return the time.

        Raises
        ------
        TimeoutError
            If the condition is not met by `limit_s`, or can no longer be met.
        """
    def measures(self) -> str:
        """Return the measures from 0 to now, as JSON."""
    def counts(self, host: int) -> tuple[int, int, int]:
        """Return packets sent, received, and dropped by the host because they were corrupted."""
    def capture(self, host: int, path: str) -> None:
        """Write the packets of a host to a pcapng file from now on."""
    def add_secrets(self, host: int, lines: str) -> None:
        """Add TLS secrets to the capture of a host."""
    def qlog(self, host: int, path: str, title: str) -> None:
        """Write a qlog of a host from now on."""
    def finish_files(self) -> None:
        """End all captures and logs."""

def testkit_link(
    rate_bps: int,
    delay_ns: int,
    queue_packets: int | None,
    loss: float,
    jitter_ns: int,
    lost_packets: list[int],
) -> str:
    """Return the specification of a link, as JSON."""
