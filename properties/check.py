"""The gate: draws cohorts, runs them on Spark, DuckDB and the reference, and says which laws hold.

Every finding is on disk before the next query starts.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from ..reference.histories import CUT, Heartbeat, History
from ..reference.operators import operator_named
from ..reference.play import Played, play
from . import findings as finding_files
from .cohorts import clock_schedule, one_cohort
from .coverage import CLOSED, EMITTED, Finish, covered_by, draw_covering, goals
from .draws import Shape, draw_histories
from .duckdb_witness import tables
from .examinations import Examination, breaks, examine, examine_restart, shrunk
from .findings import Finding, account
from .laws import (
    LAWS,
    Law,
    LawResult,
    Verdict,
    fold_is_meaning,
    one_key,
    repeated_twice,
    same_entries,
    same_for_key,
    same_table,
    variants_of,
    worst,
)
from .outcomes import Difference, Grain, Outcome, differences
from .partitions import PARTITIONS, examine_partitions, named_count
from .recheck import REFERENCE, Answer, CannotAsk, answer_again, at_end
from .replays import of_check, replay
from .shapes import SCHEDULE
from .shapes import SHAPES as DECLARED
from .situations import SESSION_SITUATIONS, situations_of
from .spark_witness import PLAIN, Plan, answer, run_cohort
from .visible import visible

FLAT = (90, 90, 90, 90)
"""A clock (ms) that stands still, for histories in which nothing may be late."""
LONG_AFTER = 500
PATIENT = {"gap_ms": 10, "grace_ms": 1000, "aggregate": "list"}
SHAPES: Mapping[str, Shape] = {
    **{name: Shape(DECLARED["session_windows"][name], SCHEDULE) for name in ("update", "close", "own")},
    "patient": Shape(PATIENT, FLAT),
    "native": Shape({"gap_ms": 10, "grace_ms": 5, "aggregate": "count", "emit": "close", "late": "own"}, SCHEDULE),
    "native patient": Shape({"gap_ms": 10, "grace_ms": 1000, "aggregate": "max", "emit": "close", "late": "own"}, FLAT),
}
RANDOM = ("update", "close", "own")
BY_CHANGELOG = ("changelog", "table at every cut")
SHARES = {"update": 0.4, "close": 0.2, "own": 0.2, "patient": 0.05, "native": 0.1, "native patient": 0.05}
AND_LONG_AFTER = ("update", "native", "native patient")
"""The shapes whose histories are run with one more batch, long after them."""
ALONE = 2
FINE = ("update", "close")
"""The shapes that show a missing timer: by timers the state of the first expires, and sessions of the second close."""

Progress = Callable[[str], None]


@dataclass
class Report:
    """What a check found.

    Attributes:
        operator: The operator's name.
        results: What each law says.
        found: The findings, with the folders that they were written to.
        histories: How many histories were run, variants included.
        queries: How many streaming queries that took.
        seconds: How long it took.
        seed: The seed.
        situations: In how many drawn histories each situation came up.
        divergences: In how many histories each named divergence of Kafka Streams explains its answer.
        subject: What of the operator was checked: `on Spark`, or `the reference`.
    """

    operator: str
    results: list[LawResult]
    seed: int
    found: list[tuple[Finding, Path]] = field(default_factory=list)
    histories: int = 0
    queries: int = 0
    seconds: float = 0.0
    situations: Counter[str] = field(default_factory=Counter)
    divergences: Counter[str] = field(default_factory=Counter)
    subject: str = "on Spark"

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the laws that could be asked."""
        return worst(result.verdict for result in self.results if not result.skipped)


def check(
    operator: str = "session_windows",
    histories: int = 2000,
    seed: int = 0,
    folder: Path = finding_files.DEFAULT_FOLDER,
    progress: Progress = lambda step: None,
    plan: Plan = PLAIN,
    report: Report | None = None,
) -> Report:
    """Hold an operator's Spark implementation to every law.

    Args:
        operator: The operator's name.
        histories: How many histories to draw; each law judges a share of them.
        seed: What they are drawn from.
        folder: Where findings are written and read.
        progress: Called with the name of each step before it starts.
        plan: How Spark runs them; one with `logic` holds a seeded bug to the laws.
        report: Filled as the check goes, so that an interrupted one tells what it had; made when not given.

    Raises:
        BadInput: There is no such operator, or a saved counterexample can't be read.
        StreamproofError: Spark couldn't be started, or a query failed.
    """
    operator_named(operator)
    from .shape_check import ShapeCheck, laws_of

    is_session = operator == "session_windows"
    laws = {law.name: LawResult(law) for law in (session_laws() if is_session else laws_of(operator))}
    report = report or Report(operator, [], seed)
    report.results = list(laws.values())
    started = time.monotonic()
    try:
        kind = SessionCheck if is_session else ShapeCheck
        kind(report, laws, histories, seed, folder, progress, plan).run()
    except BaseException:
        # What was begun may have judged only a part of its histories.
        for result in report.results:
            result.unfinished = True
        raise
    finally:
        report.seconds = time.monotonic() - started
    return report


class SessionCheck:
    """Holds session windows on Spark to their laws; what it shares with other operators they inherit.

    Attributes:
        following: The laws that a wrong changelog breaks too: they make no finding of their own beside it.
    """

    following: Sequence[str] = finding_files.FOLLOWING

    def __init__(
        self,
        report: Report,
        laws: dict[str, LawResult],
        histories: int,
        seed: int,
        folder: Path,
        progress: Progress,
        plan: Plan,
    ) -> None:
        self.report, self.laws, self.histories, self.seed = report, laws, histories, seed
        self.folder, self.progress, self.plan = folder, progress, plan

    def run(self) -> None:
        """Ask every law, the saved findings first."""
        self.replay_saved()
        for name in RANDOM:
            self.cohort(name)
        self.patient()
        self.native()

    def draw(self, name: str) -> tuple[list[History], Counter[str]]:
        """Draw the histories of a shape; give them with the goals that they cover."""
        finished = long_after if name in AND_LONG_AFTER else None
        return drawn_for(name, max(1, round(self.histories * SHARES[name])), self.seed, finished)

    def replay_saved(self) -> None:
        """Ask about this check's saved counterexamples again, each by the law that it broke; no law is covered so."""
        mine = of_check(self.folder, self.report.operator, "spark", self.plan.mutant)
        for one in replay(mine, self.laws, self.progress, plan=self.plan):
            law = self.laws[one.law]
            law.judged += 1
            self.report.histories += 1
            if one.answer.differences:
                law.violations.append((one.history, one.answer.differences))
                original = one.metadata.original if one.law == one.metadata.law else None
                found = self.finding(one.law, one.history, one.answer, original)
                self.keep(found if one.metadata.seed is None else replace(found, seed=one.metadata.seed))

    def cohort(self, name: str) -> None:
        """The random cohort of a shape: changelog, tables, DuckDB; of `update` also keys, state, restart, packing."""
        drawn, known = self.draw(name)
        known = Counter(known)
        self.report.situations.update(situations_alone(known))
        known.update({f"{goal} ({name})": count for goal, count in known.items()})
        whole = drawn
        single: list[tuple[History, str]] = []
        if name == "update":
            single = [(history, key) for history in drawn[: len(drawn) // 4] for key in keys_of(history)[:1]]
            whole = [long_after(history) for history in [*drawn, *(one_key(*pair).history for pair in single)]]
        self.progress(f"{len(whole)} histories in one query: {name}")
        plan = replace(self.plan, read_state=name == "update")
        examination = examine(one_cohort(whole), plan, fine=name in FINE)
        self.judge(examination, known)
        if name == "update":
            self.keys(examination, drawn, single)
            self.state(examination)
            self.restart(examination)
            self.packing(examination)
            self.partitions(examination)

    def judge(self, examination: Examination, known: Counter[str] | None = None) -> None:
        """Judge a run's histories by the laws that need nothing but that run."""
        self.report.queries += 1
        histories, played = examination.cohort.histories, examination.played
        self.report.histories += len(histories)
        situations = situations_of(histories) if known is None else known
        for law in ("fold is meaning", "changelog", "table at every cut", "duckdb"):
            self.laws[law].situations.update(situations)
            self.laws[law].judged += len(histories)
        for history, of_history in zip(histories, played, strict=True):
            found = fold_is_meaning(history, of_history)
            if found:
                self.violated("fold is meaning", history, found, of_history, None)
        for law in ("changelog", "table at every cut"):
            for place, broken in enumerate(examination.broken):
                if law in broken:
                    outcome = examination.outcomes[place]
                    self.violated(law, histories[place], broken[law], played[place], outcome)
        self.duckdb(histories, played)

    def duckdb(self, histories: Sequence[History], played: Sequence[Played]) -> None:
        """Judge the reference by DuckDB."""
        for history, of_history, outcome in zip(histories, played, tables(histories), strict=True):
            found = differences(Outcome.of_play(history.name, of_history), outcome)
            if found:
                self.violated("duckdb", history, found, of_history, outcome)

    def keys(self, examination: Examination, drawn: Sequence[History], single: Sequence[tuple[History, str]]) -> None:
        """Judge each key against its history without the others."""
        law = self.laws["keys"]
        law.situations.update(situations_of(history for history, _ in single))
        by_name = {outcome.history: outcome for outcome in examination.outcomes[: len(drawn)]}
        originals = {history.name: history for history in examination.cohort.histories[: len(drawn)]}
        for place, (history, key) in enumerate(single, len(drawn)):
            law.judged += 1
            variant, alone = examination.cohort.histories[place], examination.outcomes[place]
            original, whole = originals[history.name], by_name[history.name]
            found = same_for_key(history.name, key, whole, alone)
            if found:
                told = ("the original", whole)
                played = examination.played[place]
                self.violated("keys", variant, found, played, alone, against=told, original=original)

    def state(self, examination: Examination) -> None:
        """Judge what is left in the state at the end."""
        law = self.laws["state"]
        law.judged += len(examination.cohort.histories)
        edge = examination.cohort.schedule[-1] - 2 * retention_of(examination.cohort.options)
        law.situations["state expired"] += sum(
            any(taken.record.timestamp < edge for taken in played.accepted) for played in examination.played
        )
        for place, broken in enumerate(examination.broken):
            if "state" in broken:
                history, outcome = examination.cohort.histories[place], examination.outcomes[place]
                self.violated("state", history, broken["state"], examination.played[place], outcome)

    def restart(self, whole: Examination) -> None:
        """A part of the cohort again, stopped after batch 1 and crashed in batch 2."""
        part = whole.part(max(1, len(whole.cohort.histories) // 5))
        self.progress(f"{len(part.cohort.histories)} histories with a restart and a crash")
        restarted = examine_restart(part, self.plan, stop_after=1, crash_in=2)
        self.report.queries += 3
        for name in ("restart", "replay"):
            law = self.laws[name]
            law.judged += len(part.cohort.histories)
            law.situations.update(restarted.situations)
            for place, broken in enumerate(restarted.broken):
                if name in broken:
                    history = part.cohort.histories[place]
                    before, after = ("Spark without a restart", part.outcomes[place]), restarted.outcomes[place]
                    self.violated(name, history, broken[name], part.played[place], after, against=before)

    def packing(self, whole: Examination) -> None:
        """Some histories alone, one query and one state a key: the same as in the cohort."""
        law = self.laws["packing"]
        telling = sorted(range(len(whole.outcomes)), key=lambda place: -len(whole.outcomes[place].entries))[:ALONE]
        for number, place in enumerate(telling):
            self.progress(f"history {number + 1} of {len(telling)} alone")
            history = whole.cohort.histories[place]
            alone = answer([history], self.plan)[0]
            self.report.queries += 1
            law.judged += 1
            law.situations["run alone"] += bool(alone.entries)
            found = same_entries(whole.outcomes[place], alone)
            if found:
                together = ("Spark in the cohort", whole.outcomes[place])
                self.violated("packing", history, found, whole.played[place], alone, against=together)

    def partitions(self, whole: Examination) -> None:
        """A part of the cohort again, with other numbers of shuffle partitions: the same as before."""
        part = whole.part(max(1, len(whole.cohort.histories) // 5))
        law, own = self.laws["partitions"], whole.output.partitions
        runs = {own: part.outcomes}
        for count in PARTITIONS:
            if count == own:
                continue
            self.progress(f"{len(part.cohort.histories)} histories in {named_count(count)}")
            again = examine_partitions(part, self.plan, count)
            self.report.queries += 1
            law.judged += len(part.cohort.histories)
            runs[again.partitions] = again.outcomes
            for place, found in enumerate(again.broken):
                if found:
                    before = (f"Spark in {named_count(own)} instead of {count}", part.outcomes[place])
                    history, outcome = part.cohort.histories[place], again.outcomes[place]
                    self.violated("partitions", history, found, part.played[place], outcome, against=before)
        for count, outcomes in runs.items():
            law.situations[named_count(count)] += sum(bool(outcome.entries) for outcome in outcomes)

    def patient(self) -> None:
        """Histories in which nothing can be late, with their variants, in one query."""
        drawn, _ = self.draw("patient")
        generator = random.Random(self.seed)
        variants = [
            (number, variant)
            for number, history in enumerate(drawn)
            for variant in variants_of(history, generator.shuffle, generator.randint)
        ]
        whole = [*drawn, *(variant.history for _, variant in variants)]
        self.progress(f"{len(whole)} histories in one query: reordered, cut elsewhere, repeated")
        examination = examine(one_cohort(whole), self.plan, fine=False)
        self.judge(examination)
        outcomes = examination.outcomes
        for place, (number, variant) in enumerate(variants, len(drawn)):
            law, history = self.laws[variant.law], drawn[number]
            law.judged += 1
            law.situations.update(situations_of([history]))
            changed = variant.history.lines != history.lines
            law.situations.update(
                {"order changed": changed, "cuts moved": changed, "record repeated": bool(history.records)}
            )
            judge = repeated_twice if variant.law == "repeats" else same_table
            found = judge(variant.history.name, outcomes[number], outcomes[place])
            if found:
                told, after = ("the original", at_end(outcomes[number])), at_end(outcomes[place])
                played = examination.played[place]
                self.violated(variant.law, variant.history, found, played, after, against=told, original=history)

    def native(self) -> None:
        """Spark's own operator, one batch at a time, with and without the merge before the shuffle."""
        for law_name, shape, merge in (("native", "native", False), ("native partial merge", "native patient", True)):
            histories, known = self.draw(shape)
            drawn = [long_after(history) for history in histories]
            self.progress(
                f"{len(drawn)} histories on Spark's own session_window{', merged before the shuffle' * merge}"
            )
            cohort = one_cohort(drawn)
            outcomes, _ = run_cohort(cohort, Plan(native=True, merge_in_partition=merge))
            self.report.queries += 1
            self.report.histories += len(drawn)
            law = self.laws[law_name]
            law.judged += len(drawn)
            law.situations.update(known)
            for history, outcome in zip(cohort.histories, outcomes, strict=True):
                played = play(history)
                found = differences(Outcome.of_play(history.name, played), outcome)
                if found:
                    self.violated(law_name, history, found, played, outcome)

    def violated(
        self,
        name: str,
        history: History,
        found: list[Difference],
        played: Played,
        outcome: Outcome | None,
        against: tuple[str, Outcome] | None = None,
        original: History | None = None,
    ) -> None:
        """Note a violation; the first of a law becomes a finding, asked again alone, and shrunk where that is cheap.

        `against` is what the outcome was held to, named, where that isn't the reference; `original` is the history of
        which `history` is a variant.
        """
        law = self.laws[name]
        law.violations.append((history, found))
        if len(law.violations) > 1 or (name in self.following and self.laws["changelog"].violations):
            return
        witness = {"duckdb": "DuckDB", "fold is meaning": "the meaning"}.get(name, "Spark") if not against else "Spark"
        left = against or (REFERENCE, Outcome.of_play(history.name, played))
        answer = Answer(left, (witness, outcome or Outcome(history.name, Grain.END, final={})), found)
        written = self.keep(self.finding(name, history, answer, original, finding_files.UNASKED))
        again = self.confirmed(name, history, answer, original)
        self.report.found.remove(written)
        kept = self.keep(again)
        if kept[1] != written[1]:
            finding_files.forget(written[1])

    def confirmed(self, name: str, history: History, answer: Answer, original: History | None) -> Finding:
        """Ask the law again about a violation, alone, and make the finding of its smallest history."""
        self.progress(f"asking {name!r} again about its first violation, alone")
        smallest = history
        try:
            if name in finding_files.ASKABLE:
                smallest, alone = shrunk(history, name, self.plan, self.asked)
                if not alone:
                    return self.finding(name, history, answer, original, finding_files.ALONE)
            self.report.queries += 1
            again = answer_again(name, smallest, self.plan, original=original)
        except CannotAsk as reason:
            return self.finding(name, history, answer, original, str(reason))
        if again.differences:
            return self.finding(name, smallest, again, original)
        return self.finding(name, history, answer, original, finding_files.ALONE)

    def asked(self, candidates: Sequence[History], law: str, plan: Plan) -> list[bool]:
        """Ask about the candidates of a round of shrinking."""
        self.report.queries += 1
        self.report.histories += len(candidates)
        return breaks(candidates, law, plan)

    def finding(
        self, name: str, history: History, answer: Answer, original: History | None, unconfirmed: str = ""
    ) -> Finding:
        """Make a finding of a violation; `unconfirmed` says why it isn't confirmed, if it isn't."""
        return Finding(
            name,
            answer.sentence(self.laws[name].law.sentence),
            history,
            answer.left,
            answer.right,
            answer.differences,
            not unconfirmed,
            self.seed,
            mutant=self.plan.mutant,
            original=original,
            unconfirmed=unconfirmed,
        )

    def keep(self, finding: Finding) -> tuple[Finding, Path]:
        """Write a finding, and note where."""
        self.report.found.append((finding, finding_files.save(finding, self.folder)))
        return self.report.found[-1]


def session_laws() -> list[Law]:
    """Give the laws of session windows; Spark's changelog must show each neighbour of each random definition."""
    shown = tuple(
        f"{goal} ({name})"
        for name in RANDOM
        for goal in goals("session_windows", SHAPES[name].options)
        if goal not in SESSION_SITUATIONS
    )
    return [replace(law, needs=(*law.needs, *shown)) if law.name in BY_CHANGELOG else law for law in LAWS.values()]


def drawn_for(name: str, count: int, seed: int, finished: Finish | None = None) -> tuple[list[History], Counter[str]]:
    """Draw histories of one of the definitions of session windows, on a schedule on which its neighbours show.

    `finished` makes of each history the one that is run, where that is another.

    Returns:
        The histories, and in how many of them each goal was met.
    """
    shape = SHAPES[name]
    if shape.schedule == FLAT:
        drawn = list(draw_histories(shape, count, hash_of(seed, name)))
        return drawn, covered_by(drawn, finished)
    cohort = draw_covering(shape.operator, shape.options, count, hash_of(seed, name), finished=finished)
    return cohort.histories, cohort.covered


def situations_alone(covered: Mapping[str, int]) -> Counter[str]:
    """Give what of a count of goals is a situation, rather than a neighbour's goal."""
    return Counter(
        {
            name: count
            for name, count in covered.items()
            if not name.endswith(" differ") and name not in (EMITTED, CLOSED)
        }
    )


def hash_of(seed: int, name: str) -> int:
    """A seed for each shape, the same in every process."""
    return seed * 1_000_003 + crc32(name.encode())


def keys_of(history: History) -> list[str]:
    """The keys of a history, sorted."""
    return sorted({record.key for record in history.records if record.key is not None})


def long_after(history: History) -> History:
    """The history with one more batch, in which the clock has passed every retention."""
    return history.with_lines(
        [*history.lines, CUT, Heartbeat(clock_schedule(history)[-1] + LONG_AFTER + 2 * retention_of(history.options))]
    )


def retention_of(options: Mapping[str, Any]) -> int:
    """The retention (ms) that options declare."""
    retention: int = operator_named("session_windows").declare(options).retention_ms
    return retention


def told(found: Iterable[tuple[Finding, Path]]) -> list[str]:
    """The accounts of findings, with the folder of each."""
    return [f"{account(finding)}\nWritten to {visible(path)}" for finding, path in found]
