"""The pictures of a report: what is shown at one joint and at forty-five, and how it is named."""

from dataclasses import replace

import numpy as np
import pytest

from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.offline.degrade import AS_RECORDED
from seqmem_ros.offline.evaluate import evaluate_bag
from seqmem_ros.offline.evaluate import Setting
from seqmem_ros.offline.figures import _figures
from seqmem_ros.offline.plot_health import plot_health
from seqmem_ros.offline.plot_joint import plot_joint
from seqmem_ros.offline.plot_labels import plot_delay
from seqmem_ros.offline.plot_labels import plot_timeline
from seqmem_ros.offline.plot_overall import plot_joint_errors
from seqmem_ros.offline.plot_overall import plot_lag
from seqmem_ros.offline.tables import _milliseconds
from seqmem_ros.offline.tables import summary

FILTERS = ('difference', 'lowpass', 'kalman')


def evaluate(tmp_path, n_joints, n_still=0, names=FILTERS, noise_ns=0):
    """Evaluate joints that move, and some after them that do not."""
    time_s = np.arange(300) * 0.01
    joints = tuple(f'joint_{index}' for index in range(n_joints))
    position = np.sin(3.0 * time_s)[:, None] * 0.1 * np.ones(n_joints)
    position[:, n_joints - n_still :] = 0.25
    stamps = 10**18 + 10_000_000 * np.arange(300) - noise_ns * (np.arange(300) % 2)
    pairs = [(int(t), JointSample(int(t), joints, p)) for t, p in zip(stamps, position)]
    write_joint_bag(tmp_path / 'bag', '/joint_states', pairs)
    estimators = {name: load_estimator(name) for name in names}
    return evaluate_bag(tmp_path / 'bag', estimators, Setting(AS_RECORDED))


def test_the_mark_of_the_best_lag_is_the_lowest_point_of_its_curve(tmp_path):
    result = evaluate(tmp_path, 1)
    (axes,) = plot_lag(result).axes
    curves = {line.get_label(): line for line in axes.lines if len(line.get_xdata()) > 2}
    top = axes.get_ylim()[1]
    assert all(line.get_ydata().max() < top for line in curves.values()), 'nothing is cut off'
    marks = [line for line in axes.lines if line.get_marker() == 'o']
    for mark, name in zip(marks, FILTERS):
        (curve,) = (line for label, line in curves.items() if label.startswith(name))
        lag_ms, rmse = mark.get_xdata()[0], mark.get_ydata()[0]
        assert lag_ms == pytest.approx(1000 * result.estimators[name].curve.best_lag_s())
        assert rmse == pytest.approx(np.interp(lag_ms, curve.get_xdata(), curve.get_ydata()))
        assert rmse <= 1.01 * curve.get_ydata().min()


def test_joints_that_read_zero_are_left_out_and_counted(tmp_path):
    (axes,) = plot_joint_errors(evaluate(tmp_path, 45, n_still=43)).axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ['joint_0', 'joint_1']
    assert axes.get_xlabel().endswith('; 43 joints with an RMSE of 0 are left out')
    (axes,) = plot_joint_errors(evaluate(tmp_path / 'all', 2)).axes
    assert 'left out' not in axes.get_xlabel()


def test_where_nothing_moves_all_joints_are_named(tmp_path):
    (axes,) = plot_joint_errors(evaluate(tmp_path, 3, n_still=3)).axes
    assert len(axes.get_yticklabels()) == 3


def test_joints_that_never_move_are_folded_away(tmp_path):
    result = evaluate(tmp_path, 8, n_still=1)
    folded = {title: hidden for _, title, _, hidden in _figures(result) if 'joint_' in title}
    assert [hidden for title, hidden in folded.items()] == [False] * 6 + [True, True]
    result = evaluate(tmp_path / 'two', 2, n_still=1)
    folded = {title: hidden for _, title, _, hidden in _figures(result) if 'joint_' in title}
    assert folded == {'joint_0': False, 'joint_1 (never moves)': True}


def test_no_axis_counts_from_an_offset(tmp_path):
    """Stamps that differ in their last digits looked like a rate that jumps."""
    result = evaluate(tmp_path, 1, noise_ns=3)
    periods, _, delays = plot_health(result).axes[:3]
    for axes in (periods, delays):
        assert not axes.yaxis.get_major_formatter().get_useOffset()
    low, high = periods.get_ylim()
    assert low < 9.95 and high > 10.05


def test_an_error_of_nothing_has_an_axis_with_plain_numbers(tmp_path):
    figure = plot_joint(evaluate(tmp_path, 2, n_still=1), 1)
    below = figure.axes[2]
    assert below.get_ylabel() == 'error / (rad/s)'
    assert below.get_ylim() == pytest.approx((-1.2e-3, 1.2e-3))


def test_a_legend_has_lines_of_equal_length(tmp_path):
    names = ('difference', 'lowpass', 'savgol', 'kalman', 'line', 'quadratic')
    (legend,) = plot_joint(evaluate(tmp_path, 1, names=names), 0).legends
    # Seven entries: four and three, not six and one.
    assert len(legend.get_texts()) == 7 and legend._ncols == 4


def test_the_timeline_shows_joints_that_move_and_says_what_is_white(tmp_path):
    result = evaluate(tmp_path, 12, n_still=2, names=('motion',))
    figure = plot_timeline(result, result.estimators['motion'])
    assert [axes.get_ylabel() for axes in figure.axes] == [f'joint_{n}' for n in range(8)]
    title = figure.axes[0].get_title(loc='left')
    assert title.startswith('upper band: true, lower band: predicted, white: none')
    assert title.endswith('; the 8 joints that move most')
    result = evaluate(tmp_path / 'few', 3, n_still=1, names=('motion',))
    figure = plot_timeline(result, result.estimators['motion'])
    assert [axes.get_ylabel() for axes in figure.axes] == ['joint_0', 'joint_1']


def test_changes_are_counted_in_whole_numbers(tmp_path):
    result = evaluate(tmp_path, 1, names=('motion',))
    each = result.estimators['motion']
    each = replace(each, total=replace(each.total, delays_s=np.array([0.01, 0.02, 0.03])))
    (axes,) = plot_delay(each).axes
    assert all(float(tick).is_integer() for tick in axes.get_yticks())


def test_a_lag_of_nothing_has_no_sign():
    assert _milliseconds(-0.00003) == '0.0'
    assert _milliseconds(-0.00006) == '-0.1'


def test_a_table_over_all_bags_has_a_column_of_labels_if_there_are_any(tmp_path):
    result = evaluate(tmp_path, 1, names=('kalman',))
    assert 'labels' not in summary([result.estimators] * 2)
    result = evaluate(tmp_path / 'labels', 1, names=('motion',))
    assert 'labels' in summary([result.estimators] * 2).splitlines()[2]
