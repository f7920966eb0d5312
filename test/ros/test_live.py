"""Starting, playing to and stopping the node from another program."""

import stat
import sys
import time

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from ros_harness import arm_samples
from ros_harness import Harness

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.ros.live import run_live
from seqmem_ros.ros.player import Player
from seqmem_ros.ros.process import environment_on_this_machine
from seqmem_ros.ros.process import NodeProcess
from seqmem_ros.ros.process import ros_arguments


def timed(samples):
    return [(sample.stamp_ns, sample, 'base') for sample in samples]


def test_the_pace_and_the_progress_of_playing(ros_domain):
    told: list[int] = []
    samples = timed(arm_samples(41))
    run = run_live(samples, {'model': 'savgol'}, rate=2.0, domain_id=ros_domain,
                   on_progress=told.append)  # fmt: skip
    assert run.exit_code == 0
    assert told == [1] * 41
    assert run.report.sent == 41
    # 40 steps of 10 ms at twice the pace; nothing may come early.
    assert run.report.duration_s >= 0.2 - 1e-3
    assert len(run.messages['joint_states']) == 37


def test_a_node_that_cannot_start_is_told_with_its_own_words(ros_domain):
    with pytest.raises(SeqmemError) as error:
        run_live(timed(arm_samples(1)), {'model': 'perceptron'}, domain_id=ros_domain)
    assert 'expected the node to run, got exit code 1; it printed: seqmem: ' in str(error.value)
    assert "got 'perceptron'" in str(error.value)


def test_nobody_listens(harness: Harness):
    player = Player(harness.node, 'nobody')
    with pytest.raises(SeqmemError, match=r'expected a subscriber of /nobody within 0.05 s'):
        player.wait_for_subscriber(0.05)


@pytest.mark.parametrize('rate', [0.0, -1.0, float('nan')])
def test_a_pace_that_is_none(harness: Harness, rate):
    player = Player(harness.node)
    with pytest.raises(SeqmemError, match=f'rate: expected a number above 0, got {rate}'):
        player.play([], rate)


def test_a_process_that_does_not_listen_to_signals_is_ended(ros_domain, tmp_path, monkeypatch):
    deaf = tmp_path / 'deaf'
    deaf.write_text("#!/bin/sh\ntrap '' INT TERM\necho ready\nwhile :; do sleep 0.05; done\n")
    deaf.chmod(deaf.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, 'executable', str(deaf))
    with NodeProcess(domain_id=ros_domain) as process:
        deadline_s = time.monotonic() + 10
        while 'ready' not in process.output() and time.monotonic() < deadline_s:
            process.check_alive()
        assert process.stop(timeout_s=0.2) == -9
    assert process.process.poll() == -9


def test_no_process_is_left_when_the_caller_is_interrupted(ros_domain):
    def interrupt(_):
        raise KeyboardInterrupt

    started: list[NodeProcess] = []
    start = NodeProcess.__init__

    def remember(self, *args, **kw):
        start(self, *args, **kw)
        started.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NodeProcess, '__init__', remember)
        with pytest.raises(KeyboardInterrupt):
            run_live(timed(arm_samples(3)), {'model': 'savgol'}, domain_id=ros_domain,
                     on_progress=interrupt)  # fmt: skip
    assert [process.process.poll() for process in started] == [0]


def test_the_command_line_leaves_no_doubt_about_types():
    arguments = ros_arguments(
        {'weights': '', 'max_gap_s': 0.5, 'autostart': True, 'joints': ['a', '']},
        '/left',
        {'joint_states': '/arm/joint_states'},
    )
    assert arguments == [
        '--ros-args', '-r', '__ns:=/left', '-r', 'joint_states:=/arm/joint_states',
        '-p', 'weights:=""', '-p', 'max_gap_s:=0.5', '-p', 'autostart:=true',
        '-p', 'joints:=["a", ""]',
    ]  # fmt: skip


@pytest.mark.parametrize('distribution, only', [('humble', True), ('jazzy', False)])
def test_the_environment_that_stays_on_this_machine(monkeypatch, distribution, only):
    monkeypatch.setenv('ROS_DISTRO', distribution)
    variables = environment_on_this_machine(7)
    assert variables['ROS_DOMAIN_ID'] == '7'
    assert variables['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
    assert ('ROS_LOCALHOST_ONLY' in variables) is only
