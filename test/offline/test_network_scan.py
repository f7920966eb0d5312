"""Scans of a network against single steps."""

import numpy as np
import pytest

from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.window import JointWindows
from seqmem_ros.offline.fast_steps import Steps
from seqmem_ros.offline.network_scan import NetworkScan

COUNT_RAD = 2 * np.pi / 2**14
STEP_NS = 2_000_000


def steps_of(position):
    """Show positions of an encoder, (n, R), as the steps of an estimator."""
    n_steps, n_rows = position.shape
    whole = np.concatenate([np.repeat(position[:1], 4, axis=0), position])
    stamps = np.maximum(np.arange(-4, n_steps), 0) * STEP_NS
    stamps = np.broadcast_to(stamps[:, None], whole.shape)
    windows = {
        name: np.lib.stride_tricks.sliding_window_view(values, 5, axis=0)
        for name, values in (('position', whole), ('stamp_ns', stamps))
    }
    count = np.repeat(np.arange(1, n_steps + 1)[:, None], n_rows, axis=1)
    advance = np.ones(count.shape, dtype=bool)
    return Steps(np.arange(n_steps), windows, count, advance, advance)


def motion(n_steps, n_rows=3, seed=0):
    """Move joints to and fro at changing speeds, as seen by 14 bits."""
    rng = np.random.default_rng(seed)
    time_s = np.arange(n_steps)[:, None] * 1e-9 * STEP_NS
    waves = rng.uniform(0.3, 3.0, (4, n_rows)), rng.uniform(0, 6.0, (4, n_rows))
    position = sum(0.3 * np.sin(w * time_s + phase) for w, phase in zip(*waves))
    return np.round(position / COUNT_RAD) * COUNT_RAD


def go(scan, position, together=None):
    """Run all steps, in calls of so many."""
    together = together or len(position)
    steps = steps_of(position)
    inputs = scan.inputs(steps)
    return np.concatenate(
        [
            np.asarray(scan.run({name: v[at : at + together] for name, v in inputs.items()}))
            for at in range(0, len(position), together)
        ]
    )


def step_by_step(estimator, position):
    """Call the program of a stream for each step."""
    steps = steps_of(position)
    windows = JointWindows(position.shape[1])
    advance = np.ones(position.shape[1], dtype=bool)
    memory, outputs = estimator.init_state(position.shape[1]), []
    for index in range(len(position)):
        windows.position = np.array(steps.windows['position'][index])
        windows.stamp_ns = np.array(steps.windows['stamp_ns'][index])
        windows.count = steps.count[index]
        output, memory = estimator.step(windows, advance, memory)
        outputs.append(output)
    return np.array(outputs)


@pytest.mark.parametrize('name', ['gru', 'lstm', 'attention', 'motion'])
def test_a_scan_in_order_says_what_single_steps_say(name):
    estimator = load_estimator(name)
    position = motion(3000)
    said = go(NetworkScan(estimator), position, together=1300)
    expected = step_by_step(estimator, position)
    if estimator.repeats_exactly or name in ('attention', 'motion'):
        np.testing.assert_array_equal(said, expected.astype(np.float32))
    np.testing.assert_allclose(said, expected, atol=1e-5)


@pytest.mark.parametrize('name', ['attention', 'motion'])
def test_what_makes_much_of_a_last_digit_is_computed_step_by_step(monkeypatch, name):
    """Where a scan does not repeat to the bit, with an older JAX."""
    monkeypatch.setattr(NetworkEstimator, 'repeats_exactly', False)
    estimator = load_estimator(name)
    position = motion(400)
    said = go(NetworkScan(estimator), position, together=150)
    expected = step_by_step(estimator, position).astype(np.float32)
    np.testing.assert_array_equal(said, expected)


def test_rows_may_come_later():
    estimator = load_estimator('gru')
    one, two = motion(50, 1), motion(50, 2)
    scan = NetworkScan(estimator)
    go(scan, one)
    said = go(scan, two)
    np.testing.assert_allclose(said, go(NetworkScan(estimator), two), atol=1e-6)
