"""What is held out is contiguous, apart from the rest, and shows every label on both sides."""

import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.splits import HELD_OUT
from seqmem_ros.offline.splits import LEARNED
from seqmem_ros.offline.splits import split_blocks
from seqmem_ros.offline.splits import split_recordings
from seqmem_ros.offline.splits import split_rows
from seqmem_ros.offline.splits import UNUSED


def test_the_last_part_of_each_piece_is_held_out_with_gaps_on_both_sides():
    use = split_rows(40, 0.25, 3, 2)
    expected = [LEARNED] * 12 + [UNUSED] * 3 + [HELD_OUT] * 5
    expected += [UNUSED] * 3 + [LEARNED] * 9 + [UNUSED] * 3 + [HELD_OUT] * 5
    np.testing.assert_array_equal(use, expected)


@pytest.mark.parametrize('n_pieces', [1, 2, 4])
@pytest.mark.parametrize('gap', [5, 28])
def test_no_window_reaches_from_one_side_to_the_other(n_pieces, gap):
    use = split_rows(1000, 0.2, gap, n_pieces)
    learned, held_out = np.flatnonzero(use == LEARNED), np.flatnonzero(use == HELD_OUT)
    assert np.abs(learned[:, None] - held_out).min() == gap + 1
    assert len(held_out) == 200


def test_the_last_recordings_are_held_out_whole():
    uses = split_recordings([4, 5, 6, 7], 0.4)
    assert [sorted(set(use)) for use in uses] == [[LEARNED], [LEARNED], [HELD_OUT], [HELD_OUT]]
    assert [len(use) for use in uses] == [4, 5, 6, 7]
    assert [use[0] for use in split_recordings([9, 9], 0.9)] == [LEARNED, HELD_OUT]
    with pytest.raises(SeqmemError) as error:
        split_recordings([100], 0.2)
    assert str(error.value) == (
        'split: expected at least two recordings to hold out one of them, got 1; give more bags, '
        "or split by 'block'"
    )


def test_there_are_as_many_blocks_as_the_labels_need():
    labels = np.repeat([0, 1, 0, 1], 250)
    one = split_blocks([1000], 0.2, 5, [np.tile([0, 1], 500)], ('a', 'b'))[0]
    assert np.sum(np.diff(np.flatnonzero(one == HELD_OUT)) > 1) == 0
    two = split_blocks([1000], 0.2, 5, [np.repeat([0, 1, 2, 0, 1, 2], 167)[:1000]], tuple('abc'))
    for kind in (LEARNED, HELD_OUT):
        assert set(np.repeat([0, 1, 2, 0, 1, 2], 167)[:1000][two[0] == kind]) == {0, 1, 2}
    assert set(labels[split_blocks([1000], 0.2, 5, [labels], ('a', 'b'))[0] == HELD_OUT]) == {0, 1}


def test_what_cannot_be_split_is_said():
    with pytest.raises(SeqmemError) as error:
        split_blocks([30], 0.2, 10)
    assert str(error.value) == (
        'too short to hold a block out: expected well over 40 samples, got 30; record longer'
    )
    once = np.zeros(1000, int)
    once[400:410] = 1
    with pytest.raises(SeqmemError, match=r'too short or too one-sided for that: rare\.'):
        split_blocks([1000], 0.2, 5, [once], ('common', 'rare'))
