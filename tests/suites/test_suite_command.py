"""`jostle suite`: verdicts, documents, exit status, and what is said of a suite that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from jostle.scenario import ScenarioError
from jostle.suites.load import load

HERE = Path(__file__).parent


def by_id(document):
    return {one["id"]: one for one in document["criteria"]}


def test_a_card_has_each_criterion_with_value_bound_and_verdict(jostle):
    code, out, err = jostle("suite", "run", "./suites/small", "--controller", "reno", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["schema"] == "jostle.suite/2"
    assert (document["suite"], document["controller"], document["baseline"]) == (
        "small", "reno", "cubic",
    )  # fmt: skip
    assert document["summary"]["must"] == {"pass": 1, "fail": 0, "unknown": 1}
    found = by_id(document)
    assert [found[name]["verdict"] for name in ("1-goodput", "2-in-time", "3-loss", "4-text")] == [
        "pass", "fail", "fail", "unknown",
    ]  # fmt: skip
    # Each buffer is judged by itself; the worse one decides.
    late = found["2-in-time"]
    assert [one["where"] for one in late["comparisons"]] == [
        {"buffer": "1 BDP"}, {"buffer": "4 BDP"},
    ]  # fmt: skip
    assert late["value"] == max(one["value"] for one in late["comparisons"])
    assert late["interval"][0] <= late["value"] <= late["interval"][1]
    assert (late["bound"], late["relation"]) == (1.0, "≤ 1 s")
    assert found["4-text"]["value"] is None
    assert found["4-text"]["reason"] == "no run can"
    assert found["1-goodput"]["command"].endswith("--controller reno --criterion 1-goodput")


def test_every_condition_is_judged_without_each(folder):
    """The criterion `3-loss` names no keys; its left side has two buffers."""
    assert [cell.where for cell in load("small", folder).cells(2)] == [
        {"buffer": "1 BDP"}, {"buffer": "4 BDP"}
    ]  # fmt: skip
    path = folder / "small" / "suite.toml"
    text = path.read_text()
    alone = 'left = { measure = "retransmission_ratio" }'
    assert alone in text
    pooled = alone.replace(" }", ', pool = ["buffer"] }')
    path.write_text(text.replace(alone, pooled))
    with pytest.raises(ScenarioError, match=r"criteria.2.parts.0.right: .* differ in buffer"):
        load("small", folder)
    baseline = 'right = { measure = "retransmission_ratio", of = "baseline" }'
    both = baseline.replace(" }", ', pool = ["buffer"] }')
    path.write_text(text.replace(alone, pooled).replace(baseline, both))
    assert [cell.where for cell in load("small", folder).cells(2)] == [{}]


def test_a_comparison_of_a_chosen_condition_is_made_once(jostle, folder):
    path = folder / "small" / "suite.toml"
    more = ', { left = { measure = "rtt", where = { buffer = "4 BDP" } }, relation = "below", '
    text = path.read_text()
    assert "margin = 0.5 }]" in text
    path.write_text(text.replace("margin = 0.5 }]", f"margin = 0.5 }}{more}right = 900 }}]"))
    _, out, _ = jostle("suite", "run", "./suites/small", "--controller", "reno", "--json")
    found = json.loads(out)["criteria"][2]["comparisons"]
    assert [one["where"] for one in found] == [{"buffer": "1 BDP"}, {}, {"buffer": "4 BDP"}]


def test_a_margin_is_told_as_the_value_and_what_the_baseline_allows(jostle):
    _, out, _ = jostle("suite", "run", "./suites/small", "--controller", "reno", "--json")
    row = by_id(json.loads(out))["3-loss"]
    _, out, _ = jostle("suite", "run", "./suites/small", "--controller", "cubic", "--json")
    same = by_id(json.loads(out))["3-loss"]
    # With the baseline itself both are the same number, and the bound lies half a point above it.
    assert same["bound"] == pytest.approx(same["value"] + 0.5)
    assert row["bound"] == same["bound"]
    assert row["value"] > row["bound"]
    assert same["verdict"] == "pass"


def test_what_never_comes_fails_and_has_no_number(jostle, folder):
    path = folder / "small" / "alone.toml"
    path.write_text(path.read_text().replace('"3 MB"', '"30 MB"'))
    code, out, err = jostle("suite", "run", "./suites/small", "--controller", "reno", "--json")
    assert code == 0, err
    row = by_id(json.loads(out))["2-in-time"]
    assert (row["verdict"], row["value"], row["never"]) == ("fail", None, True)
    _, out, _ = jostle("suite", "run", "./suites/small", "--controller", "reno")
    assert "2 of 2 runs never completed (bound ≤ 1 s)" in out


def test_a_run_that_ends_before_the_bound_leaves_it_unknown(jostle, folder):
    path = folder / "small" / "alone.toml"
    path.write_text(path.read_text().replace('"3 MB"', '"30 MB"'))
    suite = folder / "small" / "suite.toml"
    suite.write_text(suite.read_text().replace("right = 1 }]", "right = 5 }]"))
    words = ["suite", "run", "./suites/small", "--controller", "reno", "--criterion", "2-in-time"]
    _, out, _ = jostle(*words, "--json")
    row = by_id(json.loads(out))["2-in-time"]
    assert (row["verdict"], row["value"], row["never"]) == ("unknown", None, True)
    least, most = row["comparisons"][0]["possible"]
    assert (3.9 <= least <= 4.0, most) == (True, None)
    assert row["reason"] == "2 of 2 runs never completed: extend `duration`"


@pytest.mark.parametrize(("level", "expected"), [("must", 0), ("should", 1), ("never", 0)])
def test_the_exit_status_is_that_of_the_level_that_was_asked_for(jostle, level, expected):
    code, _, err = jostle(
        "suite", "run", "./suites/small", "--controller", "reno", "--quick", "--fail-on", level
    )
    assert code == expected, err


def test_a_quick_look_runs_less_and_says_so(jostle):
    code, out, err = jostle(
        "suite", "run", "./suites/small", "--controller", "reno", "--quick", "--json"
    )
    assert code == 0, err
    document = json.loads(out)
    assert document["quick"] is True
    assert [one["where"] for one in by_id(document)["2-in-time"]["comparisons"]] == [
        {"buffer": "1 BDP"}
    ]
    _, out, _ = jostle(
        "suite", "run", "./suites/small", "--controller", "cubic", "--quick", "--json"
    )
    # One condition, once, in either place.
    assert json.loads(out)["runs"] == 2


def test_a_quick_look_looks_again_at_what_one_run_says_is_not_met(jostle):
    _, out, err = jostle(
        "suite", "run", "./suites/small", "--controller", "reno", "--quick", "--json"
    )
    document = json.loads(out)
    # As many as the suite has, of both controllers.
    assert document["runs"] == 4
    assert err.count("small: alone@baseline") == 2
    row = by_id(document)["3-loss"]
    assert (row["n"], len(row["interval"])) == (2, 2)
    assert not any("per condition instead of" in one for one in document["assumptions"])
    _, out, _ = jostle(
        "suite",
        "run",
        "./suites/small",
        "--controller",
        "reno",
        "--quick",
        "--repeats",
        "1",
        "--json",
    )
    document = json.loads(out)
    assert document["runs"] == 2
    assert any("per condition instead of 2" in one for one in document["assumptions"])


def test_what_a_suite_leaves_out_is_listed(jostle):
    words = (
        "suite",
        "run",
        "./suites/small",
        "--controller",
        "reno",
        "--quick",
        "--criterion",
        "2-in-time",
    )
    _, out, _ = jostle(*words, "--json")
    said = json.loads(out)["assumptions"]
    assert any(one.startswith("Left out by --criterion: ") and "3-loss" in one for one in said)
    assert any("conditions (a quick run)" in one for one in said)
    assert any("has 1 run per condition instead of 2." in one for one in said)
    _, out, _ = jostle(*words)
    shown = " ".join(out.split())
    for sentence in said:
        assert sentence in shown
    _, out, _ = jostle("suite", "run", "./suites/small", "--controller", "reno", "--json")
    assert json.loads(out)["assumptions"] == []


def test_a_key_that_is_named_many_times_is_one(folder):
    path = folder / "small" / "suite.toml"
    text = path.read_text()
    once = load("small", folder).cells(0)
    assert len(once) > 1
    path.write_text(text.replace('each    = ["buffer"]', f"each = {['buffer'] * 40}", 1))
    assert load("small", folder).cells(0) == once


def test_one_criterion_runs_what_it_needs(jostle):
    arguments = ("--controller", "reno", "--criterion", "2-in-time", "--json")
    _, out, err = jostle("suite", "run", "./suites/small", *arguments)
    document = json.loads(out)
    assert [one["id"] for one in document["criteria"]] == ["2-in-time"]
    assert "alone@baseline" not in err
    assert (
        jostle("suite", "run", "./suites/small", "--controller", "reno", "--criterion", "2")[0] == 2
    )


def test_junit_tells_failures_of_must_from_the_rest(jostle, folder):
    path = folder / "small" / "suite.toml"
    path.write_text(path.read_text().replace("factor = 0.9", "factor = 9"))
    code, _, err = jostle(
        "suite", "run", "./suites/small", "--controller", "reno", "-o", "out/card.xml"
    )
    assert code == 1, err
    root = Xml.parse(folder.parent / "out" / "card.xml").getroot()
    (whole,) = root
    assert (whole.get("tests"), whole.get("failures"), whole.get("skipped")) == ("4", "1", "3")
    (failure,) = root.iter("failure")
    assert "(bound ≥ 9 ×)" in failure.get("message", "")


def test_a_variant_of_a_controller_is_judged(jostle):
    controller = '{ name = "cubic", beta = 512 }'
    code, out, err = jostle(
        "suite", "run", "./suites/small", "--controller", controller, "--quick", "--json"
    )
    assert code == 0, err
    document = json.loads(out)
    assert document["controller"] == "cubic (beta = 512)"
    _, out, _ = jostle(
        "suite", "run", "./suites/small", "--controller", "cubic", "--quick", "--json"
    )
    plain = by_id(json.loads(out))["2-in-time"]["value"]
    assert by_id(document)["2-in-time"]["value"] != plain


def test_other_transports_carry_it(jostle):
    code, out, err = jostle(
        "suite", "run", "./suites/small", "--controller", "cubic", "--transport", "quic", "--quick",
        "--json",
    )  # fmt: skip
    assert code == 0, err
    assert json.loads(out)["controller"] == "cubic, quic"


def test_a_scenario_with_keys_of_tcp_has_another_one_over_quic(jostle, folder):
    suite, scenario = folder / "small" / "suite.toml", folder / "small" / "alone.toml"
    text = scenario.read_text()
    of_tcp = text.replace("rtt ", 'initial_receive_window = "1 MB"\nrtt ')
    of_quic = text.replace("rtt ", 'transport = { kind = "quic", initial_mtu = "1350 B" }\nrtt ')
    scenario.write_text(of_tcp)
    arguments = ("suite", "run", "./suites/small", "--controller", "cubic", "--quick", "--json")
    code, _, err = jostle(*arguments, "--transport", "quic")
    assert (code, "initial_receive_window" in err) == (2, True), err
    (folder / "small" / "alone-quic.toml").write_text(of_quic)
    at = 'scenario = "alone.toml"\n'
    suite.write_text(
        suite.read_text().replace(at, at + 'scenario_for = { quic = "alone-quic.toml" }\n')
    )

    def value(*options: str) -> float:
        code, out, err = jostle(*arguments, *options)
        assert code == 0, err
        return by_id(json.loads(out))["2-in-time"]["value"]

    # The word leaves the scenario its keys; a table has its own.
    table = '{ kind = "quic", initial_mtu = "1350 B" }'
    assert value("--transport", "quic") == value("--transport", table)
    assert value("--transport", "quic") != value("--transport", '{ kind = "quic" }')
    (folder / "small" / "alone-quic.toml").write_text(of_quic.replace(', "4 BDP"', ""))
    code, _, err = jostle(*arguments)
    assert code == 2
    assert (
        "suites/small/suite.toml:10: experiments.alone.scenario_for.quic: alone-quic.toml has"
        in err
    )


def test_a_row_that_a_transport_refuses_says_why(jostle):
    code, out, err = jostle(
        "suite", "run", "robustness", "--controller", "reno", "--transport", "quic", "--quick",
        "--json",        "--criterion", "stretch", "--criterion", "mangled",
    )  # fmt: skip
    assert code == 0, err
    rows = by_id(json.loads(out))
    assert "only TCP segments are merged" in rows["stretch"]["reason"]
    assert rows["stretch"]["reason"].startswith("stretch.toml:")
    assert rows["mangled"]["value"] is not None
    said = " ".join(json.loads(out)["assumptions"])
    assert "Left out: stretch: stretch.toml:" in said


def test_python_has_to_be_allowed(jostle):
    arguments = (
        "suite",
        "run",
        "./suites/small",
        "--controller",
        f"{HERE / 'deaf.py'}:Deaf",
        "--quick",
    )
    code, _, err = jostle(*arguments)
    assert code == 2
    assert "add --allow-code" in err
    code, out, err = jostle(*arguments, "--allow-code")
    assert code in (0, 1), err
    assert "deaf:Deaf" in out


def test_what_is_no_controller_is_an_error(jostle):
    for given, said in (
        ("cubik", "did you mean"),
        ("nowhere.py:Mine", "there is no file nowhere.py"),
        ("{ beta = 1 }", "this is no controller"),
    ):
        code, _, err = jostle("suite", "run", "./suites/small", "--controller", given)
        assert (code, said in err) == (2, True), err
    assert jostle("suite", "run", "./suites/small")[0] == 2


def test_an_experiment_without_the_controller_does_not_hide_a_mistake(jostle):
    for words, said in (
        (("--controller", "cubik"), 'did you mean "cubic"'),
        (("--controller", "cubic", "--transport", "quik"), 'did you mean "quic"'),
    ):
        code, out, err = jostle("suite", "run", "harm", *words, "--quick")
        assert (code, out, said in err) == (2, "", True), err


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        (('level   = "must"', 'level   = "shall"'), 17, "cannot be 'shall'"),
        (('each    = ["buffer"]', 'each    = ["rtt"]'), 21, "no key `rtt`"),
        (
            ('measure = "goodput" }, relation', 'measure = "goodputt" }, relation'),
            22,
            "did you mean",
        ),
        (('flows_under_test = ["test"]', 'flows_under_test = ["tests"]'), 10, "no flow `tests`"),
        (('id      = "1-goodput"', 'id      = "4-text"'), 15, "is there 2 times"),
        (('why     = "Nine tenths."', 'whi = "Nine tenths."'), 20, "or `why`"),
        (('buffer = ["1 BDP"]', 'buffer = ["2 BDP"]'), 12, "no buffer `2 BDP`"),
        (('"alone.toml"', '"../alone.toml"'), 9, "lies outside"),
        (("margin = 0.5", "margin = inf"), 41, "should be a finite number"),
    ],
)
def test_a_mistake_is_told_with_its_line(jostle, folder, change, line, said):
    path = folder / "small" / "suite.toml"
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    code, _, err = jostle("suite", "run", "./suites/small", "--controller", "reno")
    assert code == 2
    assert f"suites/small/suite.toml:{line}:" in err, err
    assert said in err, err


def test_no_such_suite(jostle):
    code, _, err = jostle("suite", "run", "./suites/smal", "--controller", "reno")
    assert code == 2
    assert "did you mean `small`" in err
    assert "looked for suites/smal/suite.toml" in err


def test_an_id_never_means_the_current_folder(jostle):
    code, _, err = jostle("suite", "run", "small", "--controller", "reno")
    assert code == 2
    assert "for the one in this folder, write ./suites/small" in err
