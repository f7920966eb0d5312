"""Whole recordings at once give what a stream gives sample by sample."""

import jax
import numpy as np
import pytest

from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.filters import LowPass
from seqmem_ros.core.filters import SavitzkyGolay
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
from seqmem_ros.offline.sequences import raw_sequence
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
        (Difference, 0), (LowPass, 0), (SavitzkyGolay, 0), (Kalman, 0),
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
