"""The rules for what comes in, one after the other, over the real middleware to one node."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from diagnostic_msgs.msg import DiagnosticArray
from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from ros_harness import Domain
from ros_harness import Harness
from ros_harness import PERIOD_NS
from ros_harness import stamps_ns
from ros_harness import START_NS
from std_srvs.srv import Trigger

from seqmem_ros.core.joints import JointSample
from seqmem_ros.ros.messages import message_from_sample
from seqmem_ros.ros.player import Player
from seqmem_ros.ros.process import environment_on_this_machine

MAX_REJECTED = 3
PARAMETERS = {
    'model': 'difference',
    'diagnostics_rate_hz': 20.0,
    'max_velocity_rad_s': 20.0,
    'max_rejected': MAX_REJECTED,
    'continuous_joints': ['wheel'],
    'assume_joint_order': ['x', 'y'],
}


@dataclass
class Outcome:
    """What one script of messages led to: estimates, and what was counted on the way."""

    estimates: list
    counts: Counter
    worst: DiagnosticStatus


class Bench:
    """A node under test that is reset between scripts, and what it has said."""

    def __init__(self, harness):
        self.harness = harness
        self.estimates = harness.collect()
        self.reports = harness.collect('/diagnostics', DiagnosticArray)
        self.process = harness.start(PARAMETERS)
        self.n_resets = 0
        self.player = harness.player()

    def counts(self):
        status = self.reports[-1].status[0]
        return Counter({v.key: int(v.value) for v in status.values if v.value.isdigit()})

    def run(self, samples, player=None):
        """Reset, play without a pause, and wait until the last message is accounted for."""
        assert self.harness.call(Trigger, '/seqmem/reset').success
        self.n_resets += 1
        # A report from before may come after the answer.
        assert self.harness.spin_until(
            lambda: self.reports and self.counts()['reset_requested'] == self.n_resets
        )
        before = self.counts()
        self.estimates.clear()
        self.reports.clear()
        self.harness.play(player or self.player, samples, rate=float('inf'))
        wanted = before['received'] + len(samples)
        done = self.harness.spin_until(
            lambda: self.reports and self.counts()['received'] == wanted
        )
        assert done, self.reports[-1:]
        new = self.counts()
        new.subtract(before)
        told = Counter({
            key: n for key, n in new.items()
            if n and key.startswith(('drop_', 'value_', 'reset_', 'estimated', 'filling'))
        })  # fmt: skip
        assert self.harness.spin_until(lambda: len(self.estimates) == new['published'])
        worst = max((r.status[0] for r in self.reports), key=lambda s: s.level)
        return Outcome(list(self.estimates), told, worst)

    def set(self, name, value):
        answer = self.try_to_set(name, value)
        assert answer.successful, answer.reason

    def try_to_set(self, name, value):
        request = [Parameter(name, value=value).to_parameter_msg()]
        answer = self.harness.call(SetParameters, '/seqmem/set_parameters', parameters=request)
        return answer.results[0]


@pytest.fixture(scope='module')
def bench():
    domain = Domain()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment_on_this_machine(domain.number).items():
            patch.setenv(name, value)
        harness = Harness(domain.number)
        try:
            yield Bench(harness)
        finally:
            harness.close()
            domain.release()


def script(n, names=('a', 'b'), start=0):
    """Move each joint at a speed of its own: 1, 2, ... rad/s."""
    speeds = 1.0 + np.arange(len(names))
    return [
        JointSample(START_NS + k * PERIOD_NS, tuple(names), speeds * k * PERIOD_NS / 1e9)
        for k in range(start, start + n)
    ]


def changed(sample, **fields):
    plain = {name: getattr(sample, name) for name in JointSample._fields}
    return JointSample(**plain | fields)


def test_joints_are_matched_by_name_when_the_list_changes(bench):
    samples = script(12)
    for k in (3, 6, 7, 9):
        s = samples[k]
        names, position = ('b', 'new', 'a'), [s.position[1], 0.0, s.position[0]]
        samples[k] = changed(s, names=names, position=np.array(position))
    out = bench.run(samples)
    assert len(out.estimates) == 8
    for message in out.estimates:
        velocity = dict(zip(message.name, message.velocity))
        assert velocity['a'] == pytest.approx(1.0)
        assert velocity['b'] == pytest.approx(2.0)
    assert out.counts == Counter(filling=4, estimated=8)


def test_lengths_that_do_not_fit_and_fields_that_lack(bench):
    samples = script(14)
    zero, one = np.empty(0), np.array([1.0])
    samples[6] = changed(samples[6], position=one)
    samples[7] = changed(samples[7], effort=one)
    samples[8] = changed(samples[8], position=zero, velocity=np.array([1.0, 2.0]))
    samples[9] = changed(samples[9], names=(), position=zero)
    samples[10] = changed(samples[10], names=('a', 'a'))
    samples[11] = changed(samples[11], velocity=np.full(2, np.nan), effort=np.full(2, np.inf))
    out = bench.run(samples)
    assert out.counts == Counter(
        drop_length_mismatch=2, drop_no_position=2, drop_duplicate_names=1, filling=4,
        estimated=5,
    )  # fmt: skip
    # The memory was left as it was: the speeds are those over the time that passed.
    assert [m.velocity.tolist() for m in out.estimates] == [pytest.approx([1.0, 2.0])] * 5
    assert out.worst.level == DiagnosticStatus.WARN
    assert bench.process.output().count('drop_length_mismatch: ') == 1


def test_bytes_that_are_no_joint_state_are_counted_and_nothing_else(bench):
    samples = script(8)
    halves = samples[:6], samples[6:]
    bench.run(halves[0])
    bench.reports.clear()
    assert bench.harness.spin_until(lambda: bench.reports)
    before = bench.counts()
    bench.estimates.clear()
    whole = serialize_message(message_from_sample(samples[6]))
    for data in (whole[:30], b'\0\1\0\0' + 40 * b'\xff'):
        bench.player._publisher.publish(data)
    bench.harness.play(bench.player, halves[1], rate=float('inf'))
    wanted = before['received'] + 4
    assert bench.harness.spin_until(lambda: bench.counts()['received'] == wanted)
    told = bench.counts() - before
    assert (told['drop_malformed'], told['estimated']) == (2, 2)
    assert bench.harness.spin_until(lambda: len(bench.estimates) == 2)
    assert [m.velocity.tolist() for m in bench.estimates] == [pytest.approx([1.0, 2.0])] * 2
    assert bench.process.output().count('drop_malformed: expected a serialised sensor_msgs') == 1


def test_names_that_are_omitted_are_those_assumed(bench):
    nameless = [changed(s, names=()) for s in script(7)]
    nameless[6] = changed(nameless[6], position=np.zeros(3))
    out = bench.run(nameless)
    assert out.counts == Counter(drop_no_names=1, filling=4, estimated=2)
    assert [m.name for m in out.estimates] == [['x', 'y']] * 2


def test_a_value_that_is_no_number_is_held_and_then_the_joint_restarts(bench):
    samples = script(30)
    for k in (8, 15, 16, 17):
        samples[k].position[1] = [np.nan, np.inf, -np.inf][k % 3]
    out = bench.run(samples)
    with_b = [k for k in range(4, 30) if k not in (8, *range(15, 22))]
    by_stamp = {stamp: m.name for stamp, m in zip(stamps_ns(out.estimates), out.estimates)}
    assert len(by_stamp) == 26
    for k in range(4, 30):
        assert by_stamp[samples[k].stamp_ns] == (['a', 'b'] if k in with_b else ['a'])
    assert out.counts == Counter(value_non_finite=4, reset_joint=1, filling=4, estimated=26)


def test_jumps_are_rejected_and_in_the_end_believed(bench):
    samples = script(40)
    for sample in samples:
        sample.position[:] += 1.0
    samples[10].position[:] = 0.0
    for sample in samples[20:]:
        # Homed anew: a place that the arm cannot have come to.
        sample.position[0] -= 3.0
    out = bench.run(samples)
    assert out.counts == Counter(
        value_jump=2 + MAX_REJECTED, drop_all_rejected=1, reset_joint=1, filling=4, estimated=35
    )
    speeds = {name: [] for name in 'ab'}
    for message in out.estimates:
        for name, velocity in zip(message.name, message.velocity):
            speeds[name].append(velocity)
    assert speeds['a'] == [pytest.approx(1.0)] * (35 - MAX_REJECTED - 4)
    assert speeds['b'] == [pytest.approx(2.0)] * 35


def test_a_joint_may_have_a_limit_of_its_own(bench):
    try:
        bench.set('joint_max_velocity', ['b: 1.5'])
        out = bench.run(script(12))
        assert out.counts == Counter(value_jump=9, reset_joint=3, filling=4, estimated=8)
        assert {tuple(m.name) for m in out.estimates} == {('a',)}
        refused = bench.try_to_set('joint_max_velocity', ['b: fast'])
        assert not refused.successful
        assert "expected entries as 'elbow: 3.1'" in refused.reason
    finally:
        bench.set('joint_max_velocity', [''])


def test_a_joint_that_wraps_goes_the_shorter_way(bench):
    samples = script(400, ('wheel',))
    for sample in samples:
        angle = 10 * sample.position[0]
        sample.position[0] = (angle + np.pi) % (2 * np.pi) - np.pi
    out = bench.run(samples)
    assert len(out.estimates) == 396
    np.testing.assert_allclose([m.velocity[0] for m in out.estimates], 10.0)
    assert out.counts == Counter(filling=4, estimated=396)


def test_time_that_repeats_goes_back_or_leaps(bench):
    samples = script(40)
    samples.insert(20, changed(samples[19], position=samples[19].position.copy()))
    late = changed(samples[15], stamp_ns=samples[15].stamp_ns + 1)
    samples.insert(18, late)
    leap = script(10, start=1000)
    out = bench.run(samples + leap)
    assert out.counts == Counter(
        drop_duplicate_stamp=1, drop_late=1, reset_gap=1, filling=8, estimated=42
    )
    assert stamps_ns(out.estimates)[-6:] == [s.stamp_ns for s in leap[4:]]


@pytest.mark.parametrize('age_s', [3e8, -3e8])
def test_the_age_of_a_message_is_told_and_never_judged(bench, age_s):
    """Nine years old, or of as far a future; the stamp comes out as it went in."""
    now_ns = bench.harness.node.get_clock().now().nanoseconds
    samples = [
        changed(s, stamp_ns=now_ns - round(age_s * 1e9) + 7 * k) for k, s in enumerate(script(9))
    ]
    samples = [changed(s, position=np.zeros(2)) for s in samples]
    out = bench.run(samples)
    assert out.counts == Counter(filling=4, estimated=5)
    assert stamps_ns(out.estimates) == [s.stamp_ns for s in samples[4:]]
    told = [v.value for r in bench.reports for v in r.status[0].values if v.key == 'age_p50_ms']
    ages_ms = [float(value) for value in told if value != 'none']
    assert ages_ms and abs(ages_ms[0] - 1000 * age_s) < 1e6


def test_stamps_that_tremble_restart_nothing(bench):
    rng = np.random.default_rng(0)
    samples = [
        changed(s, stamp_ns=s.stamp_ns + int(rng.integers(-20, 20)) * 1_000_000)
        for s in script(100, ('c',))
    ]
    out = bench.run([changed(s, position=np.zeros(1)) for s in samples])
    assert not [key for key in out.counts if key.startswith('reset_')]
    assert out.counts['drop_late'] > 5
    assert out.counts['estimated'] > 40


def test_of_two_values_for_one_stamp_the_first_is_kept_and_it_is_an_error(bench):
    samples = script(10)
    zeros = [changed(s, position=np.zeros(2)) for s in samples]
    out = bench.run([s for pair in zip(samples, zeros) for s in pair])
    assert out.counts == Counter(
        drop_duplicate_stamp=10, value_conflict=18, filling=4, estimated=6
    )
    assert [m.velocity.tolist() for m in out.estimates] == [pytest.approx([1.0, 2.0])] * 6
    assert out.worst.level == DiagnosticStatus.ERROR
    assert out.worst.message.startswith('publishers contradict each other')
    assert 'for a; the first is kept: do two publishers send the same joints?' in (
        bench.process.output()
    )


def test_two_publishers_of_the_same_joints_are_told(bench):
    second = Player(bench.harness.node)
    try:
        second.wait_for_subscriber(idle=bench.harness.spin)

        def two_publishers():
            values = {v.key: v.value for v in bench.reports[-1].status[0].values}
            return values['publishers'] == '2'

        bench.reports.clear()
        assert bench.harness.spin_until(lambda: bench.reports and two_publishers())
        told = 'several publishers send a, b'
        before = bench.counts()['received']
        for k in range(200):
            bench.harness.play(bench.player, script(1, start=2 * k), rate=float('inf'))
            bench.harness.play(second, script(1, start=2 * k + 1), rate=float('inf'))
            # For its whole length: the reports that tell come twenty times a second.
            bench.harness.spin_until(lambda: False, 0.01)
            if any(told in r.status[0].message for r in bench.reports):
                break
        assert told in {r.status[0].message.partition(';')[0] for r in bench.reports}
        assert 'several publishers on /joint_states send the same joints: a, b' in (
            bench.process.output()
        )
        # Nothing of it may reach the node after the next reset.
        wanted = before + 2 * (k + 1)
        assert bench.harness.spin_until(lambda: bench.counts()['received'] == wanted)
    finally:
        bench.harness.node.destroy_publisher(second._publisher)


def test_limits_change_while_it_runs(bench):
    samples = script(12)
    try:
        # A whole number where a double is meant, as ros2 param set sends it.
        bench.set('max_velocity_rad_s', 1)
        bench.set('max_gap_s', 0.009)
        out = bench.run([changed(s, position=0 * s.position) for s in samples])
        assert out.counts == Counter(reset_gap=11, filling=12)
    finally:
        bench.set('max_velocity_rad_s', 20.0)
        bench.set('max_gap_s', 0.25)
    assert bench.run(samples).counts == Counter(filling=4, estimated=8)


def test_only_every_nth_estimate_is_published_on_request(bench):
    samples = script(20)
    try:
        bench.set('publish_every_n', 5)
        for _ in range(2):
            out = bench.run(samples)
            # After a reset it begins with the first again.
            assert stamps_ns(out.estimates) == [samples[k].stamp_ns for k in (4, 9, 14, 19)]
            assert out.counts == Counter(filling=4, estimated=16)
        # The memory took every message.
        assert out.estimates[1].velocity.tolist() == pytest.approx([1.0, 2.0])
        assert bench.counts()['thinned'] == 24
    finally:
        bench.set('publish_every_n', 1)


def test_made_up_names_do_not_fill_the_memory(bench):
    samples = [s for k in range(40) for s in script(1, [f'{k}_{j}' for j in range(20)], k)]
    out = bench.run(samples)
    assert out.counts['drop_too_many_joints'] == 40 - 256 // 20
    assert 'expected at most 256 different joints' in bench.process.output()
