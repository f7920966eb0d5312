"""A bag out of another process: the same messages, again if asked for, and errors."""

import multiprocessing
import time

import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.bags import read_joint_blocks
from seqmem_ros.offline.bags import Selection
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.offline.read_ahead import reading_ahead


@pytest.fixture
def bag(tmp_path):
    """Return a bag whose stamps go back once."""
    pairs = [
        (10 * i + 1, JointSample(1000 + (i if i != 300 else 0), ('a', 'b'), np.array([i, -i]) / 7))
        for i in range(700)
    ]
    write_joint_bag(tmp_path / 'bag', '/js', pairs, 'base')
    return tmp_path / 'bag'


def columns(blocks):
    blocks = list(blocks)
    return {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in ('record_ns', 'stamp_ns', 'position')
    }


@pytest.mark.parametrize('order', ['record', 'header'])
def test_the_other_process_reads_what_this_one_does(bag, order):
    selection = Selection('/js', order=order)
    with reading_ahead(bag, selection, pytest.fail) as blocks:
        got = list(blocks)
    assert got.pop() is None
    assert max(len(block) for block in got) <= 128
    expected = columns(read_joint_blocks(bag, selection))
    for name, values in columns(got).items():
        np.testing.assert_array_equal(values, expected[name])
    assert got[0].frame_id == 'base' and got[0].names == ('a', 'b')


def test_a_loop_begins_again_and_ends_with_its_context(bag):
    with reading_ahead(bag, Selection('/js'), pytest.fail, loop=True) as blocks:
        rounds = [0]
        for block in blocks:
            if block is None:
                rounds.append(0)
            else:
                rounds[-1] += len(block)
            if len(rounds) == 4:
                break
        assert rounds == [700, 700, 700, 0]
        assert len(multiprocessing.active_children()) == 1
    assert multiprocessing.active_children() == []


def test_who_does_not_listen_is_waited_for(tmp_path):
    """The pipe is all that is read ahead."""
    pairs = ((i, JointSample(i, ('a',) * 1, np.array([i / 7]))) for i in range(1, 60_001))
    write_joint_bag(tmp_path / 'bag', '/js', pairs)
    with reading_ahead(tmp_path / 'bag', Selection('/js'), pytest.fail) as blocks:
        next(blocks)
        (process,) = multiprocessing.active_children()
        time.sleep(1.0)
        assert process.is_alive()
        rest = sum(len(block) for block in blocks if block is not None)
    assert rest == 60_000 - 128


def test_what_is_lost_is_told_once(bag):
    file = bag / 'bag.mcap'
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    warnings = []
    with reading_ahead(file, Selection('/js'), warnings.append, loop=True) as blocks:
        rounds = 0
        while rounds < 3:
            rounds += next(blocks) is None
    (warning,) = warnings
    assert 'it ends in the middle of a record' in warning


def test_a_bag_that_cannot_be_read_is_an_error_here(tmp_path):
    with reading_ahead(tmp_path / 'none', Selection(), pytest.fail) as blocks:
        with pytest.raises(SeqmemError, match='none: no such file or folder'):
            next(blocks)


def test_a_reader_that_dies_is_told(bag):
    with reading_ahead(bag, Selection('/js'), pytest.fail, loop=True) as blocks:
        next(blocks)
        (process,) = multiprocessing.active_children()
        process.kill()
        with pytest.raises(SeqmemError, match='the process that reads it has ended early'):
            for _ in blocks:
                pass
