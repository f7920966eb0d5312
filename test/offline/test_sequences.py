"""Whole recordings at once give what a stream gives sample by sample."""

import jax
import numpy as np
import pytest

from seqmem_ros.core.estimators import FILTERS
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.inputs import raw_inputs
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.observer import N_FEATURES
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.stream import Stream
from seqmem_ros.core.window import JointWindows
from seqmem_ros.offline.sequences import forward_together
from seqmem_ros.offline.sequences import kalman_together
from seqmem_ros.offline.sequences import raw_sequence
from seqmem_ros.offline.sequences import rows_of
from seqmem_ros.offline.sequences import run_together
from seqmem_ros.offline.simulate import simulate

N_SAMPLES = 80


@pytest.fixture
def recordings():
    rng = np.random.default_rng(9)
    return [simulate(rng, N_SAMPLES) for _ in range(6)]


def random_network():
    """Make a model with random weights."""
    network = {
        'builder': 'recurrent_net', 'n_in': N_FEATURES, 'n_hidden': 8, 'n_out': N_STEERING,
        'cell': 'gru',
    }  # fmt: skip
    model = SequenceModel(
        ModelSpec('velocity', network), build_network(network, jax.random.key(1))
    )
    return NetworkEstimator(model)


def test_raw_inputs_of_a_recording_are_those_of_windows_fed_sample_by_sample(recordings):
    for recording in recordings:
        windows = JointWindows(1)
        one_by_one = []
        for stamp_ns, position in zip(recording.stamp_ns, recording.position):
            windows.push(np.array([0]), stamp_ns, np.array([position]))
            one_by_one.append(raw_inputs(windows)[0])
        at_once = raw_sequence(recording.stamp_ns, recording.position)
        assert at_once.dtype == np.float32
        np.testing.assert_array_equal(at_once, np.stack(one_by_one))


def test_raw_inputs_by_hand():
    stamp_ns = np.array([0, 10, 30, 60, 100, 150]) * 10**6 + 1_700_000_000_000_000_000
    raw = raw_sequence(stamp_ns, np.array([5.0, 6.0, 8.0, 11.0, 15.0, 20.0]))
    np.testing.assert_array_equal(raw[:, :3], [[p, 0, 0] for p in (5, 6, 8, 11, 15, 20)])
    np.testing.assert_array_equal(raw[2, 3:7], [2, 3, 3, 3])
    np.testing.assert_array_equal(raw[5, 3:7], [5, 9, 12, 14])
    np.testing.assert_allclose(raw[2, 7:], [0.02, 0.03, 0.03, 0.03], rtol=1e-6)
    np.testing.assert_allclose(raw[5, 7:], [0.05, 0.09, 0.12, 0.14], rtol=1e-6)
    np.testing.assert_array_equal(raw[0, 3:], 0.0)


@pytest.mark.parametrize(
    ('make', 'rtol'),
    [
        *((make, 1e-9) for make in FILTERS.values()),
        # Another number of rows is another program, which may round otherwise.
        (random_network, 1e-3),
    ],
)  # fmt: skip
def test_recordings_run_together_as_each_in_a_stream_of_its_own(make, rtol, recordings):
    estimator = make()
    together = run_together(estimator, recordings)
    assert together.shape == (6, N_SAMPLES)
    for recording, got in zip(recordings, together):
        stream = Stream(estimator)
        out = [
            stream.push(JointSample(int(stamp_ns), ('joint',), np.array([position])))
            for stamp_ns, position in zip(recording.stamp_ns, recording.position)
        ]
        assert stream.counts['estimated'] == N_SAMPLES - 4
        expected = [estimate.velocity[0] for estimate in out[4:]]
        np.testing.assert_allclose(got[4:], expected, rtol=rtol, atol=1e-3 * rtol)


@pytest.fixture
def of_two_lengths():
    rng = np.random.default_rng(10)
    return [simulate(rng, n) for n in (50, N_SAMPLES)]


def test_recordings_of_two_lengths_as_arrays(of_two_lengths):
    short, long = of_two_lengths
    rows = rows_of(of_two_lengths)
    assert rows.known.sum(axis=1).tolist() == [50, N_SAMPLES]
    assert rows.known[0, :50].all()
    assert (np.diff(rows.stamp_ns, axis=1) > 0).all()
    for name in ('stamp_ns', 'position', 'velocity'):
        got = getattr(rows, name)
        np.testing.assert_array_equal(got[0, :50], getattr(short, name))
        np.testing.assert_array_equal(got[1], getattr(long, name))
    assert (rows.position[0, 50:] == short.position[-1]).all()
    assert (rows.velocity[0, 50:] == 0).all()


def test_a_longer_neighbour_changes_nothing(of_two_lengths):
    short = of_two_lengths[0]
    together = run_together(Kalman(), of_two_lengths)
    alone = run_together(Kalman(), [short])
    np.testing.assert_allclose(together[0, :50], alone[0], rtol=1e-12)


def test_kalman_filters_of_many_settings_are_those_of_each(of_two_lengths):
    densities = np.array([[1e-2, 1.0, 1e4]]).T
    got = np.stack([*kalman_together(of_two_lengths, densities, 1e-4)], axis=-1)
    assert got.shape == (3, 2, N_SAMPLES)
    for setting, estimates in zip(densities[:, 0], got):
        expected = run_together(Kalman(setting, 1e-4), of_two_lengths)
        np.testing.assert_allclose(estimates, expected, rtol=1e-9, atol=1e-9)


def test_a_network_in_one_program_is_that_of_a_stream(of_two_lengths):
    estimator = random_network()
    at_once = forward_together(estimator.model, of_two_lengths)
    step_by_step = run_together(estimator, of_two_lengths)
    assert at_once.dtype == np.float64
    known = rows_of(of_two_lengths).known
    np.testing.assert_allclose(at_once[known], step_by_step[known], rtol=1e-3, atol=1e-5)
