"""Scores, bars and tables of the velocity benchmark, by hand."""

import json

import numpy as np
import pytest
from velocity import main
from velocity_bars import bars
from velocity_bars import list_bars
from velocity_plot import plot
from velocity_report import as_json
from velocity_report import by
from velocity_report import cells
from velocity_report import overview
from velocity_report import unmet
from velocity_scores import MEASURES
from velocity_scores import oracle_estimates
from velocity_scores import QUICK
from velocity_scores import score
from velocity_scores import Scores
from velocity_suite import Cell
from velocity_suite import simulated_suite
from velocity_suite import Suite

from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.offline.simulate import Encoder
from seqmem_ros.offline.simulate import Recording
from seqmem_ros.offline.tune import rmse_of


def recording_of(velocity, rate_hz=100, bits=14, noise_counts=0.0):
    """Make a recording of a true velocity, as positions without a count."""
    n = len(velocity)
    stamp_ns = 10**9 + np.arange(n) * (10**9 // rate_hz)
    encoder = Encoder(rate_hz, bits, noise_counts)
    position = np.cumsum(velocity) / rate_hz
    return Recording(stamp_ns, position, velocity, np.zeros(n), encoder, 'moves')


class Said:
    """An estimator that says the newest of what it was given, sample by sample."""

    window = 5

    def __init__(self, estimates):
        self.estimates = estimates

    def init_state(self, capacity):
        return 0

    def step(self, windows, advance, state):
        return self.estimates[:, state], state + 1


@pytest.fixture
def suite():
    velocity = np.concatenate([np.full(50, 2.0), np.zeros(50)])
    stops = np.array([10**9 + 50 * 10**7])
    return Suite('real', (recording_of(velocity),), (Cell('moves', 100, 14),), (stops,))


def test_measures_by_hand(suite):
    errors = np.zeros(100)
    errors[10] = 99.0  # among the first twenty, which do not count but for the peak
    errors[20:50] = 0.1
    errors[50:55] = [1.0, 0.5, 0.25, 0.0, 0.25]
    errors[70:90] = -0.02
    estimates = (suite.recordings[0].velocity + errors)[None]
    got = score({'said': Said(estimates)}, suite, MEASURES).errors['said']
    squares = 30 * 0.01 + 1 + 0.25 + 2 * 0.0625 + 20 * 0.0004
    assert got['rmse'][0] == pytest.approx(np.sqrt(squares / 80))
    assert got['p99'][0] == pytest.approx(np.percentile(np.abs(errors[20:]), 99))
    assert got['after_stop'][0] == pytest.approx(np.sqrt((1.25 + 0.125) / 5))
    # At rest from 0.1 s after the last moving sample, number 49, on: from number 60.
    assert got['standstill'][0] == pytest.approx(np.sqrt(20 * 0.0004 / 40))
    assert got['peak'][0] == pytest.approx(101.0 / 2.0)


def test_the_lag_of_a_late_estimate():
    time_s = np.arange(600) / 100
    suite = Suite(
        'real', (recording_of(np.sin(3 * time_s)),), (Cell('moves', 100, 14),), (np.empty(0),)
    )
    said = Said(np.sin(3 * (time_s - 0.03))[None])
    got = score({'said': said}, suite, MEASURES).errors['said']
    assert got['lag_s'][0] == pytest.approx(0.03, abs=1e-4)
    assert got['rmse_at_lag'][0] < 1e-3 < got['rmse'][0]
    assert np.isnan(got['after_stop'][0])


def scores_of(name, errors):
    """Three recordings in two cells, with errors by estimator."""
    recordings = [recording_of(np.ones(30), noise_counts=n) for n in (0.0, 0.0, 1.0)]
    cells_ = (Cell('moves', 100, 14), Cell('moves', 100, 14), Cell('still', 100, 14))
    suite = Suite(name, tuple(recordings), cells_, (np.empty(0),) * 3)
    filled = {
        estimator: {m: np.array(values) for m in QUICK} for estimator, values in errors.items()
    }
    return Scores(suite, filled)


ERRORS = {
    'difference': [8.0, 2.0, 1.0],
    'kalman': [4.0, 1.0, 0.5],
    'oracle': [2.0, 0.5, 0.25],
    'net': [2.0, 2.0, 0.1],
}


def test_cells_and_ratios_by_hand():
    scores = scores_of('simulated', ERRORS)
    moves, still = Cell('moves', 100, 14), Cell('still', 100, 14)
    assert scores.by_cell('kalman') == {moves: pytest.approx(2.0), still: pytest.approx(0.5)}
    assert scores.ratio('net', 'oracle') == {moves: pytest.approx(2.0), still: pytest.approx(0.4)}
    assert scores.best_filter() == 'kalman'
    assert scores.models == ['net']
    # The lag is a median and may be below zero, the peak is the largest.
    scores.errors['net'] |= {'lag_s': np.array([-0.02, np.nan, 0.0])}
    assert scores.by_cell('net', 'lag_s')[moves] == -0.02
    assert scores.by_cell('net', 'peak')[moves] == 2.0


def test_errors_below_a_thousandth_of_a_count_per_sample_count_as_that():
    scores = scores_of('simulated', {'oracle': [0.0, 1.0, 1.0]})
    least = 1e-3 * 2 * np.pi / 2**14 * 100
    np.testing.assert_allclose(scores.floored('oracle'), [least, 1.0, 1.0])


def test_bars_by_hand():
    found = {bar.what: bar for bar in list_bars(scores_of('simulated', ERRORS))}
    assert found['simulated: RMSE / kalman'].value == pytest.approx(np.sqrt(1.0 * 0.2))
    assert found['simulated: RMSE / kalman'].met
    assert found['simulated: RMSE / oracle'].value == pytest.approx(np.sqrt(2.0 * 0.4))
    assert found['simulated: RMSE / oracle'].met
    worst = found['simulated: worst cell / oracle: moves 100 Hz 14 bits']
    assert worst.value == pytest.approx(2.0) and worst.most is None
    assert found['  the same without still joints / oracle'].value == pytest.approx(2.0)
    noisy = found['simulated: standstill / oracle: still joints, with noise']
    assert noisy.value == pytest.approx(0.4)


def test_real_bars_have_a_limit_for_the_worst_cell():
    text = bars(scores_of('real', ERRORS))
    line = next(line for line in text.splitlines() if 'worst cell' in line)
    assert line.split() == (
        'net real: worst cell / oracle: moves 100 Hz 14 bits 2.000 NOT met (at most 1.5)'.split()
    )
    assert 'largest estimate / largest velocity' in text


def test_tables_and_json_say_the_same():
    scores = scores_of('real', ERRORS)
    assert cells(scores).splitlines()[1].split() == (
        'moves 100 Hz 14 bits 1.00000 4.00 2.00 2.00'.split()
    )
    assert by(scores, 'rate_hz').splitlines()[1].split() == '100 Hz 0.50000 4.00 2.00 0.89'.split()
    kalman = overview(scores).splitlines()[2].split()
    assert kalman[:2] == ['kalman', '1.00000']
    assert unmet(scores, 1.5) == ['net        moves 100 Hz 14 bits 2.00']
    content = json.loads(json.dumps(as_json(scores), allow_nan=False))
    assert content['best_filter'] == 'kalman'
    assert content['cells'][0]['scores']['net']['rmse'] == pytest.approx(2.0)
    assert [bar['met'] for bar in content['bars'] if 'worst' in bar['what']] == [False]


def test_a_picture_is_drawn(tmp_path):
    path = tmp_path / 'scores.png'
    plot([scores_of('simulated', ERRORS), scores_of('real', ERRORS)], path)
    assert path.read_bytes().startswith(b'\x89PNG')


@pytest.fixture(scope='module')
def small():
    return simulated_suite((100, 500), (12,), ('moves', 'contacts'), per_cell=1, n_samples=120)


def test_no_kalman_filter_does_better_than_the_oracle(small):
    best = rmse_of(oracle_estimates(small.recordings), small.recordings)
    scores = score({f'q = {q:g}': Kalman(q) for q in (1e-2, 1.0, 1e3)}, small)
    np.testing.assert_allclose(scores.errors['oracle']['rmse'], best, rtol=1e-9)
    for name in scores.models:
        assert (scores.errors[name]['rmse'] >= best * (1 - 1e-9)).all()


def test_peers_are_kept_and_made_again_for_other_recordings(small, tmp_path, monkeypatch):
    cache = tmp_path / 'peers.npz'
    first = score({}, small.only(range(4)), cache=cache)
    again = small.only(range(4))

    def never(*_):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr('velocity_scores.run_together', never)
        kept = score({}, again, cache=cache)
        with pytest.raises(RuntimeError):
            score({}, small.only([0, 1]), cache=cache)
    for name, errors in first.errors.items():
        np.testing.assert_array_equal(kept.errors[name]['rmse'], errors['rmse'])


def test_a_filter_given_as_a_model_scores_as_itself(small):
    scores = score({'mine': Difference()}, small)
    for measure in QUICK:
        np.testing.assert_array_equal(
            scores.errors['mine'][measure], scores.errors['difference'][measure]
        )


def test_the_command_prints_and_writes(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr('velocity.simulated_suite', lambda: small)
    path, picture = tmp_path / 'scores.json', tmp_path / 'scores.png'
    arguments = ['--models', '--suites', 'simulated', '--quick']
    main([*arguments, '--json', str(path), '--plot', str(picture)])
    text = capsys.readouterr().out
    assert text.startswith('simulated: 4 recordings, rad/s')
    assert 'contacts 500 Hz 12 bits' in text
    content = json.loads(path.read_text())['simulated']
    assert len(content['cells']) == 4
    assert content['best_filter'] in content['cells'][0]['scores']
    assert picture.exists()
