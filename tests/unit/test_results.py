"""The exit code of many runs."""

from hypothesis import given
from hypothesis import strategies as st

from runtime.runs import results

CODES = st.lists(st.sampled_from((0, 1, 2, 3, 4, 5, 6, 70, 75, 130, 143)), min_size=1)


@given(CODES)
def test_the_worst_code_is_the_code_of_all(codes: list[int]) -> None:
    """The worst code is one of them, independent of order and repetition, and 0 only if all are 0."""
    worst = results.worst(codes)
    assert worst in codes
    assert worst == results.worst(sorted(codes)) == results.worst(codes * 2)
    assert (worst == 0) == (set(codes) == {0})
    assert results.worst([worst, *codes[:1]]) == worst


def test_the_order_is_that_of_the_design() -> None:
    """The order is bug, interruption, setup, usage, failure, drift, budget, pause; an unknown code is never ignored."""
    order = [70, 130, 3, 2, 1, 6, 5, 4, 0]
    for place, code in enumerate(order):
        assert results.worst(order[place:][::-1]) == code
    assert results.worst([143, 3]) == 143
    assert results.worst([0, 99, 70]) == 99
    assert results.worst([]) == 0
