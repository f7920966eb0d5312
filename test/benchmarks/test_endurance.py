"""An hour in short, and inputs at the limits."""

from endurance import Drift
from endurance import drift
from endurance import drift_report
from endurance import largest_ratios
from endurance import stress_recordings
from endurance import VELOCITY_MODELS
import numpy as np
import pytest
from scipy.stats import ttest_rel

from seqmem_ros.core.estimators import SHIPPED
from seqmem_ros.core.weights import load_model
from seqmem_ros.offline.sequences import forward_together
from seqmem_ros.offline.simulate import Encoder
from seqmem_ros.offline.simulate import Recording


@pytest.fixture(scope='module')
def gru():
    return load_model(SHIPPED['gru'])


def test_drift_is_a_paired_test_of_seconds():
    rng = np.random.default_rng(0)
    squares = rng.uniform(1, 2, (3, 40))
    expected = ttest_rel(squares[2, 2:], squares[0, 2:]).statistic
    assert Drift(squares).sigmas == pytest.approx(expected)
    assert Drift(squares).holds
    squares[2] *= 2
    assert not Drift(squares).holds
    np.testing.assert_allclose(Drift(squares).rmse[1], np.sqrt(squares[1, 2:].mean()))


def test_minutes_without_a_break_are_one_stream(gru, monkeypatch):
    """The memory goes on from minute to minute, and so do the lags of the inputs."""
    positions = []
    monkeypatch.setattr('endurance.NOISE_COUNTS', 0.0)
    got = drift(gru, minutes=2, minute_s=3)
    time_s = np.arange(1500) / 500
    cycles, amplitude = np.array([2, 5, 17, 43]), np.array([0.8, 0.3, 0.1, 0.03])
    angle = 2 * np.pi * cycles * time_s[:, None] / 3
    work = np.sin(angle) @ amplitude
    rate = np.cos(angle) @ (amplitude * 2 * np.pi * cycles / 3)
    count = 2 * np.pi / 2**14
    positions = np.round(np.tile(work, 2) / count) * count
    velocity = np.tile(rate, 2)
    recording = Recording(
        np.arange(3000) * 2_000_000, positions, velocity, 0 * velocity, Encoder(500, 14), ''
    )
    errors = forward_together(gru, [recording])[0] - velocity
    expected = np.mean(errors.reshape(2, 3, 500) ** 2, axis=-1)
    np.testing.assert_allclose(got[0].squares, expected, rtol=0.02)


@pytest.mark.parametrize('name', VELOCITY_MODELS)
def test_three_short_minutes_show_no_drift(name):
    """Motions that are eight times as fast as those of the hour on the page."""
    lines = drift_report(load_model(SHIPPED[name]), minutes=3, minute_s=8)
    assert [line.split('  ')[0].split(' RMSE')[0].strip() for line in lines] == [
        'at work', 'turning on', 'still'
    ]  # fmt: skip
    assert all(line.endswith('no drift') for line in lines)


def test_no_input_within_limits_drives_an_estimate_beyond_them(gru):
    recordings = stress_recordings(1500)
    assert len(recordings) == 8
    for name, recording in recordings.items():
        assert np.abs(recording.position).max() <= 3.0, name
    ratios = largest_ratios(gru, recordings.values())
    assert (ratios <= 3.0).all()
    # The fastest that jumps between the limits show is 6 rad in a sample of 2 ms.
    jumps = recordings['every sample the other limit']
    estimate = forward_together(gru, [jumps])
    assert ratios[2] == pytest.approx(np.abs(estimate).max() / 3000.0, rel=0.02)
