"""The two sides of a comparison: stores, versions, backends, scenarios, or conditions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.registry import parse_backend
from jostle.cli.environment import Environment
from jostle.cli.options import overrides_of
from jostle.cli.run import carry_out, plan_files, warn
from jostle.errors import InputError, name_source, unknown
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan

Pair = tuple[tuple[str, "ResultSet"], tuple[str, "ResultSet"]]
"""Name and results of each side."""


BACKEND_KEY = "backend"
"""Key of `--vary` whose values are backends."""


def pairs_of(environment: Environment, options: dict[str, Any], vary: str | None) -> list[Pair]:
    """Return the two sides of every comparison, with their names.

    Raises
    ------
    InputError
        If there are not two sides, or they have nothing in common.
    """
    sources = options["files"]
    if vary is not None:
        if len(sources) != 1 or Path(sources[0]).is_dir():
            raise InputError("--vary is of one scenario: give one FILE")
        key, values = _two_values(vary)
        if key == BACKEND_KEY:
            return [_by_backends(environment, options, values)]
        return [_by_key(environment, options, key, values)]
    if len(sources) == 1 and Path(sources[0]).is_dir():
        return _versions(Path(sources[0]))
    if len(sources) != 2:
        raise InputError(
            "there are two sides: give two scenarios or stores, or one scenario with --vary KEY=A,B"
        )
    if any(Path(source).is_dir() for source in sources):
        return _with_stores(environment, options, sources)
    first, second = _carried_out(environment, options, sources)
    return [(("A", first), ("B", second))]


def _two_values(text: str) -> tuple[str, tuple[str, str]]:
    key, equals, values = text.partition("=")
    names = tuple(value.strip() for value in values.split(","))
    if not equals or not key.strip() or len(names) != 2 or not all(names):
        raise InputError(f"--vary {text}: write it as KEY=A,B")
    return key.strip(), (names[0], names[1])


def _carried_out(
    environment: Environment, options: dict[str, Any], files: Sequence[str]
) -> list[ResultSet]:
    given = {**options, "files": tuple(files)}
    return carry_out(environment, plan_files(environment, **given), **given)


def _by_key(
    environment: Environment, options: dict[str, Any], key: str, values: tuple[str, str]
) -> Pair:
    from jostle.results.compare import between
    from jostle.results.measure_samples import find_key

    plans = plan_files(environment, **options)
    with name_source(plans[0].source):
        _check_is_varied(environment, options, plans[0], key, values)
        name = find_key(plans[0].conditions, key, ())
        known = list(dict.fromkeys(c[name] for c in plans[0].conditions if name in c))
        for value in values:
            if value not in known:
                raise InputError(unknown(f"value of {name}", value, known))
    (results,) = carry_out(environment, plans, **options)
    first, second = between(results, name, values)
    return (values[0], first), (values[1], second)


def _check_is_varied(
    environment: Environment,
    options: dict[str, Any],
    plan: RunPlan,
    key: str,
    values: tuple[str, str],
) -> None:
    """Say what to add to a scenario whose grid does not have one of its keys.

    Raises
    ------
    InputError
        If the scenario has the key, with one value.
    """
    from jostle.scenario import ScenarioError
    from jostle.scenario.parsing.key_endings import matching_keys
    from jostle.scenario.parsing.quantities import QuantityError
    from jostle.scenario.resolve.key_paths import find, full_key, parse_value, value_at

    if matching_keys(key, list({name: None for one in plan.conditions for name in one})):
        return
    scenario = environment.load_scenario(
        options["files"][0],
        overrides_of(options["settings"]),
        allow_code=options["allow_code"],
    )
    try:
        name = full_key(scenario.document, key)
        paths = find(scenario.document, name)
        if not any(value_at(scenario.document, path)[0] for path in paths):
            # The key may have its default.
            scenario.set({name: parse_value(values[0])})
    except (QuantityError, ScenarioError):
        return
    line = f"{json.dumps(name)} = {json.dumps(list(map(parse_value, values)))}"
    raise InputError(
        f"the grid does not vary `{name}`, and --vary compares values of the grid: add {line} to "
        "the table [grid]"
    )


def _by_backends(environment: Environment, options: dict[str, Any], names: tuple[str, str]) -> Pair:
    for name in names:
        parse_backend(name)
    sides = []
    for name in names:
        (results,) = _carried_out(environment, {**options, "backend": name}, options["files"])
        sides.append((name, results))
    return sides[0], sides[1]


def _versions(root: Path) -> list[Pair]:
    """Return the last and the previous version of each scenario in a store."""
    from jostle.store.stored_results import stored_plans, stored_results

    pairs: list[Pair] = []
    for plans in stored_plans(root).values():
        if len(plans) > 1:
            new, old = plans[:2]
            pairs.append(
                (("before", stored_results(root, old, warn)),
                 ("after", stored_results(root, new, warn)))
            )  # fmt: skip
    if not pairs:
        raise InputError(f"{root}: no scenario was run there by two versions or backends")
    return pairs


def _with_stores(
    environment: Environment, options: dict[str, Any], sources: Sequence[str]
) -> list[Pair]:
    """Match scenarios of two stores, or of a store and a file, by title."""
    from jostle.store.stored_results import stored_plans, stored_results

    sides: list[dict[str, ResultSet]] = []
    for source in sources:
        root = Path(source)
        if root.is_dir():
            plans = stored_plans(root)
            sides.append({title: stored_results(root, of[0], warn) for title, of in plans.items()})
        else:
            (results,) = _carried_out(environment, options, [source])
            sides.append({results.title: results})
    common = [title for title in sides[0] if title in sides[1]]
    for at, side in enumerate(sides):
        alone = [title for title in side if title not in common]
        if alone and common and all(Path(source).is_dir() for source in sources):
            echo(f"only in {sources[at]}: {', '.join(alone)}", err=True)
    if not common:
        raise InputError("the two sides have no scenario in common: they are found by their titles")
    return [(("A", sides[0][title]), ("B", sides[1][title])) for title in common]
