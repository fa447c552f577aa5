"""Measures the model checker: the wrapper's overhead over TLC, the small models, and replayed behaviours.

The overhead is measured on a model of two counters with a million states, so that TLC is fast and any cost per state is
visible.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from streamproof.properties.models.spec_replay import replay_on_spark
from streamproof.specs import checking, pytla
from streamproof.specs.catalogue import catalogue, find_model
from streamproof.specs.replay import ReplayResult, replay

from ..figures import Figure, Setting, Target, figure, ratio, seconds

COUNTERS = """\
---- MODULE Counters ----
EXTENDS Naturals
CONSTANT Most
VARIABLES first, second
Init == first = 0 /\\ second = 0
Next ==
    \\/ first < Most /\\ first' = first + 1 /\\ second' = second
    \\/ second < Most /\\ second' = second + 1 /\\ first' = first
InBounds == first <= Most /\\ second <= Most
====
"""
CONFIGURATION = "INIT Init\nNEXT Next\nCONSTANT Most = {most}\nINVARIANT InBounds\n"


def run(setting: Setting) -> list[Figure]:
    """Measure the model checker; only the two replays need more than Java."""
    tools = checking.find_tools()
    # Java uses both of its compilers for TLC alone and for pytla, because each runs for minutes.
    return [*_wrapped(setting, checking.find_tools(())), *_small_models(setting, tools), *_replayed(setting, tools)]


def _wrapped(setting: Setting, tools: pytla.Tools) -> list[Figure]:
    most, rounds = setting.size(999, 9), setting.times(5)
    alone, wrapped = [], []
    with tempfile.TemporaryDirectory(prefix="streamproof-") as name:
        folder = Path(name)
        module, configuration = folder / "Counters.tla", folder / "Counters.cfg"
        module.write_text(COUNTERS)
        configuration.write_text(CONFIGURATION.format(most=most))
        model = pytla.Model(module, configuration, deadlock=False)
        words = [str(tools.java), "-XX:+UseParallelGC", *tools.options, f"-Djava.io.tmpdir={folder}"]
        words += ["-cp", str(tools.jar), "tlc2.TLC"]
        words += ["-workers", "1", "-deadlock", "-metadir", str(folder / "states"), "-config", configuration.name]
        for number in range(rounds):
            setting.progress(f"round {number + 1} of {rounds}: {(most + 1) ** 2:,} states by TLC alone, and by pytla")

            def by_tlc() -> None:
                subprocess.run([*words, module.name], cwd=folder, check=True, capture_output=True)

            alone.append(seconds(by_tlc))
            wrapped.append(seconds(lambda: pytla.check(model, tools)))
    sizes = f"{(most + 1) ** 2:,} distinct states, 1 worker"
    by_pytla = figure("pytla.check", "seconds", wrapped, sizes)
    by_itself = figure("TLC from the command line", "seconds", alone, sizes)
    return [by_pytla, by_itself, ratio("pytla over TLC alone", by_pytla, by_itself, Target("at most", 1.05))]


def _small_models(setting: Setting, tools: pytla.Tools) -> list[Figure]:
    race = find_model("ForeignKeyJoin_mutant_kafka_18713")
    setting.progress("KAFKA-18713")
    found = [seconds(lambda: checking.check(checking.model_of(race, {}), tools)) for _ in range(setting.times(3))]
    figures = [figure("KAFKA-18713 found", "seconds", found, "1 worker", Target("under", 10))]
    small = [model for one in catalogue() for model in one.models if model.size == "small"]
    each = []
    for model in small[: setting.size(len(small), 2)]:
        setting.progress(model.name)
        each.append(seconds(lambda model=model: checking.check(checking.model_of(model, {}), tools)))  # type: ignore[misc]
    sizes = f"{len(each)} models, one after the other"
    figures.append(figure("the slowest small model", "seconds", [max(each)], sizes, Target("under", 10)))
    figures.append(figure("all small models", "seconds", [sum(each)], sizes, Target("under", 120)))
    return figures


def _replayed(setting: Setting, tools: pytla.Tools) -> list[Figure]:
    model = find_model("ForeignKeyJoin")
    figures = []
    for side, left, right in (("reference", setting.size(2, 1), setting.size(2, 1)), ("Spark", setting.size(3, 1), 1)):
        chosen = checking.model_of(model, {"LeftChanges": left, "RightChanges": right})
        constants = checking.constants_of(chosen)
        setting.progress(f"{side}: behaviours of {left} left and {right} right changes")
        graph = pytla.state_graph(chosen, tools)
        replays: list[ReplayResult] = []
        if side == "reference":
            taken = seconds(lambda: replays.append(replay(graph.behaviours(), constants, "ForeignKeyJoin")))  # noqa: B023
            which = "every behaviour"
        else:
            paths = graph.covering()
            taken = seconds(lambda: replays.append(replay_on_spark(paths, constants, "ForeignKeyJoin")))  # noqa: B023
            which = f"behaviours that take each of {len(graph.edges):,} edges"
        sizes = f"{replays[0].behaviours:,}: {which} of {left} left and {right} right changes"
        found, none = [float(len(replays[0].disagreements))], Target("at most", 0)
        figures.append(figure(f"replayed on {side}: disagreements", "behaviours", found, sizes, none))
        figures.append(figure(f"replayed on {side}", "seconds", [taken], sizes))
    return figures
