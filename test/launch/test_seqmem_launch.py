"""The launch file, as a user starts it: by default, with each model, and with own weights."""

from pathlib import Path
import sys
import unittest

import pytest

pytest.importorskip('launch_testing', reason='ROS 2 launch is not installed')
pytest.importorskip('launch_ros', reason='ROS 2 launch is not installed')
sys.path.insert(0, str(Path(__file__).parent))

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from launch_support import describe
from launch_support import make_harness
from launch_support import temporary_folder
import launch_testing
import launch_testing.asserts
import numpy as np
from ros_harness import arm_samples
from ros_harness import NAMES
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from weights_files import write_weights

VELOCITY = ('/seqmem/joint_states', JointState)
LABEL = ('/seqmem/label', String)
OWN = str(write_weights(temporary_folder(), 'lstm'))
CASES = [
    ({}, VELOCITY),
    ({'model': 'gru'}, VELOCITY),
    ({'model': 'lstm'}, VELOCITY),
    ({'model': 'attention'}, VELOCITY),
    ({'model': 'motion'}, LABEL),
    ({'model': 'kalman'}, VELOCITY),
    ({'weights': OWN}, VELOCITY),
    ({'weights': OWN, 'model': 'lstm', 'use_sim_time': 'true', 'log_level': 'warn'}, VELOCITY),
]


@pytest.mark.launch_test
@launch_testing.parametrize('arguments, output', CASES)
def generate_test_description(arguments, output):
    return describe('seqmem.launch.py', arguments), {'arguments': arguments, 'output': output}


class TestRunning(unittest.TestCase):
    def setUp(self):
        self.harness = make_harness()

    def tearDown(self):
        self.harness.close()

    def start_clock(self):
        """Tell the time until the node goes by it: the stamps of its diagnostics show it."""
        reports = self.harness.collect('/diagnostics', DiagnosticArray)
        clock = self.harness.node.create_publisher(Clock, '/clock', 10)
        wanted = Time(sec=1234)

        def heard():
            clock.publish(Clock(clock=wanted))
            self.harness.spin(0.02)
            return reports and reports[-1].header.stamp == wanted

        self.assertTrue(self.harness.spin_until(heard))

    def test_estimates_and_reset(self, arguments, output):
        received = self.harness.collect(*output)
        player = self.harness.player()
        samples = arm_samples(40)
        if 'use_sim_time' in arguments:
            self.start_clock()
        self.harness.play(player, samples[:20])
        self.assertTrue(self.harness.spin_until(lambda: len(received) == 16), len(received))
        self.assertTrue(self.harness.call(Trigger, '/seqmem/reset').success)
        self.harness.play(player, samples[20:])
        self.assertTrue(self.harness.spin_until(lambda: len(received) == 32), len(received))
        for message in received:
            if isinstance(message, String):
                self.assertEqual([p.split(': ')[0] for p in message.data.split(', ')], [*NAMES])
            else:
                self.assertEqual(list(message.name), [*NAMES])
                self.assertTrue(np.isfinite(message.velocity).all())


@launch_testing.post_shutdown_test()
class TestStopped(unittest.TestCase):
    def test_exit_code(self, proc_info, proc_output):
        launch_testing.asserts.assertExitCodes(proc_info)
        for name in proc_output.process_names():
            text = b''.join(io.text for io in proc_output[name]).decode()
            self.assertNotIn('Traceback', text)
