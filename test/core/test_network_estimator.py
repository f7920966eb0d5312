"""A network in a stream: equal to the whole sequence at once, compiled once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.core.estimators import SHIPPED
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.stream import Stream
from seqmem_ros.core.weights import load_model

STEP_S = 0.01
N = 1000


def raw_of(times_s, positions, effort=None):
    """
    Lay out the inputs of whole sequences, from the definition alone.

    Row: position, velocity, effort, differences over lags 1 to 4, their times; (T, J, 11).
    """
    stamps_ns = [round(t * 1e9) for t in times_s]
    raw = np.zeros((len(times_s), positions.shape[1], 11), dtype=np.float32)
    raw[:, :, 0] = positions
    if effort is not None:
        raw[:, :, 2] = effort
    for i in range(len(times_s)):
        for lag in (1, 2, 3, 4):
            before = max(i - lag, 0)
            raw[i, :, 2 + lag] = positions[i] - positions[before]
            raw[i, :, 6 + lag] = (stamps_ns[i] - stamps_ns[before]) / 1e9
    return raw


def outputs_of(estimates):
    """Stack what estimates say, velocities or probabilities."""
    return np.stack([e.velocity if e.velocity is not None else e.scores for e in estimates])


@pytest.fixture
def recording(quantised_motion):
    rng = np.random.default_rng(1)
    times_s = np.cumsum(rng.uniform(0.008, 0.012, N))
    return times_s, np.stack([quantised_motion(t) for t in times_s])


@pytest.mark.parametrize('name', ['gru', 'lstm', 'attention', 'motion'])
def test_a_thousand_pushes_of_shipped_weights_equal_forward(name, recording, make_sample):
    # Between two labels the softmax magnifies the last digits; see the double-precision test.
    tolerance = 1e-4 if name == 'motion' else 1e-5
    check_pushes_against_forward(load_model(SHIPPED[name]), recording, make_sample, tolerance)


@pytest.mark.parametrize('name', ['direct', 'named', 'arm_label'])
def test_a_thousand_pushes_of_plain_networks_equal_forward(
    name, recording, make_sample, make_model
):
    check_pushes_against_forward(make_model(name), recording, make_sample)


def check_pushes_against_forward(model, recording, make_sample, tolerance=1e-5):
    times_s, positions = recording
    effort = np.random.default_rng(2).standard_normal(positions.shape)
    raw = raw_of(times_s, positions, effort if 'effort' in model.spec.features else None)
    expected = model.forward(raw) if model.spec.joints else jax.vmap(model.forward, 1, 1)(raw)
    if model.spec.task == 'label':
        expected = jax.nn.softmax(expected, axis=-1)
        expected = expected if model.spec.per_joint else expected[:, None]
    stream = Stream(NetworkEstimator(model))
    stream.warm_up()
    estimates = [
        stream.push(make_sample(t, p, effort=e)) for t, p, e in zip(times_s, positions, effort)
    ]
    assert estimates[:4] == [None] * 4
    got, expected = outputs_of(estimates[4:]), np.asarray(expected)[4:]
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)
    assert np.ptp(got) > 1e-3
    stream.reset()
    again = [stream.push(make_sample(t, p, effort=e)) for t, p, e in zip(
        times_s[:50], positions[:50], effort[:50])]  # fmt: skip
    np.testing.assert_array_equal(outputs_of(again[4:]), got[:46])
    assert stream.compile_count == 1


@pytest.mark.parametrize('name', ['gru', 'lstm', 'attention', 'label', 'shipped motion'])
def test_steps_equal_forward_in_double_precision(name, x64, make_model, recording):
    model = load_model(SHIPPED['motion']) if 'shipped' in name else make_model(name)
    raw = jnp.asarray(raw_of(*recording)[:300, 0], dtype=jnp.float64)
    for param in model.network.params():
        param.value = jnp.asarray(param.value, jnp.float64)
    expected = model.forward(raw)
    step, state = jax.jit(model.step), model.init_state()
    for t, x in enumerate(raw):
        y, state = step(x, state)
        np.testing.assert_allclose(y, expected[t], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('name', ['gru', 'attention', 'label', 'direct', 'named', 'arm_label'])
def test_window_memory_equals_a_fresh_stream_of_five_samples(
    name, make_model, make_sample, quantised_motion
):
    model = make_model(name)
    windowed, persistent = (
        Stream(NetworkEstimator(model, memory='window')),
        NetworkEstimator(model),
    )
    for i in range(12):
        args = STEP_S * i, quantised_motion(STEP_S * i)
        estimate = windowed.push(make_sample(*args, effort=[0.1 * i, 1.0, -1.0]))
        if estimate is None:
            continue
        fresh = Stream(persistent)
        for k in range(i - 4, i + 1):
            args = STEP_S * k, quantised_motion(STEP_S * k)
            expected = fresh.push(make_sample(*args, effort=[0.1 * k, 1.0, -1.0]))
        np.testing.assert_allclose(
            outputs_of([estimate]), outputs_of([expected]), rtol=1e-4, atol=1e-5
        )
    assert windowed.compile_count == 1


def test_one_model_serves_two_streams(make_model, make_sample, quantised_motion):
    estimator = NetworkEstimator(make_model('gru'))
    alone, one, other = Stream(estimator), Stream(estimator), Stream(estimator)
    for i in range(20):
        expected = alone.push(make_sample(STEP_S * i, quantised_motion(STEP_S * i)))
        got = one.push(make_sample(STEP_S * i, quantised_motion(STEP_S * i)))
        other.push(make_sample(STEP_S * i, [9.0 * i, 0.0, -i]))
    np.testing.assert_array_equal(got.velocity, expected.velocity)


def test_an_unknown_memory_is_refused(make_model):
    with pytest.raises(ValueError, match="memory: expected one of persistent, window, got 'all'"):
        NetworkEstimator(make_model('gru'), memory='all')


@pytest.mark.parametrize('name', ['lstm', 'attention'])
def test_rows_start_rest_and_advance_each_on_its_own(name, make_model):
    model = make_model(name)
    estimator = NetworkEstimator(model)
    rng = np.random.default_rng(3)
    memory, states, step = estimator.init_state(3), [None] * 3, jax.jit(model.step)
    assert memory.shape[0] == 3
    expected = np.zeros(3)
    for t in range(12):
        inputs = 0.01 * rng.standard_normal((3, 13)).astype(np.float32)
        inputs[:, 7:11] = [0.01, 0.02, 0.03, 0.04]
        inputs[:, 11] = advance = np.array([True, t % 2 == 0, t < 5])
        # Row 0 starts again in the middle.
        inputs[:, 12] = fresh = np.full(3, t == 0) | (np.arange(3) == 0) & (t == 6)
        outputs, memory = estimator.run(inputs, memory)
        for row in np.flatnonzero(advance):
            state = model.init_state() if fresh[row] else states[row]
            expected[row], states[row] = step(inputs[row, :11], state)
        np.testing.assert_allclose(outputs[advance], expected[advance], rtol=1e-5, atol=1e-6)
    assert outputs.dtype == np.float64
    assert estimator.compile_count == 1
