"""Two arms beside each other, each in its namespace, with its model, hearing only its own."""

from pathlib import Path
import sys
import unittest

import pytest

pytest.importorskip('launch_testing', reason='ROS 2 launch is not installed')
pytest.importorskip('launch_ros', reason='ROS 2 launch is not installed')
sys.path.insert(0, str(Path(__file__).parent))

from launch_support import describe
from launch_support import make_harness
import launch_testing
import launch_testing.asserts
from ros_harness import arm_samples
from ros_harness import stamps_ns
from ros_harness import TIMEOUT_S


@pytest.mark.launch_test
def generate_test_description():
    arguments = {'left_model': 'savgol', 'right_model': 'kalman'}
    return describe('two_arms.launch.py', arguments)


class TestTwoArms(unittest.TestCase):
    def setUp(self):
        self.harness = make_harness()

    def tearDown(self):
        self.harness.close()

    def test_each_hears_its_own_joints(self):
        received, samples = {}, {}
        for side, start in (('left', 0), ('right', 100)):
            received[side] = self.harness.collect(f'/{side}/seqmem/joint_states')
            player = self.harness.player(f'/{side}/joint_states', nodes=(f'/{side}/seqmem',))
            samples[side] = arm_samples(10, start=start)
            self.harness.play(player, samples[side])
        self.assertTrue(
            self.harness.spin_until(lambda: [len(r) for r in received.values()] == [6, 6])
        )
        for side in ('left', 'right'):
            expected = [sample.stamp_ns for sample in samples[side][4:]]
            self.assertEqual(stamps_ns(received[side]), expected)

    def test_each_has_its_model(self, proc_output):
        proc_output.assertWaitFor('velocity by savgol', timeout=TIMEOUT_S)
        proc_output.assertWaitFor('velocity by kalman', timeout=TIMEOUT_S)


@launch_testing.post_shutdown_test()
class TestStopped(unittest.TestCase):
    def test_exit_codes(self, proc_info):
        self.assertEqual([info.returncode for info in proc_info], [0, 0])
