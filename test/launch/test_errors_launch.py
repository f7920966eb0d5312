"""A launch that cannot work: the node says why in one line, and ends with exit code 1."""

from pathlib import Path
import sys
import unittest

import pytest

pytest.importorskip('launch_testing', reason='ROS 2 launch is not installed')
pytest.importorskip('launch_ros', reason='ROS 2 launch is not installed')
sys.path.insert(0, str(Path(__file__).parent))

from launch_support import describe
from launch_support import temporary_folder
import launch_testing
import launch_testing.asserts
import launch_testing.markers
from ros_harness import TIMEOUT_S
from weights_files import write_weights

FOLDER = temporary_folder()
LSTM = str(write_weights(FOLDER, 'lstm'))
BROKEN = FOLDER / 'broken.safetensors'
BROKEN.write_bytes(b'not a weights file')
CASES = [
    ({'weights': '/no/such/file.safetensors'}, '/no/such/file.safetensors'),
    ({'weights': str(BROKEN)}, f'cannot configure: {BROKEN}'),
    ({'weights': LSTM, 'model': 'gru'}, "model 'gru' does not fit"),
    ({'model': 'perceptron'}, "got 'perceptron'"),
]


@pytest.mark.launch_test
@launch_testing.parametrize('arguments, expected', CASES)
@launch_testing.markers.keep_alive
def generate_test_description(arguments, expected):
    return describe('seqmem.launch.py', arguments), {'expected': expected}


class TestEnding(unittest.TestCase):
    def test_it_ends_and_says_why(self, proc_info, proc_output, expected):
        proc_info.assertWaitForStartup('seqmem_node', timeout=TIMEOUT_S)
        proc_info.assertWaitForShutdown('seqmem_node', timeout=TIMEOUT_S)
        proc_output.assertWaitFor(expected, process='seqmem_node', timeout=5)


@launch_testing.post_shutdown_test()
class TestEnded(unittest.TestCase):
    def test_exit_code_and_a_single_line(self, proc_info, proc_output):
        launch_testing.asserts.assertExitCodes(proc_info, allowable_exit_codes=[1])
        (name,) = proc_output.process_names()
        text = b''.join(io.text for io in proc_output[name]).decode()
        self.assertNotIn('Traceback', text)
        self.assertEqual(len(text.strip().splitlines()), 1, text)
