"""``seqmem play`` and ``seqmem record-check``: as their own processes, heard over DDS."""

from pathlib import Path
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')
pytest.importorskip('rosbags', reason='rosbags is not installed')

from rclpy.qos import QoSProfile
from ros_harness import arm_samples
from ros_harness import Harness
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

import seqmem_ros
from seqmem_ros.cli.main import main
from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import stamp_to_ns
from seqmem_ros.offline.bags import read_joint_messages
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.ros.player import Pace
from seqmem_ros.ros.player import PlayReport

SHIPPED = Path(seqmem_ros.__file__).parent / 'data' / 'kr300_a'
TIMEOUT_S = 60.0


class Clockwork:
    """Time that passes only when somebody waits."""

    def __init__(self, monkeypatch):
        self.now_s = 100.0
        monkeypatch.setattr('seqmem_ros.ros.player.time.monotonic', lambda: self.now_s)

    def idle(self, most_s):
        # Waits awake look at the clock again and again.
        self.now_s += max(most_s, 1e-5)


class Awake(Clockwork):
    """The same, but each look at the clock takes 10 us."""

    def __init__(self, monkeypatch):
        super().__init__(monkeypatch)
        monkeypatch.setattr('seqmem_ros.ros.player.time.monotonic', self.look)

    def look(self):
        self.now_s += 1e-5
        return self.now_s


def test_messages_are_due_at_their_own_pace(monkeypatch):
    clock = Awake(monkeypatch)
    pace = Pace(2.0, clock.idle)
    begin_s = clock.now_s
    for index in range(5):
        late_s = pace.wait_for(1000 + index * 100_000_000)
        assert 0.0 <= late_s < 1e-4
        assert clock.now_s - begin_s == pytest.approx(index * 0.05, abs=2e-4)


def test_a_pause_moves_what_follows(monkeypatch):
    clock = Awake(monkeypatch)
    pace = Pace(1.0, clock.idle)
    pace.wait_for(10**9)
    begin_s = clock.now_s
    pace.toggle()
    waited = []

    def idle(most_s):
        clock.idle(most_s)
        waited.append(most_s)
        if len(waited) == 50:
            stands_ns = pace.now_ns
            assert stands_ns == pytest.approx(10**9, abs=1e6)
            pace.toggle()

    pace.idle = idle
    assert pace.wait_for(10**9 + 100_000_000) < 1e-4
    # Fifty polls of 10 ms, then the tenth of a second.
    assert clock.now_s - begin_s == pytest.approx(0.6, abs=5e-3)


def test_the_report_says_how_well_it_went():
    late_s = np.concatenate([np.full(999, 0.0001), [0.004]])
    report = PlayReport(1000, 1.0, late_s)
    assert report.latest_s == 0.004
    assert 'half of the messages 0.10 ms' in report.timing
    assert 'the latest 4.00 ms; 99.90 % within 1 ms' in report.timing
    assert PlayReport(0, 0.0, np.empty(0)).timing == 'nothing sent'


@pytest.mark.parametrize('rate', [0.0, -1.0, float('nan')])
def test_a_pace_that_is_none(rate):
    with pytest.raises(SeqmemError, match=f'rate: expected a number above 0, got {rate}'):
        Pace(rate)


def write_bag(path, count=60):
    pairs = [(sample.stamp_ns, sample) for sample in arm_samples(count)]
    write_joint_bag(path, 'joint_states', pairs, 'base')
    return path


def play(*arguments):
    command = [sys.executable, '-m', 'seqmem_ros.cli.main', 'play', *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(harness, condition):
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s
        harness.executor.spin_once(timeout_sec=0.05)


def test_a_bag_is_heard_with_its_stamps_and_a_clock(harness: Harness, tmp_path):
    heard, clocks = [], []
    harness.node.create_subscription(JointState, '/arm/js', heard.append, QoSProfile(depth=1000))
    harness.node.create_subscription(Clock, '/clock', clocks.append, harness_qos())
    bag = write_bag(tmp_path / 'bag')
    process = play(bag, '--to', '/arm/js', '--clock', '100', '--wait', TIMEOUT_S)
    wait_for(harness, lambda: len(heard) == 60)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    assert 'sent 60 messages in ' in out and 'within 1 ms' in out
    expected = [message.sample for message in read_joint_messages(bag)]
    assert [stamp_to_ns(m.header.stamp) for m in heard] == [s.stamp_ns for s in expected]
    assert {m.header.frame_id for m in heard} == {'base'}
    np.testing.assert_array_equal([m.position for m in heard], [s.position for s in expected])
    first_ns, last_ns = expected[0].stamp_ns, expected[-1].stamp_ns
    times_ns = [stamp_to_ns(message.clock) for message in clocks]
    assert times_ns == sorted(times_ns)
    assert times_ns and first_ns <= times_ns[0] and times_ns[-1] <= last_ns + 10**9


def harness_qos():
    from rclpy.qos import QoSReliabilityPolicy

    return QoSProfile(depth=100, reliability=QoSReliabilityPolicy.BEST_EFFORT)


def test_a_loop_goes_on_until_it_is_interrupted(harness: Harness, tmp_path):
    heard = []
    harness.node.create_subscription(
        JointState, '/joint_states', heard.append, QoSProfile(depth=1000)
    )
    bag = write_bag(tmp_path / 'bag', 20)
    process = play(bag, '--loop', '--rate', '4', '--start', '0.1', '--wait', TIMEOUT_S)
    wait_for(harness, lambda: len(heard) > 25)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert err.splitlines()[-1] == 'seqmem: interrupted' and 'Traceback' not in err
    assert 'sent ' in out
    stamps = [stamp_to_ns(message.header.stamp) for message in heard]
    # Ten messages a round, from 0.1 s on.
    assert stamps[10:20] == stamps[:10]


def test_messages_may_be_played_in_the_order_of_their_stamps(harness: Harness, tmp_path):
    heard = []
    harness.node.create_subscription(
        JointState, '/joint_states', heard.append, QoSProfile(depth=1000)
    )
    samples = arm_samples(30)
    pairs = [(sample.stamp_ns, sample) for sample in samples]
    # Two messages that were recorded in the wrong order.
    pairs[10], pairs[12] = (pairs[10][0], samples[12]), (pairs[12][0], samples[10])
    write_joint_bag(tmp_path / 'bag', 'joint_states', pairs)
    process = play(tmp_path / 'bag', '--order', 'header', '--wait', TIMEOUT_S)
    wait_for(harness, lambda: len(heard) == 30)
    process.communicate(timeout=TIMEOUT_S)
    stamps = [stamp_to_ns(message.header.stamp) for message in heard]
    assert stamps == [sample.stamp_ns for sample in samples]


def test_what_cannot_be_played_is_said_in_one_line(ros_domain, tmp_path, capsys):
    bag = write_bag(tmp_path / 'bag', 3)
    for arguments, text in (
        ([bag, '--rate', '0'], 'rate: expected a number above 0, got 0.0'),
        ([bag, '--to', 'no topic'], "topic: 'no topic' is no name of a topic"),
        ([bag, '--clock', '0', '--wait', '0'], 'clock: expected a rate above 0 in Hz, got 0.0'),
        ([tmp_path / 'missing'], 'missing: no such file or folder'),
    ):
        assert main(['play', *map(str, arguments)]) == 1
        captured = capsys.readouterr()
        assert text in captured.err and captured.err.startswith('seqmem: error: ')
        assert captured.err.count('\n') == 1


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_the_node_says_on_the_shipped_recording_what_offline_says(
    ros_domain, tmp_path, capsys, storage
):
    bag = SHIPPED
    if storage == 'sqlite3':
        bag = tmp_path / 'shipped'
        pairs = ((m.record_ns, m.sample) for m in read_joint_messages(SHIPPED))
        write_joint_bag(bag, '/joint_states', pairs, storage='sqlite3')
    assert main(['record-check', str(bag), '--rate', '2']) == 0
    out = capsys.readouterr().out
    assert 'live against offline: 2497 messages, identical to the bit, 0 lost, 0 unexpected' in out


def test_labels_are_checked_too(ros_domain, tmp_path, capsys):
    assert main(['record-check', str(write_bag(tmp_path / 'bag')), '--model', 'motion']) == 0
    out = capsys.readouterr().out
    assert 'live against offline: 56 messages, identical to the bit, 0 lost, 0 unexpected' in out
