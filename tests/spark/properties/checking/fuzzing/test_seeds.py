import pytest
from streamproof.properties.checking.fuzzing.seeds import Seed


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        ("filter after windows", "filter below the watermark"),
        ("no time above a deduplication", "event time pruned"),
        ("semi join above a union", "semi join above a union"),
        ("groups above sessions", "session windows removed"),
        ("subtract a table", "subtract repeats rows"),
        ("largest of a left join", "outer join removed"),
    ],
)
def test_a_defect_of_spark_is_found_again_under_its_name(plan: str, named: str) -> None:
    judged = Seed(plan, 50, relations=0, shrinks=False).answer()
    assert named in {name for one in judged.differences for name in one.named}
    assert [one for one in judged.differences if not one.named] == []


@pytest.mark.parametrize("seed", ["3002", "3003", "windows above a join", "a processor above a union"])
def test_spark_does_what_the_reference_of_plans_says(seed: str) -> None:
    judged = Seed(seed, 50, relations=2, shrinks=False).answer()
    assert judged.pairs
    assert [one for one in judged.differences if not one.named] == []
