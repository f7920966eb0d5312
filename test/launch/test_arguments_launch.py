"""The arguments that say where the node is, what it hears, and whether it waits to be told."""

from pathlib import Path
import sys
import unittest

import pytest

pytest.importorskip('launch_testing', reason='ROS 2 launch is not installed')
pytest.importorskip('launch_ros', reason='ROS 2 launch is not installed')
sys.path.insert(0, str(Path(__file__).parent))

from launch_support import describe
from launch_support import make_harness
from launch_support import temporary_folder
import launch_testing
import launch_testing.asserts
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import GetParameters
from ros_harness import arm_samples
from ros_harness import stamps_ns
from ros_harness import TIMEOUT_S

PARAMETERS = """
/**:
  ros__parameters:
    model: savgol
    max_gap_s: 0.5
    autostart: true
"""


@pytest.mark.launch_test
def generate_test_description():
    params_file = temporary_folder() / 'mine.yaml'
    params_file.write_text(PARAMETERS)
    arguments = {
        'params_file': str(params_file),
        'namespace': 'cell/left',
        'joint_states_topic': '/robot/joint_states',
        'autostart': 'false',
    }
    return describe('seqmem.launch.py', arguments)


class TestArguments(unittest.TestCase):
    def setUp(self):
        self.harness = make_harness()

    def tearDown(self):
        self.harness.close()

    def test_each_has_its_effect(self, proc_output):
        node = '/cell/left/seqmem'
        received = self.harness.collect(f'{node}/joint_states')
        names = ['max_gap_s', 'autostart']
        values = self.harness.call(GetParameters, f'{node}/get_parameters', names=names).values
        self.assertEqual((values[0].double_value, values[1].bool_value), (0.5, False))
        self.assertEqual(self.harness.node.count_subscribers('/robot/joint_states'), 0)
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            request = Transition(id=transition)
            answer = self.harness.call(ChangeState, f'{node}/change_state', transition=request)
            self.assertTrue(answer.success)
        samples = arm_samples(12)
        player = self.harness.player('/robot/joint_states', nodes=(node,))
        self.harness.play(player, samples)
        self.assertTrue(self.harness.spin_until(lambda: len(received) == 8), len(received))
        self.assertEqual(stamps_ns(received), [sample.stamp_ns for sample in samples[4:]])
        proc_output.assertWaitFor('velocity by savgol', timeout=TIMEOUT_S)


@launch_testing.post_shutdown_test()
class TestStopped(unittest.TestCase):
    def test_exit_code(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
