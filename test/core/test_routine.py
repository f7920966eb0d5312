"""A routine message is judged in a short way; the rules would have said the same, bit by bit."""

import numpy as np
import pytest

from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.intake import Intake
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.routine import Routine
from seqmem_ros.core.stream import Stream

ARM = ('shoulder', 'elbow', 'wrist', 'j4')
GRIPPER = ('finger', 'thumb')
MIXED = ('wrist', 'finger')
START_NS = 10**18
OPTIONS = {
    'as they are': StreamOptions(),
    'limited': StreamOptions(
        max_velocity_rad_s=40.0, joint_max_velocity=('elbow: 15',), max_rejected=3
    ),
    'some joints': StreamOptions(joints=('wrist', 'thumb', 'shoulder')),
    'one wraps': StreamOptions(continuous_joints=('elbow',), max_gap_s=0.05),
    'stamped here': StreamOptions(zero_stamp='receive_time', clock_jump_tolerance_s=0.0),
}


class BadNowAndThen(Difference):
    """Gives a value that is not finite where the position of a row is above 3."""

    def step(self, windows, advance, state):
        outputs, state = super().step(windows, advance, state)
        return np.where(windows.position[:, -1] > 3.0, np.nan, outputs), state


def odd(rng, sample):
    """Spoil a message in one way."""
    fields = {'position': sample.position, 'velocity': sample.velocity, 'effort': sample.effort}
    stamp_ns, names = sample.stamp_ns, sample.names
    how = int(rng.integers(9))
    if how == 0:
        stamp_ns -= int(rng.choice([1, 2_000_000, 4_000_000, 10**9, 10**11]))
    elif how == 1:
        stamp_ns += int(rng.choice([60_000_000, 2 * 10**9]))
    elif how == 2:
        stamp_ns = 0
    elif how in (3, 4):
        field = ('position', 'velocity')[how - 3]
        fields[field] = fields[field].copy()
        values = [np.nan, np.inf, 2e9, 1e300, 0.9, -0.4, 3.1]
        if len(fields[field]):
            fields[field][rng.integers(len(names))] = rng.choice(values)
    elif how == 5:
        field = ('position', 'velocity', 'effort')[rng.integers(3)]
        fields[field] = fields[field][:-1]
    elif how == 6:
        order = rng.permutation(len(names))
        names = tuple(names[k] for k in order)
        fields = {key: values[order] for key, values in fields.items() if len(values)}
    elif how == 7:
        names = (*names[:-1], names[0])
    else:
        names = (*names[:-1], f'new {rng.integers(20)}')
    return JointSample(stamp_ns, names, **fields)


def script(seed, n=400):
    """Two publishers on one topic, in good order but for one message in fifteen."""
    rng = np.random.default_rng(seed)
    stamp_ns, turn = START_NS, rng.integers(0, 2, n)
    for k in range(n):
        names = ARM if turn[k] else GRIPPER
        if rng.random() < 0.02:
            names = MIXED
        stamp_ns += int(rng.integers(1_000_000, 3_000_000))
        phase = np.array([sum(map(ord, name)) for name in names])
        position = 0.3 * np.sin(1e-9 * (stamp_ns - START_NS) + phase)
        velocity = np.cos(phase + k) if rng.random() < 0.9 else np.empty(0)
        sample = JointSample(stamp_ns, names, position, velocity)
        if rng.random() < 1 / 15:
            sample = odd(rng, sample)
            if sample.stamp_ns > stamp_ns:
                stamp_ns = sample.stamp_ns
        receive_ns = None if rng.random() < 0.02 else stamp_ns + int(rng.integers(10**6))
        yield sample, receive_ns


def play(estimator, options, seed):
    stream, said = Stream(estimator, options), []
    for k, (sample, receive_ns) in enumerate(script(seed)):
        if k == 150:
            stream.change(options)
        estimate = stream.push(sample, receive_ns)
        said.append((estimate, dict(stream.counts), stream.last_event, stream.starts))
    return said


def same(one, other):
    if one is None or other is None:
        return one is other
    arrays = all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ('position', 'velocity', 'scores')
        if getattr(one, name) is not None
    )
    rest = ('stamp_ns', 'names', 'labels')
    return arrays and all(getattr(one, name) == getattr(other, name) for name in rest)


@pytest.mark.parametrize('options', OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize('name', ['kalman', 'bad', 'gru', 'labels', 'fields'])
def test_both_ways_say_the_same(name, options, make_model, monkeypatch):
    estimator = {
        'kalman': Kalman, 'bad': BadNowAndThen,
        'gru': lambda: NetworkEstimator(make_model('gru')),
        'labels': lambda: NetworkEstimator(make_model('label')),
        'fields': lambda: NetworkEstimator(make_model('measured')),
    }[name]()  # fmt: skip
    judge, elapsed_s, routine, timed = Intake.routine, Routine.elapsed_s, [0], [0]

    def counted(*arguments):
        found = judge(*arguments)
        routine[0] += found is not None
        return found

    def counted_times(*arguments):
        known = elapsed_s(*arguments)
        timed[0] += known is not None
        return known

    monkeypatch.setattr(Routine, 'elapsed_s', counted_times)

    for seed in range(4):
        monkeypatch.setattr(Intake, 'routine', counted)
        short = play(estimator, options, seed)
        monkeypatch.setattr(Intake, 'routine', lambda *_: None)
        long = play(estimator, options, seed)
        for k, ((one, *rest), (other, *expected)) in enumerate(zip(short, long)):
            assert same(one, other), k
            assert rest == expected, k
    if not options.continuous_joints and name != 'bad':
        # Of 1600: the short way is a way that is taken, that of times, too.
        assert routine[0] > 400
        assert timed[0] > 100


def test_joints_in_one_message_alone_or_with_others_are_never_mixed_up(monkeypatch):
    """Two kinds of messages share a joint: neither may rest on the other's stamps."""
    stream = Stream(Difference())
    for k in range(40):
        names = ARM if k % 2 else MIXED
        position = np.full(len(names), 0.01 * k)
        estimate = stream.push(JointSample(START_NS + 10_000_000 * k, names, position))
        if k > 20:
            at = names.index('wrist')
            assert estimate.velocity[at] == pytest.approx(1.0)
            other = (at + 1) % len(names)
            assert estimate.velocity[other] == pytest.approx(1.0)


def test_a_stamp_of_zero_is_never_routine():
    stream = Stream(Difference())
    for k in range(-20, 3):
        stream.push(JointSample(10_000_000 * k, ARM, np.zeros(4)))
    assert stream.counts['drop_zero_stamp'] == 1


def test_messages_that_are_dropped_leave_other_joints_routine(monkeypatch):
    stream, found = Stream(Difference()), []
    judge = Intake.routine
    monkeypatch.setattr(
        Intake, 'routine', lambda *arguments: found.append(judge(*arguments)) or found[-1]
    )
    for k in range(40):
        stream.push(JointSample(START_NS + 10_000_000 * k, ARM, np.zeros(4)))
        stream.push(JointSample(START_NS, GRIPPER, np.zeros(2)))
        stream.push(JointSample(START_NS, ARM, np.zeros(3)))
    assert stream.counts['drop_length_mismatch'] == 40
    assert stream.counts['drop_duplicate_stamp'] == 39
    assert sum(each is not None for each in found) == 34
