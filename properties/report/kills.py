"""The results of mutation testing: the value of each law, rarely killed mutants, sizes after shrinking."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import median
from typing import NamedTuple

from ..checking.check import shares_queries
from ..checking.mutation import LAWS, Kill
from ..checking.pools import definitions_drawn, histories_in_pools
from ..checking.running import OF_MUTANTS, SHARE_WITH_VARIANTS
from ..checking.samples import scheduled_of
from ..checking.shrinking import trimmed
from ..generators.options import met_by
from ..laws.all import ON_SPARK, asked_of
from ..laws.base import Law
from ..laws.metamorphic.reruns import RerunLaw
from ..laws.metamorphic.variants import VariantLaw
from ..laws.runs import PART
from ..laws.unique_kills import why
from ..registration.registration import Options, Registration, registration_of

DEFAULT_HISTORIES = 2000  # for a check
MIN_KILLING = 10  # if fewer histories of a check kill a mutant, the report names it
MIN_IN_COMMON = 3  # options that fewer killing histories share may be chance
MAX_MUTANTS_NAMED, MAX_OPTIONS_NAMED = 3, 2


class Worth(NamedTuple):
    """The value of a law: its contribution beyond the other laws.

    Attributes:
        law: The law's name.
        kills: The number of mutants that the law kills.
        alone: The names of mutants that no other law kills.
        why: The mutants of `alone` as text, or the reason why the law is checked although `alone` is empty.
    """

    law: str
    kills: int
    alone: list[str]
    why: str


def worth_of_laws(kills: Sequence[Kill]) -> list[Worth]:
    """Count the mutants that each law kills, and list the mutants that no other law kills."""
    rows = []
    for law in _judging(kills):
        alone = [kill.mutant.name for kill in kills if [*kill.laws] == [law]]
        more = f" and {len(alone) - MAX_MUTANTS_NAMED} more" if len(alone) > MAX_MUTANTS_NAMED else ""
        said = f"{', '.join(alone[:MAX_MUTANTS_NAMED])}{more}" if alone else why(law)
        rows.append(Worth(law, sum(law in kill.laws for kill in kills), alone, said))
    return rows


def laws_not_asked(kills: Sequence[Kill]) -> dict[str, str]:
    """Return the reasons why laws judged no mutant of an operator, by the laws' names."""
    _, unasked = asked_of(registration_of(kills[0].mutant.operator), ON_SPARK)
    judging = _judging(kills)
    return {law.name: unasked.get(law.name, why(law.name)) for law in ON_SPARK if law.name not in judging}


def _judging(kills: Sequence[Kill]) -> list[str]:
    return [law.name for law in ON_SPARK if any(kill.judged.get(law.name) for kill in kills)]


class Rare(NamedTuple):
    """A mutant that a check would kill in too few histories.

    Attributes:
        kill: Its result.
        law: The law that would kill the mutant in the most histories.
        histories: The number of killing histories in a check of the default size.
        of: The number of histories that a check of the default size draws for the operator.
        needed: The size of a check in which enough histories kill the mutant.
        options: The rare option values that all killing histories share.
    """

    kill: Kill
    law: str
    histories: float
    of: int
    needed: int
    options: list[str]

    def __str__(self) -> str:
        """Return the mutant as a line of a report, with the remedy."""
        shown, drawn = len(self.kill.shown[self.law]), self.kill.drawn
        in_check = f"{self.histories:.0f} of {self.of:,}" if self.histories >= 1 else f"less than 1 of {self.of:,}"
        here = "" if (shown, drawn) == (round(self.histories), self.of) else f", {shown:,} of {drawn:,} here"
        rarely = f"; all have {' and '.join(self.options)}" if self.options else ""
        return (
            f"killed in fewer than {MIN_KILLING} histories of a check: {self.kill.mutant.name} ({in_check}; "
            f"by {self.law}{here}): check --histories {self.needed:,} would kill it {MIN_KILLING} times{rarely}"
        )


def rare(kills: Sequence[Kill], seed: int = 0) -> list[Rare]:
    """Return the mutants that a check of the default size would kill in too few histories.

    The estimate uses the share of drawn histories that violated a law. If a check judges a law on a smaller share of
    histories than mutation testing does, the estimate is reduced accordingly.

    Args:
        kills: The results of an operator's mutants.
        seed: The seed of the definitions.
    """
    found = []
    operators = {kill.mutant.operator for kill in kills}
    definitions = {name: definitions_drawn(registration_of(name), seed) for name in operators}
    for kill in kills:
        if not kill.laws:
            continue
        shares = {
            law: Fraction(len(kill.shown[law]), kill.drawn) * asked_by_check(kill.results[law].law) for law in kill.laws
        }
        of_operator = definitions[kill.mutant.operator]
        drawn = drawn_by_check(kill, of_operator)
        law = max(shares, key=lambda one: shares[one])
        expected = float(shares[law] * drawn(DEFAULT_HISTORIES))
        if expected < MIN_KILLING:
            needed = histories_for(math.ceil(MIN_KILLING / shares[law]), drawn) if shares[law] else 0
            seldom = seldom_drawn(kill, law, of_operator)
            found.append(Rare(kill, law, expected, drawn(DEFAULT_HISTORIES), needed, seldom))
    return found


def asked_by_check(law: Law) -> Fraction:
    """Return on how large a share of mutation testing's histories a check of the same size judges a law."""
    if isinstance(law, RerunLaw):
        return Fraction(1, PART)
    if isinstance(law, VariantLaw):
        return Fraction(OF_MUTANTS, SHARE_WITH_VARIANTS)
    return Fraction(1)


def drawn_by_check(kill: Kill, definitions: Sequence[Options]) -> Callable[[int], int]:
    """Return a function that tells how many of a check's n histories have options that suit the mutant."""
    registration = registration_of(kill.mutant.operator)
    profiles = len(registration.profiles)
    if kill.mutant.scheduled:
        return lambda histories: max(profiles, scheduled_of(histories))
    if shares_queries(registration):
        return lambda histories: histories_in_pools(registration, definitions, histories)
    return lambda histories: max(1, round(histories / profiles))


def histories_for(drawn: int, drawn_by: Callable[[int], int]) -> int:
    """Return the size, rounded up to two digits, of a check that draws `drawn` histories which can kill the mutant."""
    asked = drawn
    while drawn_by(asked) < drawn:
        asked += max(1, asked // 10)
    digit = int(10 ** max(0, len(str(asked)) - 2))
    return math.ceil(asked / digit) * digit


def seldom_drawn(kill: Kill, law: str, definitions: Sequence[Options]) -> list[str]:
    """Return the option values that all histories with a violation share, but few definitions have."""
    registration, shown = registration_of(kill.mutant.operator), kill.shown[law]
    if len(shown) < MIN_IN_COMMON:
        return []
    common = set.intersection(*(_values(registration, history.options) for history in shown))
    having = Counter(value for options in definitions for value in common & _values(registration, options))
    seldom = sorted((having[value], value) for value in common if 2 * having[value] < len(definitions))
    of = f"of {len(definitions)} definitions"
    return [f"{value.removeprefix('options ')} ({count} {of})" for count, value in seldom[:MAX_OPTIONS_NAMED]]


def _values(registration: Registration, options: Options) -> set[str]:
    """Return the coverage goals that single option values cover, default values included."""
    goals = met_by(registration, options)
    return {goal for goal in goals if " with " not in goal and not goal.endswith(" left out")}


def survivors(kills: Sequence[Kill]) -> list[str]:
    """Return a line for each surviving mutant: the number of histories, the remedy, and the laws not checked."""
    return [_survived(kill) for kill in kills if not kill.killed]


def _survived(kill: Kill) -> str:
    mutant = kill.mutant
    _, unasked = asked_of(registration_of(mutant.operator), LAWS)
    reasons = "".join(f"; {mutant.operator} isn't asked {law}: {reason}" for law, reason in unasked.items())
    if not kill.drawn:
        return f"survived: {mutant.name}: no history was judged{reasons}"
    # Rule of three: if more than one in `share` histories showed the bug, all would miss it with probability < 0.05.
    share = max(1, kill.drawn // 3)
    histories = max(DEFAULT_HISTORIES, 10 * kill.drawn)
    return (
        f"survived: {mutant.name} (0 of {kill.drawn:,}): fewer than one in {share:,} histories kill it, if any: "
        f"mutants {mutant.operator} {mutant.name} --histories {histories:,} would check more{reasons}"
    )


def shrunk_sentence(kills: Sequence[Kill]) -> str | None:
    """Return a sentence on the length of the shrunk histories; None if no history was shrunk."""
    sizes = [(len(one.records), len(trimmed(one).batches)) for kill in kills if (one := kill.shrunk) is not None]
    if not sizes:
        return None
    arrivals, batches = zip(*sizes, strict=True)
    return (
        f"Shrunk histories of {len(sizes)} mutants: arrivals median {median(arrivals):g}, at most {max(arrivals)}; "
        f"batches median {median(batches):g}, at most {max(batches)}."
    )
