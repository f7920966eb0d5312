"""Clocks and publishers that do not fit: what the node waits for, and what it says."""

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from diagnostic_msgs.msg import DiagnosticStatus
from ros_harness import arm_samples
from ros_harness import stamps_ns
from ros_harness import TIMEOUT_S
from rosgraph_msgs.msg import Clock
from std_srvs.srv import Trigger

from seqmem_ros.ros.player import Player
from seqmem_ros.ros.process import NodeProcess

OTHER_RCLPY = """
from seqmem_ros.ros import executor

class OtherNames:
    def __getattr__(self, name):
        print('asked for', name, flush=True)
        raise AttributeError(name)

executor.rclpy_implementation = OtherNames()
"""


def counts_of(reports):
    if not reports:
        return {}
    return {v.key: int(v.value) for v in reports[-1].status[0].values if v.value.isdigit()}


def test_simulated_time_is_waited_for_and_may_start_over(harness):
    received = harness.collect()
    reports = harness.collect('/diagnostics', DiagnosticArray)
    process = harness.start(
        {'model': 'difference', 'use_sim_time': True, 'diagnostics_rate_hz': 20.0}
    )
    player = harness.player()
    clock = harness.node.create_publisher(Clock, '/clock', 10)
    samples = arm_samples(20)

    def count_is(key, number):
        assert harness.spin_until(lambda: counts_of(reports).get(key) == number), key

    def set_clock(sec):
        # The stamp of the diagnostics shows when the node has heard it.
        wanted = Time(sec=sec)

        def heard():
            clock.publish(Clock(clock=wanted))
            harness.spin(0.02)
            return reports and reports[-1].header.stamp == wanted

        assert harness.spin_until(heard)

    harness.play(player, samples)
    count_is('drop_no_clock', 20)
    assert received == []
    assert 'messages wait for the first one' in process.output()
    set_clock(100)
    harness.play(player, samples)
    assert harness.spin_until(lambda: len(received) == 16), len(received)
    # Stamps and clock go back together: all is forgotten at once, and no message is late.
    set_clock(5)
    harness.play(player, samples)
    assert harness.spin_until(lambda: len(received) == 32), len(received)
    assert stamps_ns(received) == [s.stamp_ns for s in samples[4:]] * 2
    count_is('reset_time_backwards', 1)
    assert counts_of(reports)['drop_late'] == 0
    assert process.output().count('reset_time_backwards: stamps went back by 0.190 s') == 1


def test_a_publisher_that_cannot_be_heard_is_told(harness):
    """Asked to be reliable by an override, the node hears no publisher of best effort."""
    reports = harness.collect('/diagnostics', DiagnosticArray)
    process = harness.start({'model': 'difference', 'diagnostics_rate_hz': 20.0})
    deaf = Player(harness.node, reliable=False)
    told = 'a publisher on /joint_states cannot be heard: its QoS policy reliability'
    assert harness.spin_until(lambda: told in process.output())
    assert 'set qos_overrides./joint_states.subscription.reliability' in process.output()

    def warned():
        status = reports[-1].status[0] if reports else None
        return status and status.message == '1 publishers cannot be heard for their QoS'

    assert harness.spin_until(warned)
    assert reports[-1].status[0].level == DiagnosticStatus.WARN
    # Others are heard all the same.
    received = harness.collect()
    harness.play(harness.player(), arm_samples(10))
    assert harness.spin_until(lambda: len(received) == 6)
    assert deaf._publisher.get_subscription_count() == 0


@pytest.mark.parametrize('variable', ['cpu', None])
def test_a_device_that_is_not_there_is_one_line(ros_domain, variable, monkeypatch):
    """The parameter decides, whatever the environment says."""
    if variable is None:
        monkeypatch.delenv('JAX_PLATFORMS', raising=False)
    else:
        monkeypatch.setenv('JAX_PLATFORMS', variable)
    with NodeProcess({'model': 'gru', 'device': 'gpu'}, domain_id=ros_domain) as process:
        assert process.process.wait(TIMEOUT_S) == 1
        output = process.output()
    assert 'Traceback' not in output
    assert "parameter device: expected a device that jax has, got 'gpu'" in output
    assert "set it to 'cpu', or install jax for that device" in output.strip().splitlines()[-1]


def test_where_rclpy_has_other_inner_names_all_goes_its_own_way(harness, tmp_path, monkeypatch):
    (tmp_path / 'sitecustomize.py').write_text(OTHER_RCLPY)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    received = harness.collect()
    reports = harness.collect('/diagnostics', DiagnosticArray)
    process = harness.start({'model': 'difference', 'diagnostics_rate_hz': 20.0})
    samples = arm_samples(100)
    harness.play(harness.player(), samples[:50])
    assert harness.spin_until(lambda: len(received) == 46), len(received)
    assert harness.call(Trigger, '/seqmem/reset').success
    harness.play(harness.player(), samples[50:])
    assert harness.spin_until(lambda: len(received) == 92), len(received)
    assert stamps_ns(received) == [s.stamp_ns for s in samples[4:50] + samples[54:]]
    assert harness.spin_until(lambda: counts_of(reports).get('estimated') == 92)
    assert process.output().count('asked for') == 1
    assert process.stop() == 0


def test_a_filter_needs_no_jax(harness, tmp_path, monkeypatch):
    """Not at the start, of which JAX is the greater part, nor when joints come in."""
    (tmp_path / 'jax.py').write_text("raise ImportError('JAX was not to be imported')")
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    received = harness.collect()
    process = harness.start({'model': 'kalman'})
    many = [f'joint {k}' for k in range(20)]
    samples = arm_samples(6, many[:3]) + arm_samples(10, many, start=6)
    harness.play(harness.player(), samples)
    assert harness.spin_until(lambda: len(received) == 12), process.output()
    assert [len(m.name) for m in received] == [3] * 6 + [20] * 6
    assert process.stop() == 0
    assert 'JAX' not in process.output()
