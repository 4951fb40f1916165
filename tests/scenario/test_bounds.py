"""What the engine refuses is refused when a scenario is loaded, and nothing else runs."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jostle import _core
from jostle.backends.sim import SimBackend
from jostle.cli import status
from jostle.errors import InputError
from jostle.scenario import ScenarioError, load_text

BAD = Path(__file__).parent / "bad"

spans = st.sampled_from(["0 s", "1 ns", "1 us", "3 ms", "1 s", "600 s", "1 h", "3000 h", "1e9 h"])
rates = st.sampled_from(["1 bit/s", "1 kbit/s", "10 Mbit/s", "1000 Gbit/s", "1001 Gbit/s"])
sizes = st.sampled_from(["1 B", "1 packet", "1514 B", "0.01 BDP", "1 BDP", "1 GB", "9e6 GB"])
counts = st.sampled_from([0, 1, 2, 1000, 2**20, 2**21])
queues = st.builds(
    '{{ kind = "{}", limit = "{}", {} }}'.format,
    st.sampled_from(["drop_tail", "codel", "fq_codel", "pie", "red", "occupancy_drop", "dualpi2"]),
    sizes,
    st.one_of(
        st.just("ecn = true"),
        st.builds('target = "{}"'.format, spans),
        st.builds('min = "{}", max = "{}"'.format, sizes, sizes),
        st.builds('threshold = "{}"'.format, sizes),
    ),
)
link_keys = st.one_of(
    st.builds('delay = [["0 s", "1 ms"], ["2 s", "{}"]]'.format, spans),
    st.builds('outage = {{ every = "{}", durations = "{}" }}'.format, spans, spans),
    st.builds(
        'jitter = {{ quantiles = [["0 %", "0 s"], ["100 %", "{}"]], correlation = "{}" }}'.format,
        spans,
        spans,
    ),
    st.builds('quick_start = {{ allowance = "{}", interval = "{}" }}'.format, rates, spans),
    st.builds('loss = "{} %"'.format, st.sampled_from([0, 0.1, 100])),
)
flow_keys = st.one_of(
    st.builds('start_jitter = "{}"'.format, spans),
    st.builds('start = "{}"\nstop = "{}"'.format, spans, spans),
    st.builds("initial_window = {}".format, counts),
    st.builds('receive_window = "{}"'.format, sizes),
    st.builds('receive_window = "{}"\ninitial_receive_window = "{}"'.format, sizes, sizes),
    st.builds('nic_rate = "{}"'.format, rates),
    st.builds('size = "{}"'.format, sizes),
    st.builds('source = {{ kind = "on_off", on = "{}", off = "{}" }}'.format, spans, spans),
    st.builds(
        'source = {{ kind = "request_response", size = "{}", think_time = "{}", '
        "count = 3 }}".format,
        sizes,
        spans,
    ),
    st.builds(
        'source = {{ kind = "video", bitrates = ["{}"], segment = "{}", buffer = "{}" }}'.format,
        rates,
        spans,
        spans,
    ),
    st.builds(
        'source = {{ kind = "video", length = "{}", startup_buffer = "{}", abr = {{ '
        'kind = "buffer", reservoir = "{}", cushion = "{}" }} }}'.format,
        spans,
        spans,
        spans,
        spans,
    ),
)
scenarios = st.builds(
    """
    duration = "{}"
    sampling_interval = "{}"
    [bottleneck]
    rate = "{}"
    queue = {}
    {}
    [[flows]]
    name = "only"
    controller = "cubic"
    rtt = "{}"
    {}
    """.format,
    spans,
    spans,
    rates,
    queues,
    link_keys,
    spans,
    flow_keys,
)
likely = st.builds(
    """
    duration = "10 s"
    [bottleneck]
    rate = "10 Mbit/s"
    queue = "codel"
    {}
    [[flows]]
    name = "only"
    controller = "cubic"
    rtt = "40 ms"
    {}
    """.format,
    link_keys,
    flow_keys,
)


@settings(max_examples=300)
@given(st.one_of(scenarios, likely))
def test_whatever_loads_is_accepted_by_the_engine(text: str) -> None:
    try:
        scenario = load_text(text)
    except ScenarioError as error:
        for problem in error.problems:
            assert problem.line > 0
            assert problem.key
        return
    for runs in (scenario.plan(repeats=3).runs, scenario.with_start_jitter().plan(repeats=3).runs):
        for run in runs:
            _core.check(json.dumps(run.spec))


@pytest.mark.parametrize("path", sorted(BAD.glob("bounds-*.toml")), ids=lambda path: path.stem)
def test_bounds_are_a_mistake_of_the_file(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert status(["run", str(path)]) == 2
    place = path.with_suffix(".txt").read_text().split(": ")[0].replace(path.name, str(path))
    assert place in capfd.readouterr().err


def test_the_simulator_checks_what_it_is_given() -> None:
    spec = (
        load_text("""
        duration = "1 s"
        [bottleneck]
        rate = "1 Mbit/s"
        queue = "codel"
        [[flows]]
        name = "only"
        controller = "cubic"
        rtt = "40 ms"
    """)
        .plan()
        .runs[0]
        .spec
    )
    backend = SimBackend()
    backend.check(spec)
    wrong = {**spec, "duration_ns": 2**60}
    with pytest.raises(InputError, match="duration_ns: cannot be"):
        backend.check(wrong)
    with pytest.raises(InputError, match="not a RunSpec: missing field `seed`"):
        backend.check({key: value for key, value in spec.items() if key != "seed"})
