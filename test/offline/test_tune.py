"""Tuning finds optima that are known."""

import re

import numpy as np
import pytest

from seqmem_ros.core.estimators import FILTERS
from seqmem_ros.offline.motions import sines
from seqmem_ros.offline.sequences import run_together
from seqmem_ros.offline.simulate import Encoder
from seqmem_ros.offline.simulate import record
from seqmem_ros.offline.simulate import Recording
from seqmem_ros.offline.tune import geometric_mean_rmse
from seqmem_ros.offline.tune import GRIDS
from seqmem_ros.offline.tune import main
from seqmem_ros.offline.tune import rmse_of
from seqmem_ros.offline.tune import settings_of
from seqmem_ros.offline.tune import sweep
from seqmem_ros.offline.tune import training_set
from seqmem_ros.offline.tune import tuned_once

RATE_HZ = 100.0


def recording_of(position, velocity, bits=16):
    """Make a recording at an even rate from positions as sensed and true velocities."""
    n = len(position)
    stamp_ns = 10**9 + np.arange(n) * round(1e9 / RATE_HZ)
    return Recording(stamp_ns, position, velocity, np.zeros(n), Encoder(RATE_HZ, bits), '')


def test_rmse_leaves_the_first_twenty_samples_out():
    recording = recording_of(np.zeros(24), np.full(24, 2.0))
    estimates = np.full((1, 24), 99.0)
    estimates[0, 20:] = [2.0, 5.0, 2.0, -2.0]
    np.testing.assert_allclose(rmse_of(estimates, [recording]), [2.5])


def test_rmse_of_each_recording():
    recordings = [recording_of(np.zeros(30), np.full(30, v)) for v in (1.0, -3.0)]
    np.testing.assert_allclose(rmse_of(np.zeros((2, 30)), recordings), [1.0, 3.0])


def test_geometric_mean_by_hand():
    recordings = [recording_of(np.zeros(3), np.zeros(3), bits) for bits in (16, 12)]
    assert geometric_mean_rmse(np.array([0.2, 5.0]), recordings) == pytest.approx(1.0)
    # One count per sample is 2 pi / 2^bits * 100 Hz; a thousandth of it is the least error.
    least = 1e-3 * 2 * np.pi / 4096 * 100
    mean = geometric_mean_rmse(np.array([4.0, 0.0]), recordings)
    assert mean == pytest.approx(np.sqrt(4.0 * least))


@pytest.mark.parametrize('name', ['lowpass', 'kalman', 'difference'])
def test_a_sweep_tries_every_setting_on_every_recording(name):
    rng = np.random.default_rng(0)
    motion = sines(np.array([0.4]), np.array([0.7]), np.array([0.3]))
    recordings = [record(rng, motion, Encoder(RATE_HZ, bits), 4 * bits) for bits in (10, 16)]
    settings, errors = sweep(name, recordings)
    assert errors.shape == (len(settings), 2)
    for index in (0, len(settings) // 2, len(settings) - 1):
        for column, recording in enumerate(recordings):
            estimate = run_together(FILTERS[name](**settings[index]), [recording])[0]
            estimate = estimate[: len(recording.velocity)]
            expected = np.sqrt(np.mean((estimate - recording.velocity)[20:] ** 2))
            assert errors[index, column] == pytest.approx(expected, rel=1e-9)


def test_noise_at_rest_asks_for_the_lowest_corner_a_clean_sine_for_the_highest():
    rng = np.random.default_rng(1)
    position = 1e-3 * rng.standard_normal(300)
    position[:2] = 0.0  # the first difference is what the filter starts from
    noise = recording_of(position, np.zeros(300))
    time_s = np.arange(300) / RATE_HZ
    omega = 2 * np.pi * 2.0
    sine = recording_of(np.sin(omega * time_s), omega * np.cos(omega * time_s))
    assert tuned_once('lowpass', [noise])[0] == {'cutoff_hz': pytest.approx(0.25)}
    # Above some hertz the low-pass passes a difference at 100 Hz on as it is.
    setting, error = tuned_once('lowpass', [sine])
    assert setting['cutoff_hz'] > 100
    assert error == pytest.approx(omega**2 / (2 * RATE_HZ) / np.sqrt(2), rel=0.02)


@pytest.mark.parametrize('degree', [1, 2, 3])
def test_a_polynomial_asks_for_its_degree(degree):
    rng = np.random.default_rng(2)
    time_s = np.arange(400) / RATE_HZ
    # Repeated from start to start, so that the highest power never dominates all others.
    phase_s = time_s % 0.5
    position = 3.0 * phase_s**degree * 4 ** (degree - 1)
    velocity = 3.0 * degree * phase_s ** (degree - 1) * 4 ** (degree - 1)
    noise_rad = {1: 1e-3, 2: 1e-4, 3: 1e-7}[degree]
    position = position + noise_rad * rng.standard_normal(400)
    # Windows across a restart belong to no polynomial.
    pieces = [
        recording_of(position[start : start + 50], velocity[start : start + 50])
        for start in range(0, 400, 50)
    ]
    assert tuned_once('savgol', pieces)[0]['degree'] == degree


@pytest.mark.parametrize('exponent', [-1, 2])
def test_kalman_finds_the_jerk_density_that_made_the_motion(exponent):
    """White jerk of density q drives the joint, noise of 1e-4 rad its positions."""
    rng = np.random.default_rng(3)
    density, step_s, fine = 10.0**exponent, 1 / RATE_HZ, 20
    recordings = []
    for _ in range(12):
        jerk = rng.standard_normal(300 * fine) * np.sqrt(density * fine / step_s)
        acceleration = np.cumsum(jerk) * step_s / fine
        velocity = np.cumsum(acceleration) * step_s / fine
        position = np.cumsum(velocity) * step_s / fine
        sensed = position[::fine] + 1e-4 * rng.standard_normal(300)
        recordings.append(recording_of(sensed, velocity[::fine]))
    setting, _ = tuned_once('kalman', recordings)
    assert abs(np.log10(setting['jerk_density']) - exponent) <= 0.5


def test_combinations_of_settings():
    assert settings_of('difference') == [{}]
    tried = settings_of('tracking')
    grid = GRIDS['tracking']
    assert len(tried) == len(grid['bandwidth_hz']) * len(grid['damping'])
    assert tried[1] == {'bandwidth_hz': pytest.approx(0.25), 'damping': 0.4}


@pytest.fixture(scope='module')
def training():
    return training_set()


@pytest.mark.parametrize('name', GRIDS)
def test_the_defaults_are_what_tuning_finds(name, training):
    """No setting beside the default one does better; a whole sweep would take a minute."""
    default = vars(FILTERS[name]())
    grid = {key: np.array(values) for key, values in GRIDS[name].items()}
    place = {key: int(np.abs(values - default[key]).argmin()) for key, values in grid.items()}
    for key, values in grid.items():
        assert default[key] == pytest.approx(values[place[key]], rel=0.01)

    def mean_of(place):
        setting = {key: float(values[place[key]]) for key, values in grid.items()}
        if name == 'savgol':
            setting = {key: int(value) for key, value in setting.items()}
        return geometric_mean_rmse(
            rmse_of(run_together(FILTERS[name](**setting), training), training), training
        )

    best = mean_of(place)
    for key, values in grid.items():
        for index in (place[key] - 1, place[key] + 1):
            if 0 <= index < len(values):
                assert best < 1.002 * mean_of({**place, key: index}), (key, values[index])


def test_the_command_prints_settings(capsys, monkeypatch):
    monkeypatch.setattr('seqmem_ros.offline.tune.training_set', lambda: training_set(4, 60))
    assert main(['difference', 'super_twisting']) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith('difference ')
    assert re.fullmatch(r'super_twisting +0\.\d+ rad/s  max_acceleration=[\d.]+', second)
