"""The check of an operator as a function: first of its reference, then on Spark; counterexamples are saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...spark_impl.runtime.required import require_pyspark
from ..checking import check as runner
from ..checking.mutation import witness_of
from ..checking.report import Report
from ..counterexamples.of_operators import DEFAULT_FOLDER, FolderStore


def check(
    operator: str,
    histories: int = 2000,
    seed: int = 0,
    *,
    folder: Path = DEFAULT_FOLDER,
    mutant: str | None = None,
    only: str | None = None,
    all_laws: bool = False,
    progress: Callable[[str], None] = lambda step: None,
) -> list[Report]:
    """Check the laws on an operator's reference, then on its Spark implementation.

    Args:
        operator: The operator's name.
        histories: The number of histories to draw for the reference, and for Spark.
        seed: The seed of the draws.
        folder: The folder where counterexamples are saved; counterexamples already in the folder are replayed first.
        mutant: The name of a mutant to check on Spark instead of the operator.
        only: `reference` or `spark`, to check only the reference or only Spark.
        all_laws: Whether to check on Spark also the laws that are otherwise checked only on the reference; this takes
            longer.
        progress: A function that is called with the name of each step before the step starts.

    Returns: The report of the reference and the report of Spark, each with a `verdict`.

    Raises:
        BadInput: No operator or mutant has the given name, or a saved counterexample can't be read.
        MissingTool: PySpark is too old for the operators.
        StreamproofError: Spark couldn't be started, or a query failed.
    """
    if only != "reference":
        require_pyspark()
    store, reports = FolderStore(folder), []
    if mutant is None and only != "spark":
        reports.append(runner.check_reference(operator, store, histories, seed, progress))
    if only != "reference":
        witness = witness_of(operator, mutant)
        on_spark = {operator: Report(operator, [], seed, all_laws=all_laws, beside_reference=bool(reports))}
        reports += runner.check_operators([operator], store, histories, seed, progress, witness, on_spark).values()
    return reports
