"""The command `divergences`: where Kafka Streams contradicts its documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .terminal import EXITS, results

if TYPE_CHECKING:
    from ..witnesses.kafka.divergences import Divergence
    from ..witnesses.outcomes import Outcome


def divergences(
    names: Annotated[list[str] | None, typer.Argument(help="Divergences; all by default.")] = None,
) -> None:
    """List where the real Kafka Streams contradicts its documents, each with its smallest history.

    Exits 0 if Kafka still shows each, 1 if it no longer shows one, 2 if Kafka Streams isn't here to ask.
    """
    from ..witnesses.kafka.divergences import answers_of, chosen

    shown, verdict = [], "conforms"
    for divergence in chosen(names or []):
        reference, kafka, why = answers_of(divergence)
        text, shows = _shown(divergence, reference, kafka, why)
        shown.append(text)
        verdict = (
            "violated" if shows is False else "inconclusive" if shows is None and verdict == "conforms" else verdict
        )
    results.print("\n\n".join(shown), markup=False, soft_wrap=True)
    raise typer.Exit(EXITS[verdict])


def _shown(divergence: Divergence, reference: Outcome, kafka: Outcome | None, why: str) -> tuple[str, bool | None]:
    from ..report.counterexamples import side_by_side
    from ..witnesses.outcomes import differences

    setting = "" if divergence.setting == "plain" else f" Shown with: {divergence.setting}."
    lines = [
        f"{divergence.name} ({divergence.operator})",
        f"  Kafka Streams: {divergence.sentence}. Source: {divergence.source}.{setting}",
        *(f"    {line}" for line in divergence.history.to_text().splitlines()),
    ]
    if kafka is None:
        return "\n".join([*lines, f"  Kafka Streams can't be asked: {why}"]), None
    found = differences(reference, kafka)
    keys = {entry.output.key for outcome in (reference, kafka) for entry in outcome.entries}
    lines += side_by_side(("reference", reference), ("Kafka Streams", kafka), keys)
    return "\n".join(lines if found else [*lines, "  Kafka Streams no longer shows it."]), bool(found)
