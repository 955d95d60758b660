from hypothesis import given
from hypothesis import strategies as st

from models.batching import batches


@given(st.lists(st.integers(1, 600), max_size=80), st.integers(1, 4000))
def test_every_row_once_within_the_budget(lengths: list[int], budget: int) -> None:
    made = list(batches(lengths, budget))
    assert sorted(index for batch in made for index in batch) == list(range(len(lengths)))
    for batch in made:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget


def test_rows_of_a_length_share_a_batch() -> None:
    assert list(batches([5, 100, 5, 100], 200)) == [[1, 3], [0, 2]]
