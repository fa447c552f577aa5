"""Coverage goals: a law's verdict is *conforms* only if the histories cover the law's goals.

In addition to an operator's own goals, there is a goal for each neighbour of a declaration (an operator with its
options). A neighbour is the same declaration with one number larger or smaller by one, or with a clock 1 ms early or
late. A history covers the goal if the reference's output for the neighbour differs from its output for the declaration.
A job with the neighbour's error then disagrees with the reference on that history.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from ...reference.core.clocks import Clock
from ...reference.core.errors import BadInput
from ...reference.core.history import ClockAdvance, History
from ...reference.core.operator import Behaviour, operator_named
from ...reference.core.play import Played, play
from ...reference.core.records import Change, Dropped, Key, Record
from ..registration.registration import Registration, registration_of
from .draws import HistorySettings, draw_histories
from .schedules import BATCHES, draw_schedule
from .variety import UNORDERED, variety_goals, variety_met

EMITTED = "something emitted"
MOVED, AHEAD = "clock moved by a record before the last", "null key ahead of the clock"
ATTEMPTS = 20
"""The largest number of schedules to draw until all goals are covered; only the reference runs on each."""


T = TypeVar("T")
Finish: TypeAlias = Callable[[History], History]
OutputOfKeys: TypeAlias = dict[tuple[int, Key | None], list[Change]]
"""The changes of each batch and key, in order."""


class Neighbour(NamedTuple):
    """A variation of a declaration: a number is off by one, or the clock is off by 1 ms.

    A history covers the neighbour's goal if the neighbour's output differs from the output of the original declaration.

    Attributes:
        goal: The name of the goal for histories of one declaration.
        pooled: The name of the goal for histories of many declarations of an operator.
        options: The options of the neighbour.
        behaviour: The neighbour's behaviour; None for the reference's own state machine.
    """

    goal: str
    pooled: str
    options: Mapping[str, Any]
    behaviour: Callable[[Any, Clock], Behaviour] | None = None

    def differs(self, history: History, own: OutputOfKeys) -> bool:
        """Return whether the neighbour's output for a history differs from `own`, the declaration's output."""
        return emitted(play(replace(history, options=self.options), self.behaviour)) != own


class _OffClock:
    """A clock that is off by some ms at certain times, to simulate an operator that closes windows at the wrong
    times.
    """

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
    """The histories of a cohort, and the coverage goals of these histories.

    Attributes:
        histories: The histories, with the same clock schedule.
        covered: The number of histories that cover each goal (1 for a neighbour's goal). missing:
    """

    histories: list[History]
    covered: Counter[str]
    missing: tuple[str, ...]


def neighbours(operator: str, options: Mapping[str, Any]) -> list[Neighbour]:
    """Return the neighbours of a declaration; leave out neighbours that the operator refuses.

    Raises:
        BadInput: The operator refuses the declaration itself.
    """
    declaring = operator_named(operator)
    found = []
    for number in registration_of(operator).domain.numbers(declaring.declare(options)):
        for value in (number.value - number.apart, number.value + number.apart):
            changed = {**options, **number.changed(value)}
            try:
                declaring.declare(changed)
            except BadInput:
                continue
            pooled = f"a {'smaller' if value < number.value else 'larger'} {number.option} differs"
            found.append(Neighbour(f"{number.option} {number.value} and {value} differ", pooled, changed))
    return [*found, *_off_by_clock(operator, options)]


def _off_by_clock(operator: str, options: Mapping[str, Any]) -> Iterator[Neighbour]:
    """Yield the neighbours that close windows, or drop late records, 1 ms too late or 1 ms too early."""
    declaring, domain = operator_named(operator), registration_of(operator).domain
    definition = declaring.declare(options)

    def neighbour(goal: str, pooled: str, by: int, at: Callable[[int], bool]) -> Neighbour:
        return Neighbour(
            goal, pooled, options, lambda same, clock: declaring.behaviour(same, cast(Clock, _OffClock(clock, by, at)))
        )

    for step, offset, of in domain.aligned(definition):
        edges = f"the clock's edges every {step} ms from {offset}"
        for moved, by, first in (("later", -1, offset), ("earlier", 1, offset - 1)):
            at = partial(_lies_at, step, first)
            yield neighbour(f"{edges} and 1 ms {moved} differ", f"{of} 1 ms {moved} differs", by, at)
    if domain.by_clock(definition) and not domain.aligned(definition):
        for moved, by in (("behind", -1), ("ahead", 1)):
            goal = f"a clock 1 ms {moved} differs"
            yield neighbour(goal, goal, by, bool)


def _lies_at(step: int, offset: int, now: int) -> bool:
    return now >= offset and (now - offset) % step == 0


def coverage_goals(registration: Registration, definition: Any, stream_time: bool = False) -> tuple[str, ...]:
    """Return the names of the coverage goals for a definition's histories: common goals, and the operator's own.

    Args:
        registration: The operator's registration.
        definition: The definition, whose histories include histories with null keys.
        stream_time: Whether the histories have no cuts, so that some goals are impossible.
    """
    found = ["out of order", "two keys", "null key kept" if keeps_null_keys(definition) else "dropped: null key"]
    found += variety_goals(registration.domain, definition)
    impossible = {UNORDERED} if stream_time else set[str]()
    coverage = registration.coverage
    if coverage is not None:
        found += coverage.goals(definition)
        impossible |= {*coverage.impossible_under_stream_time(definition)} if stream_time else set()
    return tuple(goal for goal in dict.fromkeys(found) if goal not in impossible)


def goals_met(registration: Registration, history: History, played: Played) -> set[str]:
    """Return the names of the goals that a history covers.

    Args:
        registration: The operator's registration.
        history: The history.
        played: The reference's run of the history.
    """
    records = [taken.record for taken in played.accepted]
    found = {f"dropped: {entry.output.reason}" for entry in played.entries if isinstance(entry.output, Dropped)}
    if any(later.timestamp < earlier.timestamp for earlier, later in pairwise(records)):
        found.add("out of order")
    keys = {record.key for record in records}
    if len(keys - {None}) > 1:
        found.add("two keys")
    if None in keys:
        found.add("null key kept")
    found.update(_clock_goals_met(history), variety_met(registration.domain, played.definition, history))
    return found if registration.coverage is None else found | set(registration.coverage.met(history, played))


def clock_goals(registration: Registration, definition: Any) -> tuple[str, ...]:
    """Return the names of the goals for a definition's histories whose records move the clock."""
    if not registration.by_clock(definition):
        return ()
    return (MOVED,) if keeps_null_keys(definition) else (MOVED, AHEAD)


def _clock_goals_met(history: History) -> Iterator[str]:
    before = 0
    for batch in history.batches if history.clock == "batch" else ():
        records = [line for line in batch if isinstance(line, Record)]
        moving = [record.timestamp for record in records if record.key is not None]
        advanced = max((line.timestamp for line in batch if isinstance(line, ClockAdvance)), default=before)
        after = max(before, advanced, *moving)
        if moving and moving[-1] < after > max(before, advanced):
            yield MOVED
        if any(record.key is None and record.timestamp > after for record in records):
            yield AHEAD
        before = after


def keeps_null_keys(definition: Any) -> bool:
    """Return whether a definition keeps records without a key."""
    return getattr(definition, "null_key", "drop") == "keep"


def count_goals_met(histories: Iterable[History], played: Iterable[Played] | None = None) -> Counter[str]:
    """Count the histories that cover each goal; `played` is the reference's run of each history, if available."""
    histories = list(histories)
    met: Counter[str] = Counter()
    for history, own in zip(histories, map(play, histories) if played is None else played, strict=True):
        met.update(goals_met(registration_of(history.operator), history, own))
    return met


def goals(operator: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the coverage goals for a cohort of a declaration, which contains no null keys."""
    registration = registration_of(operator)
    return (
        EMITTED,
        *(goal for goal in coverage_goals(registration, registration.declare(options)) if "null key" not in goal),
        *(neighbour.goal for neighbour in neighbours(operator, options)),
    )


def covered_by(
    histories: Sequence[History], finished: Finish | None = None, played: Sequence[Played] | None = None
) -> Counter[str]:
    """Count the histories of a declaration that cover each goal; the count of a neighbour's goal is at most 1.

    Args:
        histories: The histories.
        finished: A function that converts each history to the history that runs, if this contains an additional batch.
            In such a history, the last two clock values take effect in the same batch, so fewer neighbours differ.
        played: The reference's run of each history, if available.
    """
    played = [play(history) for history in histories] if played is None else played
    found = count_goals_met(histories, played)
    if histories and finished is None:
        found.update(neighbours_shown(histories, played))
    elif histories and finished is not None:
        found.update(neighbours_shown([finished(history) for history in histories]))
    return found


def without_neighbours(covered: Mapping[str, int]) -> Counter[str]:
    """Return the counts of goals without the goals of neighbours, because no single history needs to cover these."""
    left_out = [goal for goal in covered if goal == EMITTED or goal.endswith((" differ", " differs"))]
    return Counter({goal: count for goal, count in covered.items() if goal not in left_out})


def neighbours_shown(
    histories: Sequence[History], played: Sequence[Played] | None = None, only: Collection[str] | None = None
) -> Counter[str]:
    """Count the neighbours' goals that histories of a declaration cover, and the histories with output.

    Args:
        histories: The histories.
        played: The reference's run of each history, if available.
        only: The goals to count; all by default.
    """
    operator, options = histories[0].operator, histories[0].options
    own = [emitted(one) for one in played or map(play, histories)]
    found: Counter[str] = Counter({EMITTED: sum(map(bool, own))})
    for neighbour in neighbours(operator, options):
        if only is not None and neighbour.goal not in only:
            continue
        found[neighbour.goal] = int(any(map(neighbour.differs, histories, own)))
    return found


def emitted(played: Played) -> OutputOfKeys:
    """Return the output that a job must emit: the ordered changes of each batch and key, without dropped records."""
    changes: dict[tuple[int, Key | None], list[Change]] = defaultdict(list)
    for entry in played.entries:
        if isinstance(entry.output, Change):
            changes[entry.batch, entry.output.key].append(entry.output)
    return dict(changes)


def fewest_missing(draw: Callable[[int], tuple[T, Sequence[str]] | None]) -> T:
    """Draw until a draw misses no goal, at most `ATTEMPTS` times; return the first draw that misses the fewest goals.

    Args:
        draw: A function that takes the number of the attempt, and returns a draw with the goals that the draw misses.
            None (not for the first attempt): the draw is no better than an earlier draw.
    """
    best = draw(0)
    assert best is not None
    for attempt in range(1, ATTEMPTS):
        if not best[1]:
            break
        drawn = draw(attempt)
        if drawn is not None and len(drawn[1]) < len(best[1]):
            best = drawn
    return best[0]


def draw_covering(
    operator: str,
    options: Mapping[str, Any],
    count: int,
    seed: int,
    batches: int = BATCHES,
    finished: Finish | None = None,
) -> Drawn:
    """Draw a cohort's schedule and histories; draw again until all goals are covered, as in `fewest_missing`.

    The same arguments draw the same cohort.

    Args:
        operator: The operator's name.
        options: The operator's options.
        count: The number of histories.
        seed: The seed.
        batches: The number of batches of a schedule.
        finished: A function that converts each drawn history to the history that runs; the result contains the drawn
            histories.
    """
    wanted = goals(operator, options)
    hardest = [neighbour.goal for neighbour in neighbours(operator, options)]

    def draw(attempt: int) -> tuple[Drawn, Sequence[str]] | None:
        schedule = draw_schedule(operator, options, seed * ATTEMPTS + attempt, batches)
        histories = list(draw_histories(HistorySettings(operator, options, schedule), count, seed))
        if attempt and hardest:
            # First check the goal that was missed most recently: if this attempt misses it too, give up early.
            run = histories if finished is None else [finished(history) for history in histories]
            if not neighbours_shown(run, only=hardest[:1])[hardest[0]]:
                return None
        covered = covered_by(histories, finished)
        missing = tuple(name for name in wanted if not covered[name])
        hardest.sort(key=lambda goal: goal not in missing)
        return Drawn(histories, covered, missing), missing

    return fewest_missing(draw)
