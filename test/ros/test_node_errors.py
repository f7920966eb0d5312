"""What stops the node: one line that helps, exit code 1, and never a traceback."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from ros_harness import TIMEOUT_S
from weights_files import write_weights

from seqmem_ros.ros.process import NodeProcess


def lines_of_failed_start(ros_domain, parameters=None, remappings=None):
    with NodeProcess(parameters, domain_id=ros_domain, remappings=remappings) as process:
        code = process.process.wait(TIMEOUT_S)
        text = process.output()
    assert code == 1, text
    assert 'Traceback' not in text
    return text.strip().splitlines()


@pytest.mark.parametrize(
    'parameters, expected',
    [
        ({'model': 'perceptron'}, "parameter model: expected one of auto, gru, .*, got 'percep"),
        ({'model': 3}, 'parameter model: expected a string, got 3'),
        ({'memory': 'none'}, "parameter memory: expected one of persistent, window, got 'none'"),
        (
            {'max_gap_s': -1.0},
            'parameter max_gap_s: expected 1e-06 to 3600, got -1.0; set it .* default 0.25',
        ),
        ({'max_gap_s': 'soon'}, "parameter max_gap_s: expected a number, got 'soon'"),
        ({'max_rejected': 0}, 'parameter max_rejected: expected 1 to 1000000, got 0'),
        ({'max_rejected': 2.5}, 'parameter max_rejected: expected a whole number, got 2.5'),
        ({'joints': [1, 2]}, r'parameter joints: expected a list of strings, got \[1, 2\]'),
        ({'autostart': 'yes please'}, "autostart: expected true or false, got 'yes please'"),
        ({'use_sim_time': 5}, "expected valid ROS arguments, got: .*'use_sim_time'.*'BOOL'"),
        (
            {'model': 'kalman', 'window': 7},
            r'parameter window: expected 5 for kalman \(filter\), got 7; set it to 5',
        ),
        (
            {'model': 'kalman', 'joints': ['a', 'a']},
            'cannot configure: joints: expected each joint once, got a, a',
        ),
        (
            {'weights': '/no/such/file.safetensors'},
            'cannot configure: .*/no/such/file.safetensors',
        ),
    ],
)
def test_a_wrong_parameter(ros_domain, parameters, expected):
    (line,) = lines_of_failed_start(ros_domain, parameters)
    assert re.search(expected, line), line


def test_weights_that_are_no_weights(ros_domain, tmp_path):
    path = tmp_path / 'broken.safetensors'
    path.write_bytes(b'not a weights file')
    (line,) = lines_of_failed_start(ros_domain, {'weights': str(path)})
    assert 'cannot configure' in line
    assert str(path) in line


def test_weights_of_another_model(ros_domain, tmp_path):
    path = write_weights(tmp_path, 'lstm')
    (line,) = lines_of_failed_start(ros_domain, {'model': 'gru', 'weights': str(path)})
    assert f"model 'gru' does not fit {path}, which holds 'lstm'" in line
    assert "set model to 'lstm' or 'auto'" in line


def test_writing_to_the_topic_that_is_read(ros_domain):
    (line,) = lines_of_failed_start(
        ros_domain, {'model': 'kalman'}, {'~/joint_states': '/joint_states'}
    )
    assert 'expected different topics to read and to write, got /joint_states for both' in line
    assert 'remap joint_states or ~/joint_states' in line


def test_a_quality_of_service_that_does_not_exist(ros_domain):
    name = 'qos_overrides./joint_states.subscription.reliability'
    lines = lines_of_failed_start(ros_domain, {'model': 'kalman', name: 'perfect'})
    assert 'cannot activate' in lines[-1]
    assert 'perfect' in lines[-1]


def test_a_parameter_file_that_does_not_exist(ros_domain):
    command = [sys.executable, '-m', 'seqmem_ros.ros.node', '--ros-args']
    result = run_to_the_end([*command, '--params-file', '/no/such.yaml'])
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith('seqmem: expected valid ROS arguments, got: ')
    assert '/no/such.yaml' in last
    assert '.c:' not in last


def test_help_and_arguments_that_are_none():
    command = [sys.executable, '-m', 'seqmem_ros.ros.node']
    told = run_to_the_end([*command, '--help'])
    assert told.returncode == 0
    assert 'ROS parameters' in told.stdout
    refused = run_to_the_end([*command, 'lstm'])
    assert refused.returncode == 2
    assert 'unrecognized arguments: lstm' in refused.stderr


@pytest.mark.parametrize(
    'package, parameters, remedy',
    [
        ('jax', {'model': 'gru'}, 'python3 -m pip install jax'),
        ('rclpy', {}, 'source /opt/ros/'),
        ('rclpy', {}, "pip install 'seqmem_ros[ros]'"),
        ('std_srvs', {}, 'std-srvs'),
    ],
)
def test_a_package_that_is_not_installed(ros_domain, tmp_path, package, parameters, remedy):
    # Stands before the installed package on the path, and fails as a missing one does.
    (tmp_path / package).mkdir()
    (tmp_path / package / '__init__.py').write_text(
        f"raise ModuleNotFoundError(\"No module named '{package}'\", name='{package}')"
    )
    search = os.pathsep.join([str(tmp_path), os.environ.get('PYTHONPATH', '')])
    arguments = ['--ros-args']
    for name, value in parameters.items():
        arguments += ['-p', f'{name}:={value}']
    result = run_to_the_end(
        [sys.executable, '-m', 'seqmem_ros.ros.node', *arguments], PYTHONPATH=search
    )
    (line,) = result.stderr.strip().splitlines()
    assert result.returncode == 1
    assert f"expected to import '{package}' with {sys.executable}" in line
    assert f"No module named '{package}'" in line
    assert remedy in line


def test_a_parameter_that_nobody_knows_is_told(harness):
    process = harness.start({'model': 'kalman', 'max_gap': 1.0})
    assert 'parameter max_gap is not known' in process.output()
    assert 'did you mean max_gap_s?' in process.output()


def run_to_the_end(command, **variables):
    environment = os.environ | variables
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
