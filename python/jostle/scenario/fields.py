"""Types of single values in the scenario format, each with a parser and a JSON Schema."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from jostle.scenario import stopping_rule
from jostle.scenario.distributions import DistributionKeyError, RandomQuantity, Unit, parse_quantity
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.quantities import (
    LARGEST,
    Amount,
    QuantityError,
    format_amount,
    parse_amount,
    parse_number,
    parse_probability,
    parse_rate,
    parse_size,
    parse_span,
)
from jostle.scenario.wifi_jitter import jitter_quantiles

MIN_MTU_BYTES: Final = 576
"""Packet size that every IPv4 host must accept (RFC 791)."""

MAX_MTU_BYTES: Final = 65_535
"""Largest IPv4 packet: the total length field has 16 bits."""

BUILT_IN_QUIC: Final = "noq"
"""Name of the QUIC implementation that is built into the engine."""

Steps = tuple[tuple[int, int], ...]
"""(time in ns, value) pairs in order of time, beginning at 0."""
Playout = tuple[str, float]
"""Playout buffer: "best", or "quantile" and a share, or "buffer" and a time in ns."""
QuantileTable = tuple[tuple[float, int], ...]
"""(probability, value in ns) pairs; probabilities from 0 to 1, values never decreasing."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _+()=-]*")
_LONGEST_NAME: Final = 255
"""Limit of file names. Names that are used as file names are checked for a shorter limit."""
_NUMBER: Final = r"^\s*\d[\d_]*(\.\d+)?([eE][+-]?\d+)?\s*"


class _ElementError(QuantityError):
    """An error in an element of a list or table value."""

    def __init__(self, at: KeyPath, message: str) -> None:
        super().__init__(message)
        self.at = at


def _checked(parse: Callable[[Any], Any]) -> PlainValidator:
    def check(given: Any) -> Any:
        try:
            return parse(given)
        except QuantityError as error:
            at = list(error.at) if isinstance(error, _ElementError) else []
            at = [error.key] if isinstance(error, DistributionKeyError) else at
            context = {"message": str(error), "at": at}
            raise PydanticCustomError("jostle", "{message}", context) from None

    return PlainValidator(check)


def _positive(parse: Callable[[Any], int], example: str) -> Callable[[Any], int]:
    def check(given: Any) -> int:
        value = parse(given)
        if value == 0:
            raise QuantityError(f'"{given}" must be more than 0 — write for example "{example}"')
        return value

    return check


def _quantity_schema(units: str, example: str) -> WithJsonSchema:
    schema = {"type": "string", "pattern": f"{_NUMBER}({units})\\s*$", "examples": [example]}
    return WithJsonSchema(schema)


def _element(at: KeyPath, parse: Callable[[Any], Any], given: Any) -> Any:
    try:
        return parse(given)
    except _ElementError as error:
        raise _ElementError((*at, *error.at), str(error)) from None
    except QuantityError as error:
        raise _ElementError(at, str(error)) from None


def _pair(index: int, given: Any, form: str) -> tuple[Any, Any]:
    if not isinstance(given, list) or len(given) != 2:
        raise _ElementError((index,), f"an element here is a pair {form}")
    return given[0], given[1]


def _steps(parse: Callable[[Any], int], example: str) -> Callable[[Any], Steps]:
    form = f'["0 s", "{example}"]'

    def check(given: Any) -> Steps:
        if not isinstance(given, list):
            return ((0, parse(given)),)
        if not given:
            raise QuantityError(f'no steps — write one value, "{example}", or steps [{form}, …]')
        steps: list[tuple[int, int]] = []
        for index, element in enumerate(given):
            at, value = _pair(index, element, form)
            at_ns = _element((index, 0), parse_span, at)
            if not steps and at_ns:
                raise _ElementError((0, 0), 'the first step has to be at "0 s"')
            if steps and at_ns <= steps[-1][0]:
                raise _ElementError((index, 0), f'"{at}" is not after the step before it')
            steps.append((at_ns, _element((index, 1), parse, value)))
        return tuple(steps)

    return check


def _rates(given: Any) -> Steps:
    steps = _steps(parse_rate, "144 Mbit/s")(given)
    if not any(rate for _, rate in steps):
        shown = f'"{given}"' if isinstance(given, str) else "every step"
        raise QuantityError(f'{shown} carries nothing — write for example "144 Mbit/s"')
    return steps


def _playout(given: Any) -> Playout:
    if given == "best":
        return "best", 0
    if isinstance(given, str) and given.rstrip().endswith("%"):
        return "quantile", parse_probability(given)
    try:
        return "buffer", parse_span(given)
    except QuantityError as error:
        raise QuantityError(f'{error}; or "best", or a share, "99 %"') from None


def _sampling_interval(given: Any) -> int | Literal["auto"]:
    if given == "auto":
        return "auto"
    try:
        return _positive(parse_span, "100 ms")(given)
    except QuantityError as error:
        raise QuantityError(f'{error}; or "auto"') from None


def _quantiles(
    given: Any,
    parse: Callable[[Any], int] = parse_span,
    kind: Literal["time", "rate"] = "time",
    example: str = "33 ms",
) -> QuantileTable:
    form = f'["50 %", "{example}"]'
    table = isinstance(given, dict)
    pairs: list[tuple[KeyPath, Any, Any]]
    if isinstance(given, dict):
        pairs = [((key,), key, value) for key, value in given.items()]
    elif isinstance(given, list):
        pairs = [((index,), *_pair(index, one, form)) for index, one in enumerate(given)]
    else:
        raise QuantityError(f"quantiles are a list of pairs {form}")
    if len(pairs) < 2:
        raise QuantityError('at least two quantiles are needed: "0 %" and "100 %"')
    points: list[tuple[float, int]] = []
    for at, written, value in pairs:
        probability = _element(at if table else (*at, 0), parse_probability, written)
        amount = _element(at if table else (*at, 1), parse, value)
        if points and probability <= points[-1][0]:
            raise _ElementError(at, f'the probability "{written}" is not above the one before it')
        if points and amount < points[-1][1]:
            before = format_amount(points[-1][1], kind)
            raise _ElementError(at, f'quantiles never decrease: "{value}" comes after "{before}"')
        points.append((probability, amount))
    if points[0][0] != 0 or points[-1][0] != 1:
        raise QuantityError('quantiles have to reach from "0 %" to "100 %"')
    return tuple(points)


def _rate_quantiles(given: Any) -> QuantileTable:
    points = _quantiles(given, parse_rate, "rate", "50 Mbit/s")
    if points[-1][1] == 0:
        raise QuantityError("these rates carry nothing")
    return points


def _waits(given: Any) -> QuantileTable:
    if isinstance(given, list | dict):
        return _quantiles(given)
    value = parse_span(given)
    return ((0.0, value), (1.0, value))


def _durations(given: Any) -> QuantileTable:
    points = _waits(given)
    if points[-1][1] == 0:
        raise QuantityError('an outage must last longer than "0 s"')
    return points


def _phase(given: Any) -> tuple[int, int]:
    if not isinstance(given, list) or len(given) != 2:
        raise QuantityError('a phase is a start and an end, as in ["60 s", "120 s"]')
    start = _element((0,), parse_span, given[0])
    end = _element((1,), parse_span, given[1])
    if end <= start:
        raise QuantityError(f'the phase ends at "{given[1]}", not after its start "{given[0]}"')
    return start, end


def _name(given: Any) -> str:
    if not isinstance(given, str) or _NAME.fullmatch(given) is None:
        shown = f'"{given}"' if isinstance(given, str) else "this"
        raise QuantityError(
            f"{shown} is not a name — use letters, digits, spaces and _ + ( ) = -, beginning with "
            "a letter or digit"
        )
    if len(given) > _LONGEST_NAME:
        raise QuantityError(f"a name of {len(given)} characters — at most {_LONGEST_NAME}")
    return given


def _address(given: Any) -> int:
    try:
        return int(ipaddress.IPv4Address(given if isinstance(given, str) else ""))
    except ipaddress.AddressValueError:
        shown = f'"{given}"' if isinstance(given, str) else "this"
        raise QuantityError(f'{shown} is no IPv4 address — write for example "10.0.0.1"') from None


def _packets(given: Any) -> int:
    if isinstance(given, str):
        amount = parse_amount(given)
        if amount.unit != "packets":
            raise QuantityError(f'"{given}" is not in packets — write for example 10')
        given = int(amount.value)
    if isinstance(given, bool) or not isinstance(given, int):
        raise QuantityError("this is not a number of packets — write for example 10")
    if given < 0:
        raise QuantityError(f"{given} is not a number of packets — write for example 10")
    if given > LARGEST:
        raise QuantityError(f"{given} is too large")
    return given


def _mtu(given: Any) -> int:
    size = parse_size(given)
    if not MIN_MTU_BYTES <= size <= MAX_MTU_BYTES:
        expected = f'from "{MIN_MTU_BYTES} B" to "{MAX_MTU_BYTES} B"'
        raise QuantityError(
            f'"{given}" is not the size of an IP packet — accepted here: {expected}'
        )
    return size


def _quantity(unit: Unit, example: str, *, least: int) -> Callable[[Any], int | RandomQuantity]:
    def check(given: Any) -> int | RandomQuantity:
        quantity = parse_quantity(unit, given)
        if isinstance(quantity, int) and quantity < least:
            raise QuantityError(f'"{given}" must be more than 0 — write for example "{example}"')
        return quantity

    return check


def _per_second(given: Any) -> float:
    text = given.strip() if isinstance(given, str) else ""
    number = text.removesuffix("/s")
    if number == text:
        raise QuantityError(f'{_quoted(given)} is not a number per second — write "5 /s"')
    rate = parse_number(number)
    if rate == 0:
        raise QuantityError(f'{_quoted(given)} must be more than 0 — write for example "5 /s"')
    return rate


def _load(given: Any) -> float:
    text = given.strip() if isinstance(given, str) else ""
    number = text.removesuffix("%")
    if number == text:
        raise QuantityError(f'{_quoted(given)} is not a share — write for example "60 %"')
    # Loads above 100 % exceed the capacity of the link and are allowed.
    share = parse_number(number) / 100
    if share == 0:
        raise QuantityError(f'{_quoted(given)} must be more than 0 — write for example "60 %"')
    return share


def _quoted(given: Any) -> str:
    return f'"{given}"' if isinstance(given, str) else "this"


def _positive_amount(given: Any) -> Amount:
    amount = parse_amount(given)
    if amount.value == 0:
        raise QuantityError(f'"{given}" must be more than 0 — write for example "30 MB"')
    return amount


def named(key: str) -> Callable[[Any], Any]:
    """Return a validator that converts a string to a table with the string as value of `key`."""

    def normalise(given: Any) -> Any:
        return {key: given} if isinstance(given, str) else given

    return normalise


def absent(given: Any) -> Any:
    """Convert the word "none" to None, which removes a key that a profile sets."""
    return None if given == "none" else given


def jitter_table(given: Any) -> Any:
    """Convert "none" to None, and a table with a `model` to a table of quantiles.

    A model draws a new delay for each packet and keeps packets in order.
    """
    if not isinstance(given, dict) or "model" not in given:
        return absent(given)

    def wrong(key: str, message: str) -> PydanticCustomError:
        return PydanticCustomError("jostle", "{message}", {"message": message, "at": [key]})

    if given["model"] != "wifi":
        raise wrong("model", f'"{given["model"]}" is not known here — accepted: "wifi"')
    for key in given:
        if key not in {"model", "average"}:
            raise wrong(key, "unknown key — accepted with a model: average")
    if "average" not in given:
        raise wrong("average", 'missing — write for example average = "7 ms"')
    try:
        average = parse_span(given["average"])
    except QuantityError as error:
        raise wrong("average", str(error)) from None
    least, most = 10**6, 91 * 10**6
    if not least <= average <= most:
        raise wrong("average", f'"{given["average"]}" — accepted here: from "1 ms" to "91 ms"')
    return {"quantiles": jitter_quantiles(average / 1e6), "correlation": "0 s"}


def peer_cache_table(given: Any) -> Any:
    """Convert a string to a table with that `name`, and "none" to None."""
    return absent(given) if given == "none" else named("name")(given)


def receiver_table(given: Any) -> Any:
    """Convert a string to a table with that `kind`, and "none" to None."""
    return absent(given) if given == "none" else named("kind")(given)


def proxy_tables(given: Any) -> Any:
    """Convert a single proxy to a list with one entry, and "none" to an empty list."""
    if given == "none":
        return []
    return [given] if isinstance(given, dict) else given


def implementation_table(given: Any) -> Any:
    """Convert a string to a table with that recipe name, and the built-in QUIC's name to None."""
    return None if given == BUILT_IN_QUIC else named("name")(given)


def capture_table(given: Any) -> Any:
    """Convert true to a capture of packets without qlog, and false to None."""
    if isinstance(given, bool):
        return {} if given else None
    return given


def ack_frequency_table(given: Any) -> Any:
    """Convert a number to a table with that threshold, and "none" to None."""
    if isinstance(given, int) and not isinstance(given, bool):
        return {"ack_eliciting_threshold": given}
    return absent(given)


def loss_table(given: Any) -> Any:
    """Convert a probability to independent loss, and "none" to None."""
    if given is None or given == "none":
        return None
    if isinstance(given, dict):
        return given
    try:
        return {"kind": "independent", "probability": parse_probability(given)}
    except QuantityError as error:
        context = {"message": str(error), "at": []}
        raise PydanticCustomError("jostle", "{message}", context) from None


def rate_form(given: Any) -> str:
    """Return the form of a `rate`: "recorded" (from a file), "random", or "steps"."""
    if isinstance(given, dict):
        return "recorded" if "file" in given else "random"
    return "steps"


def loss_form(given: Any) -> str:
    """Return the form of a `loss`: "recorded" (from a file) or "kind"."""
    recorded = isinstance(given, dict) and "file" in given and "kind" not in given
    return "recorded" if recorded else "kind"


def delay_form(given: Any) -> str:
    """Return the form of a `delay`: "recorded" (from a file) or "steps"."""
    return "recorded" if isinstance(given, dict) else "steps"


def quick_start_table(given: Any) -> Any:
    """Convert a rate to a table with that `allowance`, and "none" to None."""
    if given is None or isinstance(given, dict):
        return given
    return None if given == "none" else {"allowance": given}


_SPAN_UNITS: Final = "ns|us|µs|ms|s|min|h"
_RATE_UNITS: Final = "bit/s|kbit/s|Mbit/s|Gbit/s"
_SIZE_UNITS: Final = "B|kB|MB|GB|KiB|MiB|GiB|packets?"
_SPAN_SCHEMA: Final = _quantity_schema(_SPAN_UNITS, "600 ms")
_RATE_SCHEMA: Final = _quantity_schema(_RATE_UNITS, "144 Mbit/s")
AMOUNT_SCHEMA: Final = _quantity_schema(f"{_SIZE_UNITS}|BDP", "1.5 BDP")
SPAN_SCHEMA: Final = _SPAN_SCHEMA
RATE_SCHEMA: Final = _RATE_SCHEMA


def _steps_schema(value: WithJsonSchema) -> WithJsonSchema:
    pair = {
        "type": "array",
        "prefixItems": [_SPAN_SCHEMA.json_schema, value.json_schema],
        "minItems": 2,
        "maxItems": 2,
    }
    return WithJsonSchema({"anyOf": [value.json_schema, {"type": "array", "items": pair}]})


PROBABILITY_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "string", "pattern": f"{_NUMBER}%?\\s*$", "examples": ["0.1 %"]},
    ]
}


def _quantiles_schema(value: WithJsonSchema) -> dict[str, Any]:
    pair = {
        "type": "array",
        "prefixItems": [PROBABILITY_SCHEMA, value.json_schema],
        "minItems": 2,
        "maxItems": 2,
    }
    listed = {"type": "array", "items": pair, "minItems": 2}
    return {"anyOf": [listed, {"type": "object", "additionalProperties": value.json_schema}]}


_QUANTILES: Final = _quantiles_schema(_SPAN_SCHEMA)
_DURATIONS: Final[dict[str, Any]] = {"anyOf": [_SPAN_SCHEMA.json_schema, *_QUANTILES["anyOf"]]}
_PHASE: Final[dict[str, Any]] = {
    "type": "array",
    "items": _SPAN_SCHEMA.json_schema,
    "minItems": 2,
    "maxItems": 2,
}
_PACKETS: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\s*\d+\s*packets?\s*$"},
    ]
}

Name = Annotated[
    str,
    _checked(_name),
    WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$", "maxLength": _LONGEST_NAME}),
]
Span = Annotated[int, _checked(parse_span), _SPAN_SCHEMA]
PositiveSpan = Annotated[int, _checked(_positive(parse_span, "600 ms")), _SPAN_SCHEMA]
SamplingInterval = Annotated[
    int | Literal["auto"],
    _checked(_sampling_interval),
    WithJsonSchema({"anyOf": [{"const": "auto"}, _SPAN_SCHEMA.json_schema]}),
]
Rate = Annotated[int, _checked(parse_rate), _RATE_SCHEMA]
PositiveRate = Annotated[int, _checked(_positive(parse_rate, "1 Gbit/s")), _RATE_SCHEMA]
PositiveSize = Annotated[
    int, _checked(_positive(parse_size, "1 MB")), _quantity_schema(_SIZE_UNITS, "1 GB")
]
_DISTRIBUTION: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"distribution": {"type": "string", "examples": ["lognormal", "web-search"]}},
    "required": ["distribution"],
}
_SIZES: Final[dict[str, Any]] = {
    "anyOf": [_quantity_schema(_SIZE_UNITS, "20 kB").json_schema, _DISTRIBUTION]
}
_SPANS: Final[dict[str, Any]] = {"anyOf": [_SPAN_SCHEMA.json_schema, _DISTRIBUTION]}
Sizes = Annotated[
    int | RandomQuantity, _checked(_quantity("size", "20 kB", least=1)), WithJsonSchema(_SIZES)
]
"""A size, or a distribution of sizes."""
Spans = Annotated[
    int | RandomQuantity, _checked(_quantity("time", "2 s", least=0)), WithJsonSchema(_SPANS)
]
PositiveSpans = Annotated[
    int | RandomQuantity, _checked(_quantity("time", "2 s", least=1)), WithJsonSchema(_SPANS)
]
Counts = Annotated[
    int | RandomQuantity,
    _checked(_quantity("count", "10", least=1)),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, _DISTRIBUTION]}),
]
CountsOrNone = Annotated[
    int | RandomQuantity,
    _checked(_quantity("count", "10", least=0)),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, _DISTRIBUTION]}),
]
PerSecond = Annotated[float, _checked(_per_second), WithJsonSchema({"type": "string"})]
Load = Annotated[float, _checked(_load), WithJsonSchema({"type": "string"})]
Mtu = Annotated[int, _checked(_mtu), _quantity_schema(_SIZE_UNITS, "9000 B")]
PositiveAmount = Annotated[Amount, _checked(_positive_amount), AMOUNT_SCHEMA]
Address = Annotated[int, _checked(_address), WithJsonSchema({"type": "string", "format": "ipv4"})]
Packets = Annotated[int, _checked(_packets), WithJsonSchema(_PACKETS)]
Probability = Annotated[float, _checked(parse_probability), WithJsonSchema(PROBABILITY_SCHEMA)]
PlayoutBuffer = Annotated[
    Playout,
    _checked(_playout),
    WithJsonSchema({"anyOf": [{"const": "best"}, PROBABILITY_SCHEMA, _SPAN_SCHEMA.json_schema]}),
]
Rates = Annotated[Steps, _checked(_rates), _steps_schema(_RATE_SCHEMA)]
Delays = Annotated[Steps, _checked(_steps(parse_span, "20 ms")), _steps_schema(_SPAN_SCHEMA)]
SpanQuantiles = Annotated[QuantileTable, _checked(_quantiles), WithJsonSchema(_QUANTILES)]
RateQuantiles = Annotated[
    QuantileTable, _checked(_rate_quantiles), WithJsonSchema(_quantiles_schema(_RATE_SCHEMA))
]
Waits = Annotated[QuantileTable, _checked(_waits), WithJsonSchema(_DURATIONS)]
Durations = Annotated[QuantileTable, _checked(_durations), WithJsonSchema(_DURATIONS)]
Phase = Annotated[tuple[int, int], _checked(_phase), WithJsonSchema(_PHASE)]
Until = Annotated[
    stopping_rule.Until,
    _checked(stopping_rule.parse_until),
    WithJsonSchema({"type": "string", "examples": ["goodput ± 2 %"]}),
]
