"""Arrays against streams: the same numbers, and restarts at the same places."""

from messy import blocks_of
from messy import clean_samples
from messy import messy_samples
from messy import NAMES
import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream
from seqmem_ros.offline.fast_replay import FastReplay
from seqmem_ros.offline.filter_runner import FilterRunner
from seqmem_ros.offline.network_scan import NetworkScan

ALL_NAMES = (*NAMES, 'gripper')


@pytest.fixture
def short_chunks(monkeypatch):
    """Make chunks so short that a small recording has many."""
    monkeypatch.setattr(FilterRunner, 'n_chunks', 8)
    monkeypatch.setattr(FilterRunner, 'chunk', 128)
    monkeypatch.setattr(FilterRunner, 'shortest', 64)
    monkeypatch.setattr(NetworkScan, 'piece', 32)
    monkeypatch.setattr(NetworkScan, 'size', 1024)


def fast(blocks, estimators, options=None):
    replay = FastReplay(estimators, options or StreamOptions())
    first = 0
    for block in blocks:
        replay.push(np.arange(first, first + len(block)), block, lambda count: None)
        first += len(block)
    replay.finish()
    return replay


def by_stream(blocks, estimator, options=None):
    """Push messages one by one; return the values by row and joint, and the counters."""
    stream = Stream(estimator, options)
    said = []
    for block in blocks:
        for row in range(len(block)):
            estimate = stream.push(block.sample(row), int(block.record_ns[row]))
            if estimate is None:
                said.append({})
            elif estimate.velocity is not None:
                said.append(dict(zip(estimate.names, estimate.velocity)))
            else:
                said.append(dict(zip(estimate.names, estimate.scores)))
    return said, stream.counts


def assert_same(replay, name, said, counts, most):
    table = replay.tables[name].array(len(said), ALL_NAMES)
    for row, values in enumerate(said):
        for column, joint in enumerate(ALL_NAMES):
            if joint in values:
                bound = most * np.maximum(1.0, np.abs(values[joint]))
                assert (np.abs(table[row, column] - values[joint]) < bound).all(), (row, joint)
            else:
                assert np.isnan(table[row, column]).all(), (row, joint)
    assert +replay.counts[name] == +counts


@pytest.mark.parametrize(
    ('name', 'memory'),
    [
        ('gru', 'persistent'),
        ('attention', 'persistent'),
        ('motion', 'persistent'),
        ('gru', 'window'),
        ('kalman', 'persistent'),
        ('lowpass', 'persistent'),
        ('savgol', 'persistent'),
        ('difference', 'persistent'),
    ],
)
def test_a_messy_recording_is_estimated_as_by_the_stream(tmp_path, short_chunks, name, memory):
    blocks = blocks_of(tmp_path, messy_samples())
    estimator = load_estimator(name, memory=memory)
    said, counts = by_stream(blocks, estimator)
    for cause in ('gap', 'time_backwards', 'joint'):
        assert counts[f'reset_{cause}'], cause
    for drop in ('late', 'duplicate_stamp', 'zero_stamp', 'length_mismatch', 'all_rejected'):
        assert counts[f'drop_{drop}'], drop
    assert_same(fast(blocks, {name: estimator}), name, said, counts, 1e-5)


@pytest.mark.parametrize(
    'options',
    [
        StreamOptions(joints=('wrist', 'shoulder')),
        StreamOptions(continuous_joints=('elbow',)),
        StreamOptions(zero_stamp='receive_time', max_gap_s=0.02),
        StreamOptions(max_velocity_rad_s=2.0),
        StreamOptions(joint_max_velocity=('elbow: 0.7',)),
        StreamOptions(max_velocity_rad_s=1.0, joint_max_velocity=('wrist: 0', 'elbow: 3')),
    ],
)
def test_options_of_the_stream_are_kept(tmp_path, short_chunks, options):
    blocks = blocks_of(tmp_path, messy_samples())
    estimator = load_estimator('kalman')
    said, counts = by_stream(blocks, estimator, options)
    assert counts['estimated'] > 100
    limited = options.max_velocity_rad_s or options.joint_max_velocity
    assert bool(counts['value_jump']) == bool(limited)
    assert_same(fast(blocks, {'kalman': estimator}, options), 'kalman', said, counts, 1e-6)


def test_a_memory_that_never_fades_is_computed_in_order(tmp_path, short_chunks):
    """A filter that adds up all it has seen cannot be guessed from its last samples."""

    class Sum(type(load_estimator('lowpass'))):
        def step(self, windows, advance, state):
            total = state['velocity'] + windows.differences()[:, 0]
            total = np.where(windows.count == 1, 0.0, total)
            total = np.where(advance, total, state['velocity'])
            return total, {'velocity': total}

    samples = clean_samples(1000)
    blocks = blocks_of(tmp_path, samples)
    replay = fast(blocks, {'sum': Sum()})
    sums = replay.tables['sum'].array(1000, NAMES)
    expected = np.array([sample.position - samples[0].position for sample in samples])
    np.testing.assert_allclose(sums[4:], expected[4:], atol=1e-6)
    (scan,) = [run._engine for group in replay._groups for run in group.runs.values()]
    assert scan.in_order > 0


def test_chunks_agree_after_few_passes_where_memory_fades(tmp_path, short_chunks):
    blocks = blocks_of(tmp_path, clean_samples(1000))
    replay = fast(blocks, {'lowpass': load_estimator('lowpass')})
    (scan,) = [run._engine for group in replay._groups for run in group.runs.values()]
    assert scan.in_order == 0 and scan.passes <= 3


def test_what_cannot_be_run_in_arrays_is_refused(tmp_path):
    class Strange:
        fields, joints, window, per_joint = ('position',), (), 5, True

    with pytest.raises(SeqmemError, match='--fast: expected filters and networks with memory '):
        fast([], {'strange': Strange()})


def test_an_output_that_is_not_finite_is_told(tmp_path, short_chunks):
    class Broken(type(load_estimator('difference'))):
        def step(self, windows, advance, state):
            return np.full(windows.capacity, np.nan), state

    blocks = blocks_of(tmp_path, clean_samples(50))
    with pytest.raises(SeqmemError, match='--fast: broken gives values that are not finite'):
        fast(blocks, {'broken': Broken()})


def test_a_change_of_order_is_no_event(tmp_path):
    """Back to the rules, a stream is shown again what it has not seen; nobody is to hear of it."""
    samples = clean_samples(400)
    turned = [
        JointSample(sample.stamp_ns, sample.names[::-1], sample.position[::-1])
        for sample in samples[200:]
    ]
    blocks = blocks_of(tmp_path, [*samples[:200], *turned])
    estimator = load_estimator('difference')
    said, counts = by_stream(blocks, estimator)
    replay = fast(blocks, {'difference': estimator})
    assert_same(replay, 'difference', said, counts, 1e-6)
    assert replay.events == {'difference': ''}
