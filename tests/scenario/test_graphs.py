"""Networks that are graphs: what is read of a file, which ways flows take, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jostle import _core
from jostle.report.topology_svg import topology
from jostle.scenario import ScenarioError, load, load_text
from jostle.scenario.parsing.graph_files import read_graph
from jostle.scenario.parsing.quantities import QuantityError

SCENARIOS = Path(__file__).parents[2] / "scenarios"
GML = """
graph [
  # a comment
  label "small"
  node [ id 3 label "A" Latitude 0 Longitude 0 ]
  node [ id 4 label "B" Latitude 0 Longitude 1 graphics [ x 1.5 y "2" ] ]
  node [ id 5 label "A" ]
  edge [ source 3 target 4 LinkSpeedRaw 1000000.0 ]
  edge [ source 4 target 3 LinkSpeedRaw 3000000 ]
  edge [ source 4 target 5 LinkType "OC-3" ]
  edge [ source 5 target 5 ]
]
"""
GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d1" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d2" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d3" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d4" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d1">A</data><data key="d2">0</data><data key="d3">0</data></node>
    <node id="1"><data key="d1">B</data><data key="d2">0</data><data key="d3">1</data></node>
    <edge source="0" target="1"><data key="d4">3000000.0</data></edge>
  </graph>
</graphml>
"""
SCENARIO = """
duration = "2 s"
[graph]
{graph}
queue = "codel"
[[graph.edges]]
between = ["A", "B"]
[[graph.edges]]
between = ["B", "C"]
delay = "5 ms"
[[graph.edges]]
between = ["A", "C"]
delay = "{long}"
[[flows]]
name = "flow"
controller = "cubic"
{flow}
"""
PLAIN = 'rate = "10 Mbit/s"\ndelay = "4 ms"'


def spec(graph: str = PLAIN, long: str = "20 ms", flow: str = 'from = "A"\nto = "C"') -> dict:
    (run,) = load_text(SCENARIO.format(graph=graph, long=long, flow=flow)).plan().runs
    return run.spec


def way(of: dict, key: str = "path") -> list[str]:
    return [of["links"][at]["name"] for at in of["flows"][0][key]]


def test_gml_is_read_with_its_places_and_rates(tmp_path: Path) -> None:
    path = tmp_path / "small.gml"
    path.write_text(GML)
    found = read_graph(path)
    assert list(found.nodes) == ["A", "B", "A 5"]
    assert found.nodes["B"].longitude == 1
    assert found.nodes["A 5"].latitude is None
    assert [(e.one, e.other, e.rate_bps) for e in found.edges] == [
        ("A", "B", 1_000_000),
        ("B", "A", 3_000_000),
        ("B", "A 5", 155_520_000),
    ]


def test_graphml_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "small.graphml"
    path.write_text(GRAPHML)
    found = read_graph(path)
    assert found.nodes["B"].longitude == 1
    assert [(e.one, e.other, e.rate_bps) for e in found.edges] == [("A", "B", 3_000_000)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("graph [ node [ id 0 label", 'line 1: "label" has no value'),
        ("graph [\n node [ id 0 ]\n", "a [ without its ]"),
        ('graph [ node [ id 0\n label "A ] ]', "line 2: a text without its closing quote"),
        ("graph [ edge [ source 0 target 1 ] ]", "it has no nodes"),
        ("graph [ node [ id 0 ] edge [ source 0 target 1 ] ]", 'ends at "1", which is no node'),
        ("graph [ node [ id 0 ] node [ id 0 ] ]", 'two nodes have the id "0"'),
        ("nodes [ ]", "no graph [ … ] in it"),
        ("graph [ node [ id 0 Latitude north Longitude 1 ] ]", 'Latitude "north" is not a number'),
        ("graph [" + "a [" * 30, "nested too deeply"),
        ("graph [ node [ id 0 ] ] graph [ ]", "line 1: a second graph"),
        ("graph [ node [ id 0\nid 1 ] ]", "line 2: this node has two values of id"),
        ("graph [\nnode [ label a ] ]", "line 2: id is missing"),
        ("graph [ node [ id 0 ]\nedge [ source 0 ] ]", "line 2: target is missing"),
        ("graph [ node [ id 0 Latitude nan ] ]", "line 1: Latitude nan is not from -90 to 90"),
        ("graph [ node [ id 0 Longitude 1e999 ] ]", "Longitude inf is not from -360 to 360"),
        ('graph [ node [ id 0 label "a\nb" ] ]', "no text of at most 200 characters on one line"),
        (f"graph [ node [ id 0 label {'a' * 201} ] ]", "no text of at most 200 characters"),
        (
            'graph [ node [ id 0 label "a" ] node [ id 2 label "a 1" ]\nnode [ id 1 label "a" ] ]',
            'line 2: two nodes would be called "a 1"',
        ),
        ("<graphml>" * 30, "nested too deeply"),
        ("<graphml><node></graphml>", "line 1: not XML"),
        ("<!DOCTYPE a [ <!ENTITY b 'c'> ]><a/>", "a document type"),
    ],
)
def test_what_is_no_graph_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.gml"
    path.write_text(text)
    with pytest.raises(QuantityError) as caught:
        read_graph(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_flows_take_the_shortest_way_and_come_back_by_it() -> None:
    run = spec()
    assert way(run) == ["A to B", "B to C"]
    assert way(run, "reverse_path") == ["C to B", "B to A"]
    assert run["flows"][0]["base_delay_ns"] == 0
    assert {link["name"] for link in run["links"]} == {"A to B", "B to C", "C to B", "B to A"}
    # Of ways as long the one with fewer links.
    assert way(spec(long="9 ms")) == ["A to C"]
    assert way(spec(long="9001 us")) == ["A to B", "B to C"]
    longer = spec(flow='from = "A"\nto = "C"\nrtt = "30 ms"')
    assert longer["flows"][0]["base_delay_ns"] == 12_000_000


def test_delays_are_those_of_light_in_fibre(tmp_path: Path) -> None:
    (tmp_path / "small.gml").write_text(GML)
    text = """
    duration = "1 s"
    [graph]
    file = "small.gml"
    scale = 0.5
    detour = 2.0
    delay = "7 ms"
    queue = "codel"
    [[flows]]
    name = "flow"
    controller = "cubic"
    from = "A"
    to = "A 5"
    """
    (run,) = load_text(text, name=str(tmp_path / "s.toml")).plan().runs
    first, second = (run.spec["links"][at] for at in run.spec["flows"][0]["path"])
    # A degree of the equator is 111.195 km; light takes 4.8967 us for one of them in fibre.
    assert first["delay"]["steps"][0]["delay_ns"] == pytest.approx(2 * 111.195 * 4896.7, rel=1e-3)
    assert second["delay"]["steps"][0]["delay_ns"] == 7_000_000
    # The faster one of two cables, at half of its rate.
    assert first["capacity"]["rate_bps"] == 1_500_000


def test_abilenes_ways_are_those_of_its_map() -> None:
    scenario = load(SCENARIOS / "abilene.toml")
    run = scenario.plan().runs[0].spec
    assert way(run) == [
        "Seattle to Denver",
        "Denver to Kansas City",
        "Kansas City to Indianapolis",
        "Indianapolis to Chicago",
        "Chicago to New York",
    ]
    west = next(link for link in run["links"] if link["name"] == "Seattle to Denver")
    # 1641 km as the crow flies.
    assert west["delay"]["steps"][0]["delay_ns"] == pytest.approx(8.035e6, rel=5e-3)
    assert west["capacity"]["rate_bps"] == 99_532_800
    drawing = topology(run)
    assert "Seattle → Denver → Kansas City → Indianapolis → Chicago → New York" in drawing
    # Flows use eight of the fourteen circuits.
    assert drawing.count('<path class="lane"') == 8


def test_long_ways_have_less_beside_short_ones() -> None:
    (run,) = load(SCENARIOS / "abilene.toml").set({"flows.*.controller": "cubic"}).plan().runs
    summary = json.loads(_core.run(json.dumps(run.spec)).summary)
    rates: dict[str, float] = {}
    for flow in summary["flows"]:
        name = flow["name"].rsplit("-", 1)[0]
        rates[name] = rates.get(name, 0) + flow["phases"]["overall"]["goodput_bps"]
    assert rates["coast to coast"] < 0.5 * min(rates["west"], rates["east"])
    # Two of the ways share no link: the south has its circuits for itself.
    assert rates["south"] > 0.8 * 99.5e6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"flow": 'from = "A"'}, "flows.flow.to: missing"),
        ({"flow": 'from = "A"\nto = "D"'}, 'flows.flow.to: there is no node "D"'),
        ({"flow": 'from = "A"\nto = "A"'}, "flows.flow.to: this is where it starts"),
        ({"graph": 'delay = "4 ms"'}, "A – B has no rate"),
        ({"graph": 'rate = "1 Mbit/s"'}, "A – B: one of them has no place"),
        ({"graph": PLAIN + '\nfile = "no.gml"'}, "graph.file: .*no such file"),
        ({"graph": PLAIN + "\nscale = 0.0"}, "graph.scale"),
        ({"graph": PLAIN + "\nsped = 1"}, "graph.sped: unknown key"),
        ({"flow": 'path = ["A to D"]\nrtt = "9 ms"'}, 'no link "A to D"'),
    ],
)
def test_mistakes_name_their_keys(change: dict[str, str], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        spec(**change)


def test_a_graph_stands_alone_and_its_keys_need_it() -> None:
    both = SCENARIO.format(graph=PLAIN, long="9 ms", flow='from = "A"\nto = "C"')
    both += '[bottleneck]\nrate = "1 Mbit/s"\nqueue = "codel"\n'
    with pytest.raises(ScenarioError, match="there is bottleneck as well"):
        load_text(both)
    text = 'duration = "1 s"\nbottleneck = { rate = "1 Mbit/s", queue = "codel" }\n'
    text += '[[flows]]\nname = "f"\ncontroller = "cubic"\nrtt = "9 ms"\nfrom = "A"\n'
    with pytest.raises(ScenarioError, match=r"flows.f.from: there is no .graph."):
        load_text(text)
    wrong = SCENARIO.format(graph=PLAIN, long="9 ms", flow='from = "A"\nto = "C"')
    with pytest.raises(ScenarioError, match=r'graph.queue: there is no queue "codell"'):
        load_text(wrong.replace('"codel"', '"codell"'))


def large_graph(nodes: int, edges: int) -> str:
    """Write a connected graph in GML, as large as a constellation of satellites."""
    at = "".join(
        f'node [ id {n} label "N{n}" Latitude {n % 90} Longitude 1 ]\n' for n in range(nodes)
    )
    ends = ((n, (n * 7 + n // nodes + 1) % nodes) for n in range(edges))
    return (
        f"graph [\n{at}"
        + "".join(f"edge [ source {a % nodes} target {b} ]\n" for a, b in ends)
        + "]"
    )


def test_a_constellation_is_read(tmp_path: Path) -> None:
    (tmp_path / "large.gml").write_text(large_graph(10_000, 40_000))
    found = read_graph(tmp_path / "large.gml")
    assert len(found.nodes) == 10_000
    assert 39_000 < len(found.edges) <= 40_000


@pytest.mark.parametrize(("kind", "most"), [("node", 10_000), ("edge", 100_000)])
def test_reading_ends_at_a_bound(tmp_path: Path, kind: str, most: int) -> None:
    path = tmp_path / "many"
    name = "http://graphml.graphdrawing.org/xmlns"
    gml = f"{kind} [ ]" * (most + 1)
    graphml = f"<{kind}/>" * (most + 1)
    for text in (f"graph [\n{gml}\n", f'<graphml xmlns="{name}"><graph>\n{graphml}\n'):
        path.write_text(text)
        with pytest.raises(QuantityError, match=f"line 2: more than {most} {kind}s"):
            read_graph(path)


def test_flows_begin_and_end_at_few_nodes_of_a_large_graph(tmp_path: Path) -> None:
    (tmp_path / "large.gml").write_text(large_graph(2_000, 8_000))
    text = 'duration = "1 s"\n[graph]\nfile = "large.gml"\nrate = "1 Mbit/s"\nqueue = "codel"\n'
    for at in range(400):
        ends = f'from = "N{at}"\nto = "N{at + 1000}"\n'
        text += f'[[flows]]\nname = "f{at}"\ncontroller = "cubic"\n{ends}'
    with pytest.raises(ScenarioError, match=r"at 800 nodes of a network with .* at most"):
        load_text(text, name=str(tmp_path / "s.toml"))


def test_no_two_links_have_one_name(tmp_path: Path) -> None:
    edges = [["a to b", "c"], ["a", "b to c"]]
    text = 'duration = "1 s"\n[graph]\nrate = "1 Mbit/s"\ndelay = "1 ms"\nqueue = "codel"\n'
    flow = '[[flows]]\nname = "f"\ncontroller = "cubic"\nfrom = "a"\nto = "b to c"\n'
    twice = [["a", "b to c"], ["b to c", "a"]]
    for pairs, said in ((edges, 'would be called "a to b to c"'), (twice, "by an edge above")):
        listed = "".join(f"[[graph.edges]]\nbetween = {json.dumps(one)}\n" for one in pairs)
        with pytest.raises(ScenarioError, match=said):
            load_text(text + listed + flow)


def test_a_place_that_is_no_number_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "nan.gml").write_text(
        'graph [ node [ id 0 label "a" Latitude nan Longitude inf ] node [ id 1 label "b" ]'
        " edge [ source 0 target 1 ] ]"
    )
    text = 'duration = "1 s"\n[graph]\nfile = "nan.gml"\nrate = "1 Mbit/s"\nqueue = "codel"\n'
    text += '[[flows]]\nname = "f"\ncontroller = "cubic"\nfrom = "a"\nto = "b"\n'
    with pytest.raises(ScenarioError, match=r"graph.file: .*Latitude nan is not"):
        load_text(text, name=str(tmp_path / "s.toml"))
