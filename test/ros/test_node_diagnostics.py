"""What the node says about itself while it runs."""

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from diagnostic_msgs.msg import DiagnosticArray
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
import numpy as np
from ros_harness import arm_samples
from weights_files import write_weights

from seqmem_ros.core.weights import file_digest

OFTEN = {'model': 'difference', 'diagnostics_rate_hz': 20.0}


def values_of(array):
    (status,) = array.status
    return {pair.key: pair.value for pair in status.values}


def last_where(harness, reports, wanted):
    """Wait for a report that is as wanted, and return it."""
    found: list = []

    def look():
        found.extend(r for r in reports if wanted(r.status[0]))
        return found

    assert harness.spin_until(look), [r.status[0].message for r in reports[-3:]]
    return found[-1]


def test_a_node_that_works(harness, tmp_path):
    path = write_weights(tmp_path, 'gru')
    reports = harness.collect('/diagnostics', DiagnosticArray)
    harness.start(OFTEN | {'model': 'auto', 'weights': str(path)})
    harness.play(harness.player(), arm_samples(100))
    ok = last_where(harness, reports, lambda s: s.message == 'estimating')
    assert ok.status[0].level == DiagnosticStatus.OK
    assert ok.status[0].name == '/seqmem'
    assert ok.header.stamp.sec > 0
    values = values_of(ok)
    assert values['estimator'] == 'gru'
    assert values['task'] == 'velocity'
    assert values['weights'] == str(path)
    assert values['digest'] == file_digest(path)
    assert values['input'] == '/joint_states'
    assert values['publishers'] == '1'
    # Compiled while configuring, and not again for these three joints.
    assert values['compile_count'] == '1'
    assert 20 < float(values['input_rate_hz']) < 300
    assert 0 < float(values['step_p50_ms']) <= float(values['step_p99_ms'])
    assert 0 < float(values['latency_p50_ms']) <= float(values['latency_p99_ms']) < 1000
    end = last_where(harness, reports, lambda s: {'received': '100'}.items() <= dict(
        (v.key, v.value) for v in s.values).items())  # fmt: skip
    values = values_of(end)
    assert int(values['estimated']) == 96
    assert int(values['filling']) == 4


def test_nothing_comes_in(harness):
    reports = harness.collect('/diagnostics', DiagnosticArray)
    harness.start(OFTEN)
    silent = last_where(harness, reports, lambda s: s.level == DiagnosticStatus.WARN)
    assert silent.status[0].message == 'no joint states are coming in'
    assert values_of(silent)['publishers'] == '0'


def test_what_is_refused_is_counted_and_told(harness):
    reports = harness.collect('/diagnostics', DiagnosticArray)
    process = harness.start(OFTEN)
    samples = arm_samples(60)
    for sample in samples[20:23]:
        sample.position[0] = np.nan
    harness.play(harness.player(), samples)
    warned = last_where(harness, reports, lambda s: 'value_non_finite' in s.message)
    assert warned.status[0].level == DiagnosticStatus.WARN
    final = last_where(
        harness, reports, lambda s: any(v.key == 'received' and v.value == '60' for v in s.values)
    )
    assert values_of(final)['value_non_finite'] == '3'
    # Three in a row, one line: the log is not flooded.
    assert process.output().count('value_non_finite') == 1


def test_nothing_can_be_used(harness):
    reports = harness.collect('/diagnostics', DiagnosticArray)
    harness.start(OFTEN | {'joints': ['gripper']})
    harness.play(harness.player(), arm_samples(40))
    failed = last_where(harness, reports, lambda s: s.level == DiagnosticStatus.ERROR)
    assert failed.status[0].message.startswith('no message can be used: drop_no_known_joint')


def test_a_node_that_is_not_active(harness):
    reports = harness.collect('/diagnostics', DiagnosticArray)
    harness.start(OFTEN | {'autostart': False}, active=False)
    idle = last_where(harness, reports, lambda s: True)
    assert idle.status[0].level == DiagnosticStatus.OK
    assert idle.status[0].message == 'not active (unconfigured)'


def test_a_node_that_cannot_be_configured(harness):
    reports = harness.collect('/diagnostics', DiagnosticArray)
    harness.start(OFTEN | {'autostart': False, 'window': 4}, active=False)
    configure = Transition(id=Transition.TRANSITION_CONFIGURE)
    assert not harness.call(ChangeState, '/seqmem/change_state', transition=configure).success
    failed = last_where(harness, reports, lambda s: s.level == DiagnosticStatus.ERROR)
    assert failed.status[0].message.startswith('cannot configure: parameter window: expected 5')


def test_a_node_that_is_active_again_reports_afresh(harness):
    reports = harness.collect('/diagnostics', DiagnosticArray)
    process = harness.start(OFTEN)
    harness.play(harness.player(), arm_samples(30))
    last_where(harness, reports, lambda s: s.message == 'estimating')
    for transition in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE):
        assert harness.call(
            ChangeState, '/seqmem/change_state', transition=Transition(id=transition)
        ).success
        reports.clear()
    silent = last_where(harness, reports, lambda s: not s.message.startswith('not active'))
    assert silent.status[0].message == 'no joint states are coming in'
    values = values_of(silent)
    assert (values['input_rate_hz'], values['received']) == ('0.0', '30')
    # It was asked for, so nobody has to be warned.
    harness.play(harness.player(), arm_samples(30, start=30))
    last_where(harness, reports, lambda s: s.message == 'estimating')
    assert 'WARN' not in process.output()


def test_diagnostics_that_are_turned_off(harness):
    reports = harness.collect('/diagnostics', DiagnosticArray)
    received = harness.collect()
    harness.start(OFTEN | {'publish_diagnostics': False})
    harness.play(harness.player(), arm_samples(30))
    assert harness.spin_until(lambda: len(received) == 26)
    assert reports == []
