"""Findings: a disagreement, told so that a person can judge it and a test can keep it.

A finding is written before anything else is run, into a folder of its own: the smallest history, the account, and a
test to paste. The next check replays the saved histories first.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..reference.errors import BadInput
from ..reference.histories import History
from ..reference.play import play
from ..reference.records import Change, Dropped
from .laws import LAWS
from .outcomes import Difference, Grain, Outcome, Truth, are_same, differences, row_place, sorted_rows, typed
from .store import Metadata, Subject, digest, folder_name, save_history, take_away
from .visible import visible

if TYPE_CHECKING:
    from .spark_witness import Plan

DEFAULT_FOLDER = Path(".streamproof/findings")
ASKABLE = ("changelog", "table at every cut", "state")
"""The laws that a single history can be asked about again, by `examinations.breaks`."""
ALONE = "alone, outside its cohort, the history doesn't show it: what travels together isn't independent"
UNASKED = "the law wasn't asked again before the check ended"
"""Why a counterexample isn't confirmed."""
FOLLOWING = ("table at every cut", "order", "cuts", "repeats", "keys")
"""The laws that a wrong changelog breaks too: they make no finding of their own beside it."""


@dataclass(frozen=True)
class Finding:
    """A history on which two witnesses disagree.

    Attributes:
        law: The law that is broken, and what it says.
        sentence: The verdict in one sentence.
        history: The smallest history that was found.
        left: What the reference says, named.
        right: What the other witness says, named.
        differences: Where they part.
        confirmed: Whether the history alone, outside its cohort, shows it too, when the law is asked again.
        seed: The seed of the run.
        subject: Which check found it: that of the operator on Spark, or that of the reference.
        mutant: The seeded bug that stood in for the operator's own logic, if any.
        original: The history that `history` is a variant of, where the law relates the two.
        unconfirmed: Why it isn't confirmed, if it isn't.
    """

    law: str
    sentence: str
    history: History
    left: tuple[str, Outcome]
    right: tuple[str, Outcome]
    differences: Sequence[Difference]
    confirmed: bool
    seed: int
    subject: Subject = "spark"
    mutant: str | None = None
    original: History | None = None
    unconfirmed: str = ""

    @property
    def name(self) -> str:
        """A name for files: the law, and 12 digits of a hash of what makes the counterexample that one."""
        return folder_name(self.law, digest(self.law, self.subject, self.mutant, self.history, self.original))


def disagreement(witness: str, history: History, plan: Plan, confirmed: bool, seed: int) -> Finding:
    """Run a history alone on the reference and on Spark, and tell where the changelogs part."""
    from .spark_witness import answer

    reference, outcome = Outcome.of_play(history.name, play(history)), answer([history], plan)[0]
    found = differences(reference, outcome)
    law = LAWS["changelog"]
    said = sentence(law.sentence, witness, found[0]) if found else f"violated: {law.sentence}; but in its cohort only."
    return Finding(law.name, said, history, ("reference", reference), (witness, outcome), found, confirmed, seed)


def versions() -> str:
    """The versions that a finding depends on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "duckdb", "hypothesis", "pandas", "pyarrow"))
    return f"streamproof {version('streamproof')}, {packages}, Python {platform.python_version()}"


def account(finding: Finding) -> str:
    """Tell a finding: the verdict, the history, both outcomes side by side, and where it came from."""
    lines = [finding.sentence, ""]
    if not finding.confirmed:
        lines += [
            f"not confirmed: {finding.unconfirmed or ALONE}. A test of it would prove nothing: none is written.",
            "",
        ]
    if finding.original is not None:
        lines += ["Original:", *("    " + line for line in finding.original.to_text().splitlines()), ""]
    lines += ["History:", *("    " + line for line in finding.history.to_text().splitlines()), ""]
    lines += side_by_side(finding.left, finding.right, {difference.key for difference in finding.differences})
    lines += ["", f"Seed {finding.seed}; {versions()}.", ""]
    return "\n".join(lines)


def side_by_side(left: tuple[str, Outcome], right: tuple[str, Outcome], keys: Container[str | None]) -> list[str]:
    """The outcomes of some keys in two columns, by batch (or arrival) and key; a line on which they part is marked.

    In each step changes come first, then dropped records, which are marked only where both witnesses know them.
    """
    rows: list[tuple[str, str, str, bool]] = []
    outcomes = (left[1], right[1])
    if Grain.END in (left[1].grain, right[1].grain):
        results = [dict(sorted_rows(outcome.result)) for outcome in outcomes]
        for at in sorted((at for at in results[0].keys() | results[1].keys() if at[0] in keys), key=row_place):
            rows_there = [result.get(at, []) for result in results]
            parted = not all(are_same(*pair) for pair in zip_longest(*rows_there))
            rows.append(("at the end", *both_shown(rows_there[0], rows_there[1], nothing=""), parted))
    else:
        by_arrival = Grain.BATCH not in (left[1].grain, right[1].grain)
        sides = [
            [(entry.arrival if by_arrival else entry.batch, entry.output) for entry in outcome.entries]
            for outcome in outcomes
        ]
        told_of = {(number, output.key or "") for side in sides for number, output in side if output.key in keys}
        for number, key in sorted(told_of):
            when = f"{'arrival' if by_arrival else 'batch'} {number}"
            for kind, compared in ((Change, True), (Dropped, all(outcome.knows_dropped for outcome in outcomes))):
                ours, theirs = (
                    [
                        output
                        for at, output in side
                        if (at, output.key or "") == (number, key) and isinstance(output, kind)
                    ]
                    for side in sides
                )
                for pair in zip_longest(ours, theirs):
                    rows.append((when, *both_shown(*pair, nothing=""), compared and not are_same(*pair)))
                    when = ""
    width = max([len(left[0]), *(len(row[1]) for row in rows)])
    told = [f"    {'':10} {left[0]:{width}}   {right[0]}"]
    told += [f"  {'≠' if parted else ' '} {when:10} {one:{width}}   {other}" for when, one, other, parted in rows]
    return [line.rstrip() for line in told]


def shown(output: Any) -> str:
    """An output in the facts' notation: `a@[0,10]=2`, `∅ a@[0,0]`, `dropped a (late)`; nothing unseen is in it."""
    return _shown(output, str(output.value) if isinstance(output, Change) else "")


def _shown(output: Any, value: str) -> str:
    match output:
        case Dropped():
            return f"dropped {visible(output.key)} ({visible(output.reason)})"
        case Change():
            key = visible(output.key)
            where = key if output.window is None else f"{key}@[{output.window[0]},{output.window[1]}]"
            told = f"∅ {where}" if output.value is None else f"{where}={visible(value)}"
            due = output.window is None or output.timestamp != output.window[1]
            return f"{told} at {output.timestamp}" if due else told
    return visible(output)


def both_shown(one: Any, other: Any, nothing: str = "nothing") -> tuple[str, str]:
    """Two outputs, or lists of them, as `shown`: where they differ and their texts agree, with the types of values.

    `a=1 (str)` against `a=1 (int)`, as deep within lists and objects as is needed to see what differs. None, and an
    empty list beside None or another list, is shown as `nothing`.
    """
    if isinstance(one, list) or isinstance(other, list):
        ours, theirs = ([] if side is None else side if isinstance(side, list) else [side] for side in (one, other))
        pairs = [both_shown(*pair) for pair in zip_longest(ours, theirs)]
        return (
            ", ".join(pair[0] for pair in pairs[: len(ours)]) or nothing,
            ", ".join(pair[1] for pair in pairs[: len(theirs)]) or nothing,
        )
    texts = (nothing if one is None else shown(one), nothing if other is None else shown(other))
    if texts[0] != texts[1] or are_same(one, other):
        return texts
    if isinstance(one, Change) and isinstance(other, Change):
        values = _with_types(one.value, other.value, str)
        return _shown(one, values[0]), _shown(other, values[1])
    types = _with_types(one, other, str)
    return visible(types[0]), visible(types[1])


def _with_types(one: Any, other: Any, text: Callable[[Any], str] = repr) -> tuple[str, str]:
    """Two values as texts, with the types of what differs in them."""
    if typed(one) == typed(other):
        return text(one), text(other)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        members = [_with_types(*pair) for pair in zip(one, other, strict=True)]
        ours, theirs = (", ".join(pair[side] for pair in members) for side in (0, 1))
        return f"[{ours}]", f"[{theirs}]"
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        fields = [(name, _with_types(one[name], other[name])) for name in one]
        ours, theirs = (", ".join(f"{name!r}: {pair[side]}" for name, pair in fields) for side in (0, 1))
        return f"{{{ours}}}", f"{{{theirs}}}"
    if type(one) is type(other):
        return repr(one), repr(other)
    names = [_type_name(value) for value in (one, other)]
    if names[0] == names[1]:
        names = [f"{type(value).__module__}.{type(value).__qualname__}" for value in (one, other)]
        text = repr
    return f"{text(one)} ({names[0]})", f"{text(other)} ({names[1]})"


def _type_name(value: Any) -> str:
    return "bool" if isinstance(value, Truth) else type(value).__name__


def sentence(law_sentence: str, witness: str, difference: Difference, expected: str = "the reference") -> str:
    """The verdict in one sentence: what should hold, where it fails, what was expected by whom and what came."""
    where = "at the end" if difference.when is None else f"in batch {difference.when}"
    left, right = difference.left, difference.right
    after = ""
    if isinstance(left, list) and isinstance(right, list):
        pairs = list(zip_longest(left, right))
        same = next((number for number, pair in enumerate(pairs) if not are_same(*pair)), 0)
        left, right = pairs[same] if pairs else (None, None)
        after = f", after {same} equal changes," if same else ""
    ours, theirs = both_shown(left, right)
    return (
        f"violated: {law_sentence}; but for key {visible(difference.key)} {where}{after} {expected} tells {ours}, "
        f"and {witness} {theirs}."
    )


def test_to_paste(finding: Finding) -> str | None:
    """A pytest test that fails as long as the counterexample stands; None where it isn't confirmed, and none would."""
    if not finding.confirmed:
        return None
    arguments = [repr(finding.law), "HISTORY"]
    texts = {"HISTORY": finding.history.to_text()}
    if finding.original is not None:
        texts["ORIGINAL"] = finding.original.to_text()
        arguments.append("original=ORIGINAL")
    if finding.subject != "spark":
        arguments.append(f"subject={finding.subject!r}")
    if finding.mutant is not None:
        arguments.append(f"mutant={finding.mutant!r}")
    imported = ""
    if finding.subject == "job":
        imported = "from your_module import job  # the job that was given to conforms\n"
        arguments.append("job=job")
    # A history's text is ASCII, and in JSON three quotes never stand in a row.
    told = "".join(f'{name} = r"""\n{text}"""\n\n' for name, text in texts.items())
    return (
        f"from streamproof.properties.recheck import assert_holds\n{imported}\n"
        f"{told}\n"
        f"def test_{finding.name.replace('-', '_')}() -> None:\n"
        f"    assert_holds({', '.join(arguments)})\n"
    )


def save(finding: Finding, folder: Path, test: str | None = None) -> Path:
    """Write a finding into `folder/operator/name/`, whole or not at all, and give that folder.

    Nothing is overwritten: what lies there already is the same counterexample, and stays. `test` is the test to paste,
    where that is none of `test_to_paste`.

    Raises:
        BadInput: The folder can't be written; the account is in the message, so that nothing is lost.
    """
    others = {"finding.txt": account(finding)}
    test = test or test_to_paste(finding)
    if test is not None:
        others[f"test_{finding.name.replace('-', '_')}.py"] = test
    metadata = Metadata(
        folder,
        finding.law,
        finding.subject,
        finding.history.operator,
        finding.mutant,
        finding.confirmed,
        finding.seed,
        versions(),
        finding.original,
    )
    try:
        path, is_new = save_history(finding.history, metadata, others, refresh=finding.unconfirmed != UNASKED)
    except BadInput as error:
        raise BadInput(f"{error}; the finding was:", account(finding)) from None
    if is_new:
        _written.add((os.getpid(), path))
    return path


_written: set[tuple[int, Path]] = set()
"""The folders that this process made."""


def forget(path: Path) -> None:
    """Remove a finding's folder, for a smaller one of it is on disk; one that this process didn't make stays."""
    if (os.getpid(), path) in _written:
        _written.discard((os.getpid(), path))
        take_away(path)
