from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.retrieval import compaction, dense
from serving.retrieval.compaction import FAN, next_merge
from serving.retrieval.dense import DenseReader, bury, merge, normalise, read_blocks, write_segment
from serving.retrieval.manifest import Segment

ROWS = normalise(np.random.default_rng(7).normal(size=(600, 16)))
ORDINALS = np.arange(600) * 3 + 1


def write(folder: Path) -> list[Segment]:
    return [
        write_segment(folder, "a", ORDINALS[:250], ROWS[:250]),
        write_segment(folder, "b", ORDINALS[250:], ROWS[250:]),
    ]


def nearest(folder: Path, segments: list[Segment]) -> list[int]:
    reader = DenseReader(folder, tuple(segments), 16)
    return [reader.search(row, 1)[0] for row in ROWS]


def test_segments_are_searched_as_one(tmp_path: Path) -> None:
    segments = write(tmp_path)
    reader = DenseReader(tmp_path, tuple(segments), 16)
    assert len(reader) == 600
    assert nearest(tmp_path, segments) == ORDINALS.tolist()
    exact = np.argsort(-(ROWS @ ROWS[5]), kind="stable")[:10]
    assert reader.search(ROWS[5] * 7, 10) == ORDINALS[exact].tolist()
    assert len(reader.search(ROWS[5], 1000)) == 600


def test_sealed_segments_find_the_same(tmp_path: Path) -> None:
    sealed = merge(tmp_path, "c", write(tmp_path), 16, seal_rows=600)
    assert (sealed.sealed, sealed.rows) == (True, 600)
    assert np.mean(np.array(nearest(tmp_path, [sealed])) == ORDINALS) > 0.95
    flat = merge(tmp_path, "d", [sealed], 16, seal_rows=10_000)
    assert not flat.sealed
    assert nearest(tmp_path, [flat]) == ORDINALS.tolist()


@pytest.mark.parametrize("seal_rows", [600, 10_000])
def test_what_is_buried_is_not_found(tmp_path: Path, seal_rows: int) -> None:
    gone = np.zeros(2000, dtype=np.bool_)
    gone[ORDINALS[::2]] = True
    segment = merge(tmp_path, "c", write(tmp_path), 16, seal_rows=seal_rows)
    once = bury(tmp_path, "one", segment, gone)
    assert (once.live, once.rows) == (300, 600)
    assert bury(tmp_path, "two", once, gone) == once
    gone[ORDINALS[1]] = True
    twice = bury(tmp_path, "three", once, gone)
    assert twice.live == 299
    found = set(DenseReader(tmp_path, (twice,), 16).search(ROWS[0], 600))
    assert found <= set(ORDINALS[3::2].tolist())
    merged = merge(tmp_path, "d", [twice], 16)
    assert (
        np.concatenate([ordinals for ordinals, _ in read_blocks(tmp_path, merged)]).tolist() == ORDINALS[3::2].tolist()
    )


def test_merging_changes_no_vector(tmp_path: Path) -> None:
    segments = write(tmp_path)
    stored = np.concatenate([vectors for segment in segments for _, vectors in read_blocks(tmp_path, segment)])
    merged = merge(tmp_path, "c", segments, 16)
    assert (np.concatenate([vectors for _, vectors in read_blocks(tmp_path, merged)]) == stored).all()
    assert np.abs(stored - ROWS).max() < 1e-3


def test_no_segments_find_nothing() -> None:
    reader = DenseReader(Path("nowhere"), (), 0)
    assert (len(reader), reader.search(np.ones(7), 5)) == (0, [])


def test_a_segment_of_another_width_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="16 dimensions, not 17"):
        DenseReader(tmp_path, tuple(write(tmp_path)), 17)


SIZES = st.lists(
    st.builds(
        lambda rows, dead, sealed: Segment("", rows, min(dead, rows - 1), sealed),
        st.integers(1, 5000),
        st.integers(0, 2000),
        st.booleans(),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(SIZES, st.integers(64, 4000))
def test_merging_ends_and_leaves_few_segments(segments: list[Segment], seal_rows: int) -> None:
    live = sum(segment.live for segment in segments)
    for _ in range(3 * len(segments) + 1):
        chosen = next_merge(segments, seal_rows)
        if not chosen:
            break
        rows = sum(segment.live for segment in chosen)
        kept = [segment for segment in segments if all(segment is not one for one in chosen)]
        segments = [Segment("", rows, sealed=rows >= seal_rows // 2), *kept]
    assert next_merge(segments, seal_rows) == []
    assert sum(segment.live for segment in segments) == live
    unsealed = [segment for segment in segments if not segment.sealed]
    assert sum(segment.live for segment in unsealed) < seal_rows
    assert all(4 * segment.dead <= segment.rows for segment in segments)
    sizes = [compaction._size(segment.live) for segment in unsealed]
    assert all(sizes.count(size) < FAN for size in sizes)


def test_what_is_compared_whole_is_what_the_seal_says() -> None:
    assert dense.SEAL_ROWS == 262_144
