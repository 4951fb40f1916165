"""Claims in the format of studies, judged at each point of a sample."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jostle.errors import InputError
from jostle.parameter_search.objective_quantity import parse_quantity
from jostle.results.condition_names import short_names
from jostle.results.measures import measures

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.scenario import Scenario
    from jostle.studies.evaluate import ClaimRow
    from jostle.studies.models import Claim, ClaimPart
    from jostle.studies.study import Study

__all__ = ["judged", "read_claim", "study_of"]

_RELATION: Final = re.compile(r"\s*(?P<left>.*?)\s*(?P<sign><=|>=)\s*(?P<right>.*?)\s*")
_NUMBER: Final = re.compile(r"(?P<number>-?[\d.]+(?:e-?\d+)?)\s*(?P<rest>.*)")
_EXAMPLE: Final = '"share of bbr in steady <= 40 %" or "rtt of a <= 1.5 rtt of b"'
_EXPERIMENT: Final = "here"


def read_claim(text: str) -> Claim:
    """Parse a claim: a comparison, or the name of a file with `parts` like a study's claim.

    Raises
    ------
    InputError
        When it is neither.
    ScenarioError
        When the file is not TOML.
    """
    if text.endswith(".toml"):
        return _claim(_from_file(Path(text)), text)
    match = _RELATION.fullmatch(text)
    if match is None or not match["right"]:
        raise InputError(f'--claim "{text}": write it as {_EXAMPLE}, or name a file FILE.toml')
    left = parse_quantity(match["left"])
    part: dict[str, Any] = {
        "left": _value(match["left"]),
        "relation": "below" if match["sign"] == "<=" else "above",
    }
    number = _NUMBER.fullmatch(match["right"])
    rest = number["rest"].removeprefix("*").strip() if number else match["right"]
    if number and rest in ("", left.measure.display_unit):
        part["right"] = float(number["number"])
    elif number and re.split(r"\s", rest)[0] not in measures():
        unit = left.measure.display_unit or "no unit"
        raise InputError(f'--claim "{text}": {left.measure.name} is in {unit}, not in {rest}')
    else:
        part["right"] = _value(rest)
        part["factor"] = float(number["number"]) if number else 1.0
    return _claim({"id": "claim", "text": text, "parts": [part]}, text)


def _value(text: str) -> dict[str, str]:
    found = parse_quantity(text)
    return {"measure": found.measure.name, "flow": found.who, "window": found.phase}


def _from_file(path: Path) -> dict[str, Any]:
    from jostle.scenario.parsing.toml_document import parse, read_text
    from jostle.studies.library import with_defaults

    _, document = parse(read_text(path), str(path))
    defaults = document.pop("defaults", {})
    whole = with_defaults({"defaults": defaults, "claims": [document]})
    (claim,) = whole["claims"]
    return {"id": path.stem, "text": path.stem, **claim}


def _claim(document: dict[str, Any], text: str) -> Claim:
    from pydantic import ValidationError

    from jostle.studies.models import Claim

    try:
        return Claim.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{text}: {place}: {first['msg']}") from error


def study_of(scenario: Scenario, claim: Claim) -> Study:
    """Return a study of a claim at each point of a scenario's sample.

    Parameters
    ----------
    scenario
        A scenario with a sample. A value of the claim is taken, at each point, from the conditions
        that its `where` selects by the shortest names of the grid's keys.
    claim
        The claim.

    Raises
    ------
    InputError
        When the claim uses a name that the scenario does not have.
    """
    from jostle.studies.load import mismatches, pool_mistakes, values
    from jostle.studies.models import Experiment, StudyFile, Value
    from jostle.studies.study import Study

    short = short_names([*scenario.grid, *scenario.sample])
    names = [short[key] for key in scenario.sample]
    points = [
        dict(zip(names, labels, strict=True))
        for labels in zip(*scenario.sample.values(), strict=True)
    ]
    claims = tuple(
        claim.model_copy(
            update={"id": str(at), "parts": tuple(_at(p, labels) for p in claim.parts)}
        )
        for at, labels in enumerate(points)
    )
    keys = {name: key for key, name in short.items()}
    file = StudyFile.model_construct(
        title=scenario.title, paper="", defaults=Value(), claims=claims,
        experiments={_EXPERIMENT: Experiment(scenario=scenario.source, keys=keys)},
    )  # fmt: skip
    study = Study("boundary", Path(), file, {_EXPERIMENT: scenario})
    for _, text in mismatches(study):
        raise InputError(text)
    for path, value in values(study.file):
        for _, text in pool_mistakes(study, path, value):
            raise InputError(f"{text} — in a file of --claim FILE.toml")
    return study


def judged(scenario: Scenario, results: ResultSet, claim: Claim) -> Sequence[ClaimRow]:
    """Judge a claim at each point of a scenario's sample; see `study_of`."""
    from jostle.studies import Runs
    from jostle.studies.evaluate import evaluate

    return evaluate(Runs(study_of(scenario, claim), {_EXPERIMENT: results})).claims


def _at(part: ClaimPart, labels: dict[str, str]) -> ClaimPart:
    """Restrict a comparison's values to a point."""
    from jostle.studies.models import Value

    def placed(value: Value) -> Value:
        return value.model_copy(update={"where": {**value.where, **labels}})

    changes: dict[str, Any] = {"order": tuple(map(placed, part.order))}
    for name in ("left", "right"):
        value = getattr(part, name)
        if isinstance(value, Value):
            changes[name] = placed(value)
    return part.model_copy(update=changes)
