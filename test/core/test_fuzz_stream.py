"""
Whatever a JointState can hold: no exception, nothing but finite numbers out, all of it counted.

SEQMEM_FUZZ=whole tries 100,000 messages instead of a part of them.
"""

from collections import Counter
import time
from types import SimpleNamespace

from fuzz_counts import count
import numpy as np
import pytest

from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import sample_from_message
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream

NAMES = ('shoulder', 'elbow', 'wrist', 'j4', 'j5', 'j6', 'j7')
ODD_NAMES = ('', ' ', 'shoulder ', 'é', '\n', 'x' * 5000, '/', 'NaN')
ODD_VALUES = (
    np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e308, -1e308, 1e9, -1e9, 9.99e8, 1e39, np.pi,
)  # fmt: skip
ODD_STAMPS = (
    (0, 0), (0, 1), (-1, 0), (2**31 - 1, 999_999_999), (-(2**31), 0), (5, 2**32 - 1), (1, 10**9),
)  # fmt: skip
OPTIONS = (
    StreamOptions(),
    StreamOptions(max_velocity_rad_s=30.0, max_rejected=1, max_merge_age_s=0.02),
    StreamOptions(
        zero_stamp='receive_time', assume_joint_order=NAMES[:3], continuous_joints=NAMES[:2],
        clock_jump_tolerance_s=0.0, max_gap_s=0.02, max_merge_age_s=0.0,
    ),
    StreamOptions(joints=NAMES[1:3], max_gap_s=1e300, max_rejected=10**6),
)  # fmt: skip


class Messages:
    """A plausible source whose messages are spoilt in every way that the type allows."""

    def __init__(self, seed, names=NAMES, odd_names=True):
        self.rng = np.random.default_rng(seed)
        self.names, self.odd_names = names, odd_names
        self.now_ns = 10**18
        self.position = np.zeros(len(names))

    def __next__(self):
        rng = self.rng
        self.now_ns += int(rng.integers(1, 20_000_000))
        self.position += rng.normal(0.0, 0.02, len(self.position))
        n = int(rng.integers(1, len(self.names) + 1)) if rng.random() < 0.4 else len(self.names)
        at = rng.permutation(len(self.names))[:n]
        names = [self.names[k] for k in at]
        fields = [self.position[at], rng.normal(size=n), rng.normal(size=n)]
        for _ in range(int(rng.choice(4, p=[0.4, 0.3, 0.2, 0.1]))):
            self._spoil(names, fields, int(rng.integers(7)))
        sec, nanosec = divmod(self.now_ns, 10**9)
        stamp = (sec, nanosec)
        chance = rng.random()
        if chance < 0.02:
            stamp = ODD_STAMPS[rng.integers(len(ODD_STAMPS))]
        elif chance < 0.1:
            back_ns = int(rng.choice([1, 10**6, 10**7, 10**8, 10**9, 10**12]))
            stamp = divmod(self.now_ns - back_ns, 10**9)
        elif chance < 0.12:
            # Time itself goes on from there.
            self.now_ns += int(rng.choice([-(10**10), -(10**8), 10**9, 10**15]))
        return SimpleNamespace(
            header=SimpleNamespace(stamp=SimpleNamespace(sec=stamp[0], nanosec=stamp[1])),
            name=names, position=fields[0], velocity=fields[1], effort=fields[2],
        )  # fmt: skip

    def _spoil(self, names, fields, how):
        rng = self.rng
        which = int(rng.integers(3))
        if how <= 1 and len(fields[which]):
            value = ODD_VALUES[rng.integers(len(ODD_VALUES))]
            fields[which] = fields[which].copy()
            fields[which][rng.integers(len(fields[which]))] = value
        elif how == 2:
            fields[which] = fields[which][: rng.integers(0, len(fields[which]) + 1)]
        elif how == 3:
            fields[which] = np.concatenate([fields[which], rng.normal(size=2)])
        elif how == 4 and names:
            names.append(names[0])
        elif how == 5:
            names.clear()
        elif names and self.odd_names:
            made_up = f'made_up_{rng.integers(500)}'
            odd = ODD_NAMES[rng.integers(len(ODD_NAMES))] if rng.random() < 0.5 else made_up
            names[rng.integers(len(names))] = odd

    def receive_ns(self):
        chance = self.rng.random()
        return None if chance < 0.1 else self.now_ns - (10**9 if chance < 0.15 else 0)


def check(stream, stamps_ns, estimate, before):
    counts = stream.counts
    dropped = sum(n for key, n in counts.items() if key.startswith('drop_'))
    taken = counts['estimated'] + counts['filling'] + counts['merging']
    assert counts['received'] == taken + dropped == before + 1
    if estimate is None:
        assert '\n' not in stream.last_event
        assert len(stream.last_event) < 3000
        return
    assert estimate.stamp_ns in stamps_ns
    values = estimate.velocity if estimate.scores is None else estimate.scores
    assert np.isfinite(values).all()
    assert np.isfinite(estimate.position).all()
    assert len(set(estimate.names)) == len(estimate.names) == len(estimate.position)
    assert len(estimate.names) == len(values) or estimate.scores is not None


def fuzz(stream, messages, n):
    slowest_s = 0.0
    stamps_ns = set()
    for _ in range(n):
        sample = sample_from_message(next(messages))
        receive_ns = messages.receive_ns()
        before, start_s = stream.counts['received'], time.process_time()
        estimate = stream.push(sample, receive_ns)
        slowest_s = max(slowest_s, time.process_time() - start_s)
        # A merged vector has the stamp of its newest part, which may have come before.
        if not stream.estimator.joints:
            stamps_ns.clear()
        stamps_ns |= {sample.stamp_ns, receive_ns}
        check(stream, stamps_ns, estimate, before)
    # Not a measurement: whatever hangs takes longer.
    assert slowest_s < 30


def is_as_new(stream, names=NAMES[:3]):
    """After a reset nothing is left of all that came."""
    stream.reset()
    fresh = Stream(stream.estimator, stream.options)
    for k in range(12):
        position = np.sin(0.1 * k + np.arange(len(names)))
        sample = JointSample(5 * 10**17 + k * 10**7, names, position, position, position)
        got, expected = stream.push(sample), fresh.push(sample)
        assert (got is None) == (expected is None)
        if got is not None:
            values = [e.velocity if e.scores is None else e.scores for e in (got, expected)]
            np.testing.assert_array_equal(*values)
    return fresh.counts['estimated'] > 0


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('seed', range(len(OPTIONS)))
@pytest.mark.parametrize('make', [Difference, Kalman])
def test_filters(make, seed):
    stream = Stream(make(), OPTIONS[seed])
    fuzz(stream, Messages(seed), count(11_000, 800))
    assert is_as_new(stream)
    assert stream.counts['estimated'] > 50
    kinds = {key for key in stream.counts if key.startswith(('drop_', 'value_', 'reset_'))}
    assert len(kinds) > 7, kinds


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('name', ['gru', 'label', 'named', 'arm_label'])
@pytest.mark.parametrize('seed', [0, 1])
def test_networks(name, seed, make_model, programs):
    if name not in programs:
        programs[name] = NetworkEstimator(make_model(name))
    whole_arm = name in ('named', 'arm_label')
    stream = Stream(programs[name], OPTIONS[seed])
    # A network is compiled anew for every doubling of the joints: not many made-up names here.
    messages = Messages(seed, NAMES[:3] if whole_arm else NAMES, odd_names=whole_arm)
    fuzz(stream, messages, count(1500, 300))
    assert is_as_new(stream)
    assert stream.counts['estimated'] > 10


class ArmDifference(Difference):
    """Wants a vector of three joints, of which messages may bring some each."""

    joints = NAMES[:3]


def parts_of_an_arm(seed, n=150):
    """Messages of some joints each, from sources that start over now and then."""
    rng = np.random.default_rng(seed)
    stamp_ns, received_ns = 10**12, 10**15
    for _ in range(n):
        jump_ns = int(rng.choice([0, -1, 10**8, 10**9, -(10**9), -(10**12), 3 * 10**8]))
        stamp_ns += jump_ns if rng.random() < 0.2 else 5_000_000
        received_ns += 5_000_000 if rng.random() < 0.95 else -(10**9)
        names = rng.permutation(NAMES[:3])[: rng.integers(1, 4)].tolist()
        position = rng.normal(size=len(names))
        if rng.random() < 0.05:
            position[0] = np.nan
        sample = JointSample(stamp_ns, tuple(names), position)
        yield sample, received_ns if rng.random() < 0.9 else None


@pytest.mark.filterwarnings('error')
def test_an_arm_that_comes_in_parts():
    totals = Counter()
    for seed in range(count(1000, 60)):
        stream, stamps_ns = Stream(ArmDifference()), set()
        for sample, receive_ns in parts_of_an_arm(seed):
            before = stream.counts['received']
            estimate = stream.push(sample, receive_ns)
            stamps_ns |= {sample.stamp_ns, receive_ns}
            check(stream, stamps_ns, estimate, before)
        totals.update(stream.counts)
    assert min(totals[key] for key in ('estimated', 'merging', 'reset_time_backwards')) > 100


@pytest.fixture(scope='module')
def programs():
    return {}


def test_out_of_hypothesis():
    """Lists of messages that somebody else thinks up, and makes small where they fail."""
    hypothesis = pytest.importorskip('hypothesis', reason='hypothesis is not installed')
    st = pytest.importorskip('hypothesis.strategies')

    field = st.lists(st.floats(width=64), max_size=4)
    names = st.lists(st.sampled_from([*NAMES[:3], '']) | st.text(max_size=3), max_size=4)
    stamp = st.integers(-(2**62), 2**62) | st.integers(-3, 40).map(lambda k: 10**18 + k * 10**7)
    message = st.tuples(stamp, names, field, field, field, st.none() | stamp)
    options = st.builds(
        StreamOptions,
        joints=st.sampled_from([(), NAMES[:2]]),
        max_gap_s=st.floats(1e-6, 1e3),
        zero_stamp=st.sampled_from(['reject', 'receive_time']),
        assume_joint_order=st.sampled_from([(), NAMES[:3]]),
        continuous_joints=st.sampled_from([(), NAMES[:1]]),
        max_velocity_rad_s=st.floats(0.0, 1e3),
        max_rejected=st.integers(1, 4),
        clock_jump_tolerance_s=st.floats(0.0, 10.0),
    )
    totals = Counter()

    @hypothesis.settings(max_examples=count(1000, 60), deadline=None, derandomize=True,
                         database=None)  # fmt: skip
    @hypothesis.given(options, st.lists(message, max_size=40))
    def whatever(options, script):
        stream = Stream(Difference(), options)
        for stamp_ns, joint_names, position, velocity, effort, receive_ns in script:
            sample = JointSample(
                stamp_ns, tuple(joint_names), np.array(position), np.array(velocity),
                np.array(effort),
            )  # fmt: skip
            before = stream.counts['received']
            estimate = stream.push(sample, receive_ns)
            check(stream, (stamp_ns, receive_ns), estimate, before)
        totals.update(stream.counts)

    whatever()
    assert totals['received'] > 100
