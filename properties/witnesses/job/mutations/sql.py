"""Changes of texts in a job's source: durations, schemas, conditions and SQL statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .....reference.core.durations import microseconds_of
from .....reference.core.errors import BadInput
from .names import AGGREGATES, SMALLER_TYPES
from .nodes import ChangeKind

_DURATION = re.compile(r"(\d+)(\s+[a-z]+)", re.IGNORECASE)
_INTERVAL = re.compile(r"(\binterval\s+'?)(\d+)('?\s+[a-z]+)", re.IGNORECASE)
_UNITS = {"hour": ("minute", 59), "minute": ("second", 59), "second": ("millisecond", 999), "day": ("hour", 23)}
_UNIT = re.compile(rf"\b({'|'.join(_UNITS)})(?=s?$)", re.IGNORECASE)
_DECIMAL = re.compile(r"(decimal\(\d+,\s*)([1-9]\d*)(\))")
_FIELD = re.compile(r"\s*`?\w+`?(?:\s*:\s*|\s+)(\w+(?:\(\d+(?:,\s*\d+)?\))?)(?:\s+not\s+null)?\s*", re.IGNORECASE)
_SCHEMA = re.compile(rf"{_FIELD.pattern}(?:,{_FIELD.pattern})*", re.IGNORECASE)
_TYPES = frozenset({*SMALLER_TYPES, "string", "boolean", "binary", "date", "smallint", "tinyint", "timestamp_ntz"})
_SIDE = r"[\w.`]+(?:\s*[+-]\s*interval\s+'?\d+'?\s+[a-z]+)?"
_BETWEEN = re.compile(rf"([\w.`]+)\s+between\s+({_SIDE})\s+and\s+({_SIDE})", re.IGNORECASE)
_Replaced = Sequence[tuple[re.Pattern[str], str, ChangeKind]]


def _patterns(*given: tuple[str, str, ChangeKind]) -> _Replaced:
    return [(re.compile(pattern, re.IGNORECASE | re.DOTALL), by, kind) for pattern, by, kind in given]


_SQL = _patterns(
    (r"(?<![<>=!])<(?![=>])", "<=", "comparison"),
    (r"<=(?!>)", "<", "comparison"),
    (r"(?<![<=])>(?!=)", ">=", "comparison"),
    (r">=", ">", "comparison"),
    (r"(?<![<>=!])=(?!=)", "<>", "comparison"),
    (r"<>|!=", "=", "comparison"),
    (r"\bis not null\b", "IS NULL", "null"),
    (r"\bis null\b", "IS NOT NULL", "null"),
    (r"\bnot\s+(?!null|in\b|like\b|between\b|exists\b|matched\b|distinct\b)", "", "condition"),
    (r"\bor\b(?!\s+(?:replace|ignore|abort|fail|rollback)\b)", "AND", "condition"),
    (r"\+(?=\s*interval)", "-", "arithmetic"),
    (r"-(?=\s*interval)", "+", "arithmetic"),
    (r"(?<!\bfrom\s)\bdistinct\s+(?!from\b)", "", "aggregate"),
    (r"\bcoalesce\(\s*([\w.`]+)\s*,[^()]*\)", r"\1", "null"),
    (r"(?<=\s)desc\b(?=\s*(?:,|\)|$|nulls\b|limit\b|rows\b))", "ASC", "order"),
    *((rf"\b{name}(?=\((?!\*))", others[0].upper(), "aggregate") for name, others in AGGREGATES.items()),
)
"""Parts of SQL, their replacements, and the kind of the change."""
_END = r"(?=\s+(?:group|order|having|limit|union|window|qualify|returning)\b|\s*[);]|\s*$)"
"""The end of a condition in a statement."""
_STATEMENT = re.compile(
    r"\s*(?:select\s.+\sfrom\s|with\s+\w+\s+as\s*\(|insert\s+(?:or\s+\w+\s+)?(?:into|overwrite)\s|replace\s+into\s|delete\s+from\s"
    r"|update\s+\S+\s+set\s|merge\s+into\s|create\s+(?:or\s+replace\s+)?(?:temp\w*\s+)?(?:table|view)\s)",
    re.IGNORECASE | re.DOTALL,
)
_STATEMENTS = _patterns(
    (r"\bif not exists\s+", "", "statement"),
    (r"\bor (?:replace|ignore)\s+", "", "statement"),
    (r"\bunion all\b", "UNION", "aggregate"),
    (r"\bunion\b(?!\s+all\b)", "UNION ALL", "aggregate"),
    (r"\b(?:left|right|full)(?:\s+outer)?\s+join\b", "INNER JOIN", "join"),
    (
        r"(?<!\bleft\s)(?<!\bright\s)(?<!\bfull\s)(?<!\bouter\s)(?<!\bcross\s)(?<!\bsemi\s)(?<!\banti\s)"
        r"(?:\binner\s+)?(?<!inner\s)\bjoin\b",
        "LEFT JOIN",
        "join",
    ),
    (
        rf"\s+(?:where|having)\b(?:[^();]|\([^()]*\))+?{_END}",
        "",
        "condition",
    ),
    (r"(\bwhen\s+(?:not\s+)?matched(?:\s+by\s+\w+)?)\s+and\s+(?:(?!\bthen\b).)+", r"\1 ", "condition"),
    (r"(\bon\s+conflict\b(?:\s*\([^()]*\))?\s+do\s+)update\s+set\s.+", r"\1NOTHING", "statement"),
    (r"\s+on\s+(?:conflict|duplicate\s+key)\b.+", "", "statement"),
)
"""Parts of SQL statements, their replacements, and the kind of the change."""
_SET = re.compile(r"\bset\s(?:(?!\b(?:where|when)\b).)+", re.IGNORECASE | re.DOTALL)
_WHEN = re.compile(r"\bwhen\s+(?:not\s+)?matched\b(?:(?!\bwhen\s+(?:not\s+)?matched\b).)+", re.IGNORECASE | re.DOTALL)
_INTO = re.compile(r"(\binto\s+[\w.`]+\s*\()([^()]+)\)", re.IGNORECASE)
_CONDITION = re.compile(rf"\b(?:where|having)\s+([^();]+?){_END}", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])(?!\s*'?\s*(?:second|minute|hour|day|week)s?\b)", re.IGNORECASE)
_TEXT = re.compile(r"'([^']*)'")


def other_sql(text: str) -> Iterator[tuple[str, ChangeKind]]:
    """Yield the changes of an SQL condition or expression, apart from its intervals, with their kinds."""
    ranges = [*_BETWEEN.finditer(text)]
    for found in ranges:
        value, least, most = found.groups()
        yield _replaced(found, f"({value} > {least} AND {value} <= {most})"), "comparison"
        yield _replaced(found, f"({value} >= {least} AND {value} < {most})"), "comparison"
        yield _replaced(found, f"{value} >= {least}"), "condition"
        yield _replaced(found, f"{value} <= {most}"), "condition"
    yield from _exchanged(text, _SQL)
    for found in _NUMBER.finditer(text):
        yield _replaced(found, str(int(found[0]) + 1)), "number"
    for found in _TEXT.finditer(text):
        if not text[: found.start()].lower().rstrip().endswith("interval"):
            yield _replaced(found, f"'{found[1]}?'"), "value"
    if not ranges and "(" not in text and not is_statement(text):
        for other in _fewer(text):
            yield other, "condition"


def is_statement(text: str) -> bool:
    """Return whether a text is an SQL statement."""
    return _STATEMENT.match(text) is not None


def other_statements(text: str) -> Iterator[tuple[str, ChangeKind]]:
    """Yield the changes of an SQL statement outside its expressions, with their kinds."""
    yield from _exchanged(text, _STATEMENTS)
    for found in _CONDITION.finditer(text):
        if not _BETWEEN.search(found[1]):
            for other in _fewer(found[1]):
                yield f"{text[: found.start(1)]}{other}{text[found.end(1) :]}", "condition"
    clauses = [*_WHEN.finditer(text)]
    for found in clauses if len(clauses) > 1 else ():
        yield _replaced(found, ""), "statement"
    for found in _INTO.finditer(text):
        names = [name.strip() for name in found[2].split(",")]
        for number in range(len(names) - 1):
            exchanged = [*names[:number], names[number + 1], names[number], *names[number + 2 :]]
            yield _replaced(found, f"{found[1]}{', '.join(exchanged)})"), "column"


def other_schemas(text: str) -> Iterator[str]:
    """Yield a schema, such as `user string, amount bigint`, with a smaller type for each field, where possible."""
    fields = [*_FIELD.finditer(text)]
    if _SCHEMA.fullmatch(text) and all(found[1].lower().partition("(")[0] in {*_TYPES, "decimal"} for found in fields):
        for found in fields:
            if (smaller := smaller_type(found[1])) is not None:
                yield f"{text[: found.start(1)]}{smaller}{text[found.end(1) :]}"


def smaller_type(name: str) -> str | None:
    """Return a type with fewer values than another type (None: no such type is known)."""
    if (scale := _DECIMAL.fullmatch(name.lower())) is not None:
        return f"{scale[1]}{int(scale[2]) - 1}{scale[3]}"
    return SMALLER_TYPES.get(name.lower())


def other_durations(text: str) -> Iterator[str]:
    """Yield a duration or interval with the number plus 1, minus 1 and times 1000, and with a smaller unit.

    For `1 hour`, also yield 59 and 61 minutes.
    """
    if (whole := _DURATION.fullmatch(text.strip())) is not None:
        try:
            microseconds_of("", text)
        except BadInput:
            return
        for number in _near(int(whole[1])):
            yield f"{number}{whole[2]}"
        if int(whole[1]) == 1 and (smaller := _UNITS.get(whole[2].strip().lower().removesuffix("s"))):
            for number in (smaller[1], smaller[1] + 2):
                yield f"{number} {smaller[0]}s"
        if (unit := _smaller_unit(whole[2])) != whole[2]:
            yield f"{whole[1]}{unit}"
        return
    for part in _INTERVAL.finditer(text):
        for number in _near(int(part[2])):
            yield f"{text[: part.start(2)]}{number}{text[part.end(2) :]}"
        if (unit := _smaller_unit(part[3])) != part[3]:
            yield f"{text[: part.start(3)]}{unit}{text[part.end(3) :]}"


def _smaller_unit(unit: str) -> str:
    """Return the next smaller unit, in the same case; the unit itself if no unit is smaller."""
    return _UNIT.sub(lambda found: _in_case(found[1], _UNITS[found[1].lower()][0]), unit)


def _in_case(like: str, text: str) -> str:
    return text.upper() if like.isupper() else text


def _near(number: int) -> list[int]:
    return [number + 1, *([number - 1] if number > 1 else []), 1_000 * number]


def _replaced(found: re.Match[str], by: str) -> str:
    return f"{found.string[: found.start()]}{by}{found.string[found.end() :]}"


def _exchanged(text: str, patterns: _Replaced) -> Iterator[tuple[str, ChangeKind]]:
    assigned = [found.span() for found in _SET.finditer(text)] if is_statement(text) else []
    for pattern, by, kind in patterns:
        for found in pattern.finditer(text):
            if found[0] == "=" and any(begin <= found.start() < end for begin, end in assigned):
                continue
            yield _replaced(found, found.expand(by)), kind


def _fewer(text: str) -> Iterator[str]:
    """Yield the combined conditions of a text, each time without a single condition."""
    parts = _AND.split(text)
    for number in range(len(parts) if len(parts) > 1 else 0):
        yield " AND ".join(part for index, part in enumerate(parts) if index != number)
