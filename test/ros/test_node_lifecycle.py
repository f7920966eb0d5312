"""Transitions, possible and impossible ones, and what each of them starts and stops."""

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from lifecycle_msgs.srv import GetState
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import DescribeParameters
from rcl_interfaces.srv import GetParameters
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from ros_harness import arm_samples
from ros_harness import stamps_ns
from std_srvs.srv import Trigger

MANUAL = {'model': 'difference', 'autostart': False}


def change(harness, transition, **by):
    request = Transition(id=transition) if not by else Transition(**by)
    return harness.call(ChangeState, '/seqmem/change_state', transition=request).success


def state(harness):
    return harness.call(GetState, '/seqmem/get_state').current_state.label


def set_parameter(harness, name, value):
    parameter: ParameterMessage = Parameter(name, value=value).to_parameter_msg()
    results = harness.call(SetParameters, '/seqmem/set_parameters', parameters=[parameter])
    return results.results[0]


def test_a_whole_life(harness):
    received = harness.collect()
    process = harness.start(MANUAL, active=False)
    assert state(harness) == 'unconfigured'
    assert harness.node.count_subscribers('/joint_states') == 0
    assert change(harness, Transition.TRANSITION_CONFIGURE)
    assert state(harness) == 'inactive'
    assert harness.node.count_subscribers('/joint_states') == 0
    assert change(harness, Transition.TRANSITION_ACTIVATE)
    player = harness.player()
    samples = arm_samples(30)
    harness.play(player, samples[:10])
    assert harness.spin_until(lambda: len(received) == 6)
    assert change(harness, Transition.TRANSITION_DEACTIVATE)
    assert harness.spin_until(lambda: harness.node.count_subscribers('/joint_states') == 0)
    # The list of names runs ahead of the connections; the next player must not take the old
    # subscription for the new one.
    assert harness.spin_until(lambda: player._publisher.get_subscription_count() == 0)
    assert change(harness, Transition.TRANSITION_ACTIVATE)
    player = harness.player()
    harness.play(player, samples[10:20])
    # The memory was given up: a whole window before the next estimate.
    assert harness.spin_until(lambda: len(received) == 12), len(received)
    assert stamps_ns(received)[6] == samples[14].stamp_ns
    assert change(harness, Transition.TRANSITION_DEACTIVATE)
    assert change(harness, Transition.TRANSITION_CLEANUP)
    assert state(harness) == 'unconfigured'
    assert harness.spin_until(lambda: harness.node.count_publishers('/seqmem/joint_states') == 0)
    assert change(harness, Transition.TRANSITION_UNCONFIGURED_SHUTDOWN)
    assert state(harness) == 'finalized'
    assert process.stop() == 0
    assert 'Traceback' not in process.output()


@pytest.mark.parametrize('by', [{'id': Transition.TRANSITION_ACTIVATE}, {'label': 'dance'}])
def test_a_transition_that_is_not_possible_is_refused(harness, by):
    process = harness.start(MANUAL, active=False)
    assert not change(harness, None, **by)
    assert state(harness) == 'unconfigured'
    assert change(harness, Transition.TRANSITION_CONFIGURE)
    assert not change(harness, Transition.TRANSITION_DEACTIVATE)
    assert not change(harness, Transition.TRANSITION_CONFIGURE)
    assert state(harness) == 'inactive'
    assert change(harness, Transition.TRANSITION_ACTIVATE)
    assert not change(harness, Transition.TRANSITION_CLEANUP)
    assert change(harness, Transition.TRANSITION_ACTIVE_SHUTDOWN)
    assert process.stop() == 0
    assert 'Traceback' not in process.output()
    # From Kilted on, rclpy has words of its own.
    told = ('not possible while inactive', "from current state (2, 'inactive')")
    assert any(words in process.output() for words in told)


def test_a_configuration_that_fails_can_be_put_right(harness):
    process = harness.start(MANUAL | {'window': 4}, active=False)
    assert not change(harness, Transition.TRANSITION_CONFIGURE)
    assert state(harness) == 'unconfigured'
    assert process.output().count('cannot configure: parameter window: expected 5') == 1
    assert set_parameter(harness, 'window', 5).successful
    assert change(harness, Transition.TRANSITION_CONFIGURE)
    assert state(harness) == 'inactive'


def test_reset_needs_an_active_node(harness):
    harness.start(MANUAL, active=False)
    answer = harness.call(Trigger, '/seqmem/reset')
    assert not answer.success
    assert answer.message == 'nothing to reset: the node is unconfigured, not active'


def test_parameters_of_a_running_node(harness):
    harness.start({'model': 'difference', 'max_gap_s': 1})
    values = harness.call(
        GetParameters, '/seqmem/get_parameters', names=['max_gap_s', 'joints', 'model']
    ).values
    assert values[0].type == Parameter.Type.DOUBLE.value
    assert values[0].double_value == 1.0
    assert values[1].string_array_value == ['']
    assert values[2].string_value == 'difference'

    described = harness.call(
        DescribeParameters, '/seqmem/describe_parameters', names=['max_gap_s', 'device']
    ).descriptors
    assert described[0].floating_point_range[0].to_value == 3600.0
    assert 'in s' in described[0].description
    assert described[1].read_only
    assert 'one of: cpu, gpu, tpu' in described[1].additional_constraints

    assert set_parameter(harness, 'publish_diagnostics', False).successful
    late = set_parameter(harness, 'joints', ['elbow'])
    assert not late.successful
    assert late.reason == 'joints takes effect on configure: deactivate and clean up first'
    wrong = set_parameter(harness, 'publish_diagnostics', 'never')
    assert not wrong.successful
    assert wrong.reason == (
        "parameter publish_diagnostics: expected true or false, got 'never'; set it to such a "
        'value, or leave it out for the default true'
    )
    assert not set_parameter(harness, 'device', 'gpu').successful
