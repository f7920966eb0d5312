"""Short ways for even stamps, against the ways for any, which they stand in for."""

import numpy as np
import pytest

from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline import reference
from seqmem_ros.offline import shifted
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.metrics import _percentile
from seqmem_ros.offline.metrics import _rms
from seqmem_ros.offline.reference import local_slopes
from seqmem_ros.offline.reference import unbroken_runs
from seqmem_ros.offline.shifted import shifted_errors

START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 2_000_000


def signals(count, seed=0):
    """Return a smooth reference and a noisy estimate with holes."""
    rng = np.random.default_rng(seed)
    truth = np.sin(np.arange(count) * 0.01) + 0.3 * np.sin(np.arange(count) * 0.037)
    told = truth + 0.01 * rng.normal(size=count)
    told[rng.random(count) < 0.05] = np.nan
    return truth, told


@pytest.mark.parametrize('lags', [[0.0, 1.0, 25.0], [0.3], [-7.5, 0.001, 12.25], [-3.0, 0.0]])
@pytest.mark.parametrize('stride', [1, 3])
def test_a_shift_on_even_stamps_is_that_on_any(monkeypatch, lags, stride):
    count = 2000
    time_ns = START_NS + PERIOD_NS * np.arange(count)
    arguments = (time_ns, *signals(count), np.array(lags) * PERIOD_NS * 1e-9, 0.25, stride)
    short = shifted_errors(*arguments)
    monkeypatch.setattr(shifted, '_even_period_s', lambda time_ns: 0.0)
    long = shifted_errors(*arguments)
    assert short.shape == long.shape and short.shape[1] > 500
    np.testing.assert_allclose(short, long, atol=1e-6)


def test_stamps_that_drift_or_jitter_are_not_even():
    even = START_NS + PERIOD_NS * np.arange(120_000)
    assert shifted._even_period_s(even) == pytest.approx(PERIOD_NS * 1e-9)
    jittered = even + 50 * (np.arange(len(even)) % 2)
    assert shifted._even_period_s(jittered) > 0
    late = even.copy()
    late[110_000] += 200
    # Each step is off by one nanosecond, all of them by much.
    drifting = even + np.minimum(np.arange(len(even)), 60_000)
    for uneven in (late, drifting):
        assert shifted._even_period_s(uneven) == 0.0


def test_slopes_on_even_stamps_are_those_on_any(monkeypatch):
    rng = np.random.default_rng(1)
    time_ns = START_NS + PERIOD_NS * np.arange(9000)
    position = 100.0 + np.cumsum(rng.normal(size=(9000, 3)), axis=0) * 1e-3
    position[:, 2] = 0.1
    short = local_slopes(time_ns, position, 0.021)
    weighted = reference._weighted

    def any_weights(values, block, index, weights):
        # Weights that differ at all take the way for any stamps.
        weights = np.array(weights)
        weights[0, 0] = np.nextafter(weights[0, 0], 1.0)
        return weighted(values, block, index, weights)

    monkeypatch.setattr(reference, '_weighted', any_weights)
    np.testing.assert_allclose(short, local_slopes(time_ns, position, 0.021), atol=1e-8)
    assert (short[20:-20, 2] == 0.0).all(), 'a joint that stands still has a velocity of zero'


def test_runs_of_rising_stamps_are_cut_at_gaps_alone():
    time_ns = np.array([0, 10, 20, 400, 410, 900]) * 1_000_000
    runs = [run.tolist() for run in unbroken_runs(time_ns, 0.25)]
    assert runs == [[0, 1, 2], [3, 4], [5]]
    # The same with one stamp that came late, which takes the long way.
    late = np.array([0, 10, 20, 15, 400, 410, 900]) * 1_000_000
    assert [run.tolist() for run in unbroken_runs(late, 0.25)] == [[0, 1, 3, 2], [4, 5], [6]]
    assert [len(run) for run in unbroken_runs(np.empty(0, dtype=np.int64), 0.25)] == [0]


@pytest.mark.parametrize('count', [1, 2, 7, 100, 101, 60_001])
def test_sums_in_pieces_are_those_of_numpy(count):
    values = np.random.default_rng(count).normal(size=count).astype(np.float32)
    squares = values.astype(np.float64) ** 2
    assert _rms(values) == pytest.approx(np.sqrt(squares.mean()), rel=1e-12)
    expected = np.percentile(np.abs(values), 99)
    assert _percentile(np.abs(values), 0.99) == pytest.approx(expected, rel=1e-6)


def test_all_messages_of_a_block_are_those_taken_one_by_one():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 2)), rng.normal(size=(5, 0)), rng.normal(size=(5, 3))
    block = JointBlock(np.arange(5), 7 + np.arange(5), ('a', 'b'), 'base', *values)
    samples = list(block.samples())
    assert len(samples) == 5
    for row, got in enumerate(samples):
        expected = block.sample(row)
        assert isinstance(got, JointSample) and type(got.stamp_ns) is int
        assert (got.stamp_ns, got.names) == (expected.stamp_ns, expected.names)
        for field in ('position', 'velocity', 'effort'):
            np.testing.assert_array_equal(getattr(got, field), getattr(expected, field))
