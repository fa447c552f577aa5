"""Coverage goals: what drawn histories must have met before anything that agrees on them may be said to conform.

Beside the situations of an operator there is a goal for each neighbour of a declaration, which has one of its numbers
larger or smaller by one: on some history the reference must emit something else under the neighbour than under the
declaration. So a job that is off by 1 ms disagrees with the reference on that history, whatever else it does. The same
is asked of a neighbour that has the right numbers, and closes or drops 1 ms late or early by the clock.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

from ..reference.clocks import Clock
from ..reference.errors import BadInput
from ..reference.histories import History
from ..reference.operators import Behaviour, operator_named
from ..reference.play import Played, play
from ..reference.records import Change, Key
from .domains import DOMAINS
from .draws import BATCHES, Shape, draw_histories, draw_schedule
from .operator_situations import needed
from .situations import SESSION_SITUATIONS, situations_of

EMITTED = "something emitted"
CLOSED = "session closed and emitted"
ATTEMPTS = 20
"""So many schedules are tried until all goals are covered; that takes no more than the reference."""


Finish: TypeAlias = Callable[[History], History]


class Neighbour(NamedTuple):
    """What is off by one: a declaration of which one number is, or a behaviour whose edges of the clock are.

    The goal is that it emits something else than the declaration and behaviour that it is the neighbour of.
    """

    goal: str
    options: Mapping[str, Any]
    behaviour: Callable[[Any, Clock], Behaviour] | None = None


class _OffClock:
    """Another clock, but off by some ms where it shows certain times: so an operator sees it whose edges are off."""

    def __init__(self, clock: Clock, by: int, at: Callable[[int], bool]) -> None:
        self.clock, self.by, self.at = clock, by, at

    @property
    def now(self) -> int:
        now = self.clock.now
        return now + self.by if self.at(now) else now

    def observe(self, timestamp: int) -> None:
        self.clock.observe(timestamp)

    def cut(self) -> None:
        self.clock.cut()


@dataclass(frozen=True)
class Drawn:
    """Histories of one cohort, and what they cover.

    Attributes:
        histories: The histories; all have one clock schedule.
        covered: In how many histories each goal was met; a neighbour's goal counts once.
        missing: The goals that were not met.
    """

    histories: list[History]
    covered: Counter[str]
    missing: tuple[str, ...]


def neighbours(operator: str, options: Mapping[str, Any]) -> list[Neighbour]:
    """Give the neighbours of a declaration, without those that the operator refuses.

    Raises:
        BadInput: The declaration itself is refused.
    """
    declaring = operator_named(operator)
    found = []
    for number in DOMAINS[operator].numbers(declaring.declare(options)):
        for value in (number.value - number.apart, number.value + number.apart):
            changed = {**options, **number.changed(value)}
            try:
                declaring.declare(changed)
            except BadInput:
                continue
            found.append(Neighbour(f"{number.option} {number.value} and {value} differ", changed))
    return [*found, *_off_by_clock(operator, options)]


def _off_by_clock(operator: str, options: Mapping[str, Any]) -> Iterator[Neighbour]:
    """Give the neighbours that close something, or drop it as late, 1 ms after the edge, and 1 ms before it."""
    declaring, domain = operator_named(operator), DOMAINS[operator]
    definition = declaring.declare(options)

    def neighbour(goal: str, by: int, at: Callable[[int], bool]) -> Neighbour:
        return Neighbour(
            goal, options, lambda same, clock: declaring.behaviour(same, cast(Clock, _OffClock(clock, by, at)))
        )

    for step, offset in domain.aligned(definition):
        edges = f"the clock's edges every {step} ms from {offset}"
        yield neighbour(f"{edges} and 1 ms later differ", -1, partial(_lies_at, step, offset))
        yield neighbour(f"{edges} and 1 ms earlier differ", 1, partial(_lies_at, step, offset - 1))
    if domain.by_clock(definition) and not domain.aligned(definition):
        yield neighbour("a clock 1 ms behind differs", -1, bool)
        yield neighbour("a clock 1 ms ahead differs", 1, bool)


def _lies_at(step: int, offset: int, now: int) -> bool:
    return now >= offset and (now - offset) % step == 0


def situations_needed(operator: str, options: Any, stream_time: bool = False) -> tuple[str, ...]:
    """Name the situations that must come up in histories of a definition, or in those under stream time alone."""
    if operator != "session_windows":
        return needed(operator, operator_named(operator).declare(options))
    windows = operator_named(operator).declare(options)
    impossible = {"empty batch"}
    if windows.late == "own" or not windows.grace_ms:
        impossible.add("late rescued")
    if stream_time and not windows.grace_ms:
        # Two sessions of a key lie more than a gap apart, and the earlier one is then closed.
        impossible |= {"merge of three or more", "gap + 1"}
    return tuple(name for name in SESSION_SITUATIONS if name not in impossible)


def goals(operator: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the goals of a cohort under a declaration; histories with null keys travel in no cohort."""
    closes = operator == "session_windows" and operator_named(operator).declare(options).emit == "close"
    return (
        EMITTED,
        *[CLOSED] * closes,
        *(name for name in situations_needed(operator, options) if "null key" not in name),
        *(neighbour.goal for neighbour in neighbours(operator, options)),
    )


def covered_by(histories: Sequence[History], finished: Finish | None = None) -> Counter[str]:
    """Count in how many histories of one declaration each goal was met; a neighbour's goal counts once.

    `finished` makes of each history the one that is run, where that is another: the last clock of a history and the
    first of a batch behind it take effect in one batch, so that less shows.
    """
    played = [play(history) for history in histories]
    found = situations_of(histories, played)
    if histories and finished is None:
        found.update(neighbours_shown(histories, played))
    elif histories and finished is not None:
        found.update(neighbours_shown([finished(history) for history in histories]))
    return found


def neighbours_shown(
    histories: Sequence[History], played: Sequence[Played] | None = None, only: Collection[str] | None = None
) -> Counter[str]:
    """Count the goals of neighbours (all, or `only` some) that histories of one declaration meet, and of emitting."""
    operator, options = histories[0].operator, histories[0].options
    own = [emitted(play(history)) for history in histories] if played is None else list(map(emitted, played))
    found: Counter[str] = Counter({EMITTED: sum(map(bool, own))})
    if operator == "session_windows" and operator_named(operator).declare(options).emit == "close":
        found[CLOSED] = found[EMITTED]
    for neighbour in neighbours(operator, options):
        if only is not None and neighbour.goal not in only:
            continue
        shown = (
            emitted(play(replace(history, options=neighbour.options), neighbour.behaviour)) != one
            for history, one in zip(histories, own, strict=True)
        )
        found[neighbour.goal] = int(any(shown))
    return found


def emitted(played: Played) -> dict[tuple[int, Key | None], list[Change]]:
    """Give what a job is compared by: the changes of each batch and key in order, without dropped records."""
    changes: dict[tuple[int, Key | None], list[Change]] = defaultdict(list)
    for entry in played.entries:
        if isinstance(entry.output, Change):
            changes[entry.batch, entry.output.key].append(entry.output)
    return dict(changes)


def draw_covering(
    operator: str,
    options: Mapping[str, Any],
    count: int,
    seed: int,
    batches: int = BATCHES,
    attempts: int = ATTEMPTS,
    finished: Finish | None = None,
) -> Drawn:
    """Draw a cohort's schedule and histories, under other schedules until all goals are covered.

    `finished` makes of each history the one that is run, where that is another; the histories come without it.
    The same for the same arguments. Where no attempt covers all of them, it is the one that misses the fewest.
    """
    wanted = goals(operator, options)
    hardest = [neighbour.goal for neighbour in neighbours(operator, options)]
    best: Drawn | None = None
    for schedule in schedules(operator, options, seed, batches, attempts):
        histories = list(draw_histories(Shape(options, schedule, operator=operator), count, seed))
        if best is not None and hardest:
            # What the attempt before missed is asked first, for it is quickly said that it is missed again.
            run = histories if finished is None else [finished(history) for history in histories]
            shown = neighbours_shown(run, only=hardest[:1])
            if not shown[hardest[0]]:
                continue
        covered = covered_by(histories, finished)
        drawn = Drawn(histories, covered, tuple(name for name in wanted if not covered[name]))
        hardest.sort(key=lambda goal, missing=drawn.missing: goal not in missing)  # type: ignore[misc]
        if best is None or len(drawn.missing) < len(best.missing):
            best = drawn
        if not best.missing:
            break
    assert best is not None
    return best


def schedules(
    operator: str, options: Mapping[str, Any], seed: int, batches: int = BATCHES, attempts: int = ATTEMPTS
) -> Iterator[tuple[int, ...]]:
    """Draw the schedules that are tried in turn."""
    for attempt in range(attempts):
        yield draw_schedule(operator, options, seed * ATTEMPTS + attempt, batches)
