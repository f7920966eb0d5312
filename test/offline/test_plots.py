"""Pictures: what is in them, for one joint, six and forty-five."""

from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure
import numpy as np
import pytest

from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.offline.evaluate import evaluate_bag
from seqmem_ros.offline.plots import plot_result
from seqmem_ros.offline.result import EstimatorResult


@pytest.fixture
def figures(monkeypatch):
    """Return the list of figures that are saved, in place of drawing them."""
    saved = []
    monkeypatch.setattr(Figure, 'savefig', lambda figure, *_, **__: saved.append(figure))
    return saved


def evaluate(tmp_path, n_joints, count=300, names=('difference', 'kalman')):
    """Evaluate joints that move the more the higher their number."""
    time_s = np.arange(count) * 0.01
    joints = tuple(f'joint_{index}' for index in range(n_joints))
    position = np.sin(3.0 * time_s)[:, None] * 0.02 * np.arange(1, n_joints + 1)
    samples = [
        (stamp_ns, JointSample(stamp_ns, joints, position[index]))
        for index, stamp_ns in enumerate(10**18 + 10_000_000 * np.arange(count))
    ]
    write_joint_bag(tmp_path / 'bag', '/joint_states', samples)
    return evaluate_bag(tmp_path / 'bag', {name: load_estimator(name) for name in names})


def titles(figure):
    return [axes.get_title(loc='left') for axes in figure.axes if axes.get_title(loc='left')]


def test_one_joint(tmp_path, figures):
    result = evaluate(tmp_path, 1)
    plot_result(result, 'unused.png')
    (figure,) = figures
    above, below = figure.axes
    assert titles(figure) == ['joint_0']
    assert above.get_ylabel() == 'velocity / (rad/s)' and below.get_ylabel() == 'error / (rad/s)'
    assert below.get_xlabel() == 'time / s'
    lines = {line.get_label(): line.get_ydata() for line in above.lines}
    assert set(lines) == {'raw difference', 'reference', 'kalman'}
    np.testing.assert_array_equal(lines['reference'], result.reference.velocity[:, 0])
    np.testing.assert_array_equal(lines['kalman'], result.estimators['kalman'].outputs[:, 0])
    errors = below.lines[1].get_ydata()
    np.testing.assert_array_equal(errors, lines['kalman'] - lines['reference'])
    title = figure.get_suptitle()
    assert title.startswith(
        'kalman on bag, as recorded, then 14 bits per revolution, 1 % of messages dropped'
    )
    assert 'hidden' not in title


def test_six_joints_are_all_shown(tmp_path, figures):
    plot_result(evaluate(tmp_path, 6), 'unused.png')
    assert titles(figures[0]) == [f'joint_{index}' for index in range(6)]
    assert 'hidden' not in figures[0].get_suptitle()


def test_of_forty_five_the_six_that_move_most_are_shown(tmp_path, figures):
    plot_result(evaluate(tmp_path, 45), 'unused.png')
    assert titles(figures[0]) == [f'joint_{index}' for index in range(39, 45)]
    assert 'the 6 joints that move most, 39 hidden' in figures[0].get_suptitle()


def test_of_a_long_recording_ten_seconds_are_shown(tmp_path, figures):
    plot_result(evaluate(tmp_path, 1, count=1500), 'unused.png')
    time_s = figures[0].axes[0].lines[0].get_xdata()
    assert np.ptp(time_s) == pytest.approx(10.0)
    assert ' s, where they move most' in figures[0].get_suptitle()


def test_a_velocity_model_goes_before_labels_and_filters(tmp_path, figures):
    result = evaluate(tmp_path, 1, names=('difference', 'kalman'))
    kalman = result.estimators['kalman']
    model = replace(kalman, source='mine.safetensors')
    labels = EstimatorResult('label', ('off',), 'model', '', np.ones((300, 1, 1)), {})
    for estimators, shown in (
        ({'labels': labels, 'kalman': kalman, 'mine': model}, 'mine'),
        ({'kalman': kalman, 'labels': labels}, 'labels'),
    ):
        plot_result(replace(result, estimators=estimators), 'unused.png')
        assert figures[-1].get_suptitle().startswith(f'{shown} on bag')


def test_labels_are_drawn_below_the_reference(tmp_path, figures):
    result = evaluate(tmp_path, 1, names=('difference',))
    scores = np.full((300, 1, 2), np.nan)
    scores[10:, 0] = [0.3, 0.7]
    scores[200:, 0] = [0.9, 0.1]
    expected = np.full((300, 1), -1)
    expected[20:, 0] = 1
    labels = EstimatorResult(
        'label', ('off', 'on'), 'model', '', scores, {}, note='', expected=expected
    )
    plot_result(replace(result, estimators={'switch': labels}), 'unused.png')
    above, below = figures[0].axes
    assert [line.get_label() for line in above.lines] == ['reference']
    drawn = {line.get_label(): line.get_ydata() for line in below.lines}
    assert np.round(drawn['predicted label'][[10, 199, 200]]).tolist() == [1.0, 1.0, 0.0]
    assert np.isnan(drawn['predicted label'][:10]).all()
    assert np.isnan(drawn['label of the reference'][:20]).all()
    assert np.round(drawn['label of the reference'][20:]).tolist() == [1.0] * 280
    assert [tick.get_text() for tick in below.get_yticklabels()] == ['off', 'on']


@pytest.mark.parametrize('suffix', ['.png', '.svg', '.pdf'])
def test_a_file_is_written(tmp_path, suffix):
    path = tmp_path / f'plot{suffix}'
    plot_result(evaluate(tmp_path, 2), path)
    magic = {'.png': b'\x89PNG', '.svg': b'<?xml', '.pdf': b'%PDF'}[suffix]
    assert Path(path).read_bytes().startswith(magic)
