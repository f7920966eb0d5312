"""Arguments stay where they are declared: none gets out to the file that includes ours, or in."""

from pathlib import Path
import sys
import unittest

import pytest

pytest.importorskip('launch_testing', reason='ROS 2 launch is not installed')
pytest.importorskip('launch_ros', reason='ROS 2 launch is not installed')
sys.path.insert(0, str(Path(__file__).parent))

from launch.actions import OpaqueFunction
from launch.actions import SetLaunchConfiguration
from launch_support import describe
import launch_testing
import launch_testing.asserts
from ros_harness import TIMEOUT_S

# What a file that starts a whole robot sets for itself.
OF_THE_ROBOT = {'model': 'robot.urdf', 'weights': '/no/such/file', 'namespace': 'elsewhere'}
CASES = [
    ('two_arms.launch.py', {'left_model': 'savgol', 'right_model': 'kalman'}, OF_THE_ROBOT),
    ('seqmem.launch.py', {'model': 'savgol'}, {}),
]


@pytest.mark.launch_test
@launch_testing.parametrize('file, arguments, of_the_robot', CASES)
def generate_test_description(file, arguments, of_the_robot):
    left_behind = {}

    def look(context):
        left_behind.update(context.launch_configurations)

    before = tuple(SetLaunchConfiguration(*item) for item in of_the_robot.items())
    description = describe(file, arguments, before, (OpaqueFunction(function=look),))
    expected = of_the_robot | arguments
    return description, {'left_behind': left_behind, 'expected': expected}


class TestScope(unittest.TestCase):
    def test_nothing_is_left_behind(self, proc_output, left_behind, expected):
        proc_output.assertWaitFor('velocity by savgol', timeout=TIMEOUT_S)
        if 'right_model' in expected:
            proc_output.assertWaitFor('velocity by kalman', timeout=TIMEOUT_S)
        self.assertEqual(left_behind, expected)


@launch_testing.post_shutdown_test()
class TestStopped(unittest.TestCase):
    def test_exit_codes(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
