"""What the tests of core share: samples and small models."""

from arm_streams import FILTERS
from arm_streams import NAMES
from arm_streams import STEP_S
import jax
import numpy as np
import pytest

from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.observer import N_FEATURES
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.spec import ModelSpec

START_NS = 1_700_000_000_000_000_000


@pytest.fixture
def make_sample():
    """Give a function from time in s and positions to a sample."""

    def make(time_s, position, names=NAMES, velocity=(), effort=()):
        return JointSample(
            START_NS + round(time_s * 1e9),
            tuple(names),
            np.array(position, dtype=float),
            np.array(velocity, dtype=float),
            np.array(effort, dtype=float),
        )

    return make


@pytest.fixture
def quantised_motion():
    """Give a function from time in s to positions of three joints through 13-bit encoders."""
    count = 2 * np.pi / 2**13

    def motion(time_s):
        angle = np.array([2.1, 3.3, 0.7]) * time_s + np.array([0.0, 1.0, 2.0])
        return np.round(np.array([1.0, 0.4, 0.1]) * np.sin(angle) / count) * count

    return motion


def recurrent(cell, n_in, n_out, n_hidden=12):
    """Describe a small recurrent network."""
    return {
        'builder': 'recurrent_net',
        'n_in': n_in,
        'n_hidden': n_hidden,
        'n_out': n_out,
        'cell': cell,
        'n_layers': 1,
    }


def attention(n_in, n_out):
    """Describe a small attention network of two layers."""
    return {
        'builder': 'causal_transformer',
        'n_in': n_in,
        'd_model': 8,
        'n_heads': 2,
        'd_ff': 16,
        'depth': 2,
        'n_out': n_out,
        'window': 5,
    }


SPECS = {
    'gru': ModelSpec('velocity', recurrent('gru', N_FEATURES, N_STEERING)),
    'lstm': ModelSpec('velocity', recurrent('lstm', N_FEATURES, N_STEERING)),
    'attention': ModelSpec('velocity', attention(N_FEATURES, N_STEERING)),
    'label': ModelSpec(
        'label', recurrent('gru', N_FEATURES, N_STEERING + 4), labels=('still', 'moving')
    ),
    'direct': ModelSpec(
        'velocity',
        recurrent('lstm', 2, 1),
        readout='direct',
        features=('position', 'difference'),
        input_mean=(0.1, 0.0),
        input_scale=(2.0, 0.01),
        output_mean=0.5,
        output_scale=3.0,
    ),
    'measured': ModelSpec(
        'velocity', recurrent('gru', 2, 1), readout='direct', features=('position', 'velocity')
    ),
    'named': ModelSpec(
        'velocity', recurrent('gru', 6, 3), readout='direct', features=('position', 'effort'),
        joints=NAMES,
    ),
    'arm_label': ModelSpec(
        'label', recurrent('gru', 3, 2), readout='direct', features=('difference',),
        joints=NAMES, labels=('free', 'contact'),
    ),
}  # fmt: skip


@pytest.fixture
def make_model():
    """Give a function from a name in SPECS to a model with random weights, biases too."""

    def make(name, seed=0):
        spec = SPECS[name]
        network = build_network(spec.network, jax.random.key(seed))
        rng = np.random.default_rng(seed)
        for param in network.params():
            noise = 0.2 * rng.standard_normal(param.shape)
            param.value = param.value + noise.astype(np.asarray(param.value).dtype)
        return SequenceModel(spec, network)

    return make


# An estimator holds no memory, so that all tests may share one, and its compiled programs.
ESTIMATORS = {name: make() for name, make in FILTERS.items()}


@pytest.fixture
def make_estimator(make_model):
    """Give a function from a name to an estimator."""

    def make(name):
        if name not in ESTIMATORS:
            model = make_model('gru' if name == 'window' else name)
            memory = 'window' if name == 'window' else 'persistent'
            ESTIMATORS[name] = NetworkEstimator(model, memory=memory)
        return ESTIMATORS[name]

    return make


@pytest.fixture
def arm_at(make_sample, quantised_motion):
    """Give a function from the number of a sample to the whole arm's sample."""

    def at(i, offset_s=0.0, scale=1.0, **changed):
        position = scale * quantised_motion(STEP_S * i)
        for name, value in changed.items():
            position[NAMES.index(name)] = value
        effort = [0.1 * (i % 7), -1.0, 0.5]
        return make_sample(STEP_S * i + offset_s, position, effort=effort)

    return at
