"""What leaves no trace in a stream: what is refused, growth, a warm-up, and whatever comes."""

from arm_streams import FILTERS
from arm_streams import identity_holds
from arm_streams import NAMES
from arm_streams import STEP_S
from arm_streams import values_of
import numpy as np
import pytest

from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream


def refused_samples(make_sample):
    """Messages that the rules refuse while a stream runs at 10 s."""
    good = make_sample(10.0, [0.1, 0.2, 0.3])
    return {
        'drop_length_mismatch': make_sample(10.0, [0.1]),
        'drop_duplicate_names': make_sample(10.0, [1, 2, 3], ['shoulder', 'elbow', 'elbow']),
        'drop_no_names': JointSample(good.stamp_ns, (), good.position),
        'drop_no_position': JointSample(good.stamp_ns, NAMES),
        'drop_zero_stamp': JointSample(0, NAMES, good.position),
        'drop_duplicate_stamp': make_sample(9.99, [9, 9, 9]),
        'drop_late': make_sample(9.95, [9, 9, 9]),
        'drop_all_rejected': make_sample(10.0, [np.nan] * 3),
    }


@pytest.mark.parametrize('key', refused_samples(lambda *args: JointSample(1, (), np.empty(0))))
@pytest.mark.parametrize('name', ['lowpass', 'gru', 'named'])
def test_a_message_that_is_refused_leaves_no_trace(key, name, make_estimator, arm_at, make_sample):
    estimator = make_estimator(name)
    plain, disturbed = Stream(estimator), Stream(estimator)
    for i in range(960, 1020):
        if i == 1000:
            refused = refused_samples(make_sample)[key]
            if name == 'named':
                refused = JointSample(
                    refused.stamp_ns, refused.names, refused.position, effort=refused.position
                )
            assert disturbed.push(refused) is None
            assert disturbed.counts[key] == 1
            assert disturbed.last_event != ''
        assert values_of(disturbed.push(arm_at(i))) == values_of(plain.push(arm_at(i)))
    assert identity_holds(disturbed.counts)
    assert not [k for k in disturbed.counts if k.startswith('reset')]


@pytest.mark.parametrize('name', ['kalman', 'gru', 'attention', 'named', 'window'])
def test_warming_up_leaves_no_trace(name, make_estimator, arm_at):
    estimator = make_estimator(name)
    cold, warm = Stream(estimator), Stream(estimator)
    warm.warm_up()
    for i in range(20):
        if i == 10:
            warm.warm_up(30)
        assert values_of(warm.push(arm_at(i))) == values_of(cold.push(arm_at(i)))
    assert warm.counts == cold.counts


@pytest.mark.parametrize('name', FILTERS)
def test_growth_leaves_the_estimates_of_filters_as_they_were(name, make_estimator, arm_at):
    plain, growing = Stream(make_estimator(name)), Stream(make_estimator(name))
    for i in range(60):
        if i in (10, 20, 30):
            more = tuple(f'finger_{k}' for k in range(i))
            growing.push(JointSample(arm_at(i).stamp_ns, more, np.full(i, 0.5)))
        assert values_of(growing.push(arm_at(i))) == values_of(plain.push(arm_at(i)))


def test_late_joints_of_a_grown_memory_are_still_counted_in_a_row(make_sample):
    stream = Stream(Difference(), StreamOptions(max_rejected=3))
    stream.push(make_sample(50, [0.0], ['a']), 1)
    out = []
    for i in range(4):
        out.append(stream.push(make_sample(10 + STEP_S * i, [0.0], ['a']), 2 + i))
        stream.push(make_sample(50, np.zeros(20), [f'f{i}_{k}' for k in range(20)]), 2 + i)
    assert stream.counts['drop_late'] == 3
    assert stream.counts['reset_time_backwards'] == 1


def test_the_clock_of_the_receiver_stamps_what_has_no_stamp():
    stream = Stream(Difference(), StreamOptions(zero_stamp='receive_time'))
    for i in range(6):
        estimate = stream.push(JointSample(0, ('a',), np.array([0.1 * i])), (i + 1) * 10**7)
    assert estimate.stamp_ns == 6 * 10**7
    assert estimate.velocity[0] == pytest.approx(10.0)
    assert stream.push(JointSample(0, ('a',), np.array([0.1]))) is None
    assert stream.counts['drop_zero_stamp'] == 1


def test_names_may_be_assumed():
    stream = Stream(Difference(), StreamOptions(assume_joint_order=('a', 'b')))
    for i in range(6):
        estimate = stream.push(JointSample(10**9 + i * 10**7, (), np.array([0.1 * i, 0.0])))
    assert values_of(estimate) == (('a', 'b'), pytest.approx([10.0, 0.0]))


def test_only_the_joints_asked_for_are_estimated(make_sample, quantised_motion):
    stream, whole = Stream(Kalman(), StreamOptions(joints=('wrist', 'elbow'))), Stream(Kalman())
    for i in range(10):
        sample = make_sample(STEP_S * i, quantised_motion(STEP_S * i))
        got, expected = stream.push(sample), whole.push(sample)
    assert got.names == ('elbow', 'wrist')
    np.testing.assert_array_equal(got.velocity, expected.velocity[1:])
    np.testing.assert_array_equal(got.position, sample.position[1:])


def wild_sample(rng, now_ns, most_names):
    """Draw a message of any content that the type allows."""
    n = int(rng.choice([0, 1, 2, 3, 7, 12]))
    names = [f'j{k}' for k in rng.integers(0, rng.choice([3, most_names]), n)]
    if rng.random() < 0.8:
        names = list(dict.fromkeys(names))
    fields = []
    for absent in (0.05, 0.5, 0.5):
        length = 0 if rng.random() < absent else len(names)
        length = max(0, length + int(rng.choice([-1, 0, 1], p=[0.02, 0.96, 0.02])))
        values = rng.standard_normal(length) * 10.0 ** rng.integers(-12, 10)
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e308, 9.9e8, -9.9e8, 1e8]
        wild = rng.random(length) < rng.choice([0.0, 0.3])
        fields.append(np.where(wild, rng.choice(special, length), values))
    if rng.random() < 0.05:
        names = []
    step_ns = int(rng.choice([0, 1, 10**6, 10**7, 3 * 10**8, -1, -(10**6), -(10**9), -(10**15)]))
    stamp_ns = now_ns + step_ns
    if rng.random() < 0.02:
        stamp_ns = int(rng.choice([0, 1, -1, -(2**31) * 10**9, (2**31 - 1) * 10**9 + 2**32 - 1]))
    return JointSample(stamp_ns, tuple(names), *fields)


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('name', [*FILTERS, 'gru', 'label'])
def test_whatever_comes_is_counted_once_and_nothing_but_finite_values_leave(name, make_estimator):
    rng = np.random.default_rng(7)
    options = StreamOptions(
        max_gap_s=float(rng.choice([0.5, 1e300])), zero_stamp='receive_time',
        assume_joint_order=('j1', 'j2'), continuous_joints=('j1', 'j5'),
        max_velocity_rad_s=1e6, max_rejected=2,
    )  # fmt: skip
    stream = Stream(make_estimator(name), options)
    now_ns = 10**18
    # Every doubling of the rows compiles a network anew.
    n, most_names = (1500, 300) if name in FILTERS else (400, 14)
    for i in range(n):
        now_ns += int(rng.integers(0, 2 * 10**7))
        sample = wild_sample(rng, now_ns, most_names)
        receive_ns = None if rng.random() < 0.3 else now_ns - int(rng.choice([0, 10**10]))
        before = stream.counts.copy()
        estimate = stream.push(sample, receive_ns)
        assert stream.counts['received'] == i + 1
        assert identity_holds(stream.counts)
        assert (estimate is not None) == (stream.counts['estimated'] > before['estimated'])
        if estimate is None:
            continue
        names = sample.names or ('j1', 'j2')
        where = [names.index(joint) for joint in estimate.names]
        assert where == sorted(where)
        assert estimate.stamp_ns == (sample.stamp_ns or receive_ns)
        np.testing.assert_array_equal(estimate.position, sample.position[where])
        values = estimate.velocity if estimate.scores is None else estimate.scores
        assert values.dtype == np.float64
        assert values.shape[0] == len(where)
        assert np.isfinite(values).all()
    expected = {
        'drop_length_mismatch', 'drop_no_position', 'drop_duplicate_names', 'drop_no_names',
        'drop_late', 'drop_all_rejected', 'value_non_finite', 'value_jump', 'reset_joint',
        'reset_time_backwards', 'estimated', 'filling',
    }  # fmt: skip
    assert not [key for key in expected if stream.counts[key] == 0]


def test_each_kind_of_event_keeps_its_own_sentence(make_sample):
    stream = Stream(Kalman())
    stream.push(make_sample(1.0, [0.0, 0.0, 0.0]))
    stream.push(make_sample(1.0, [0.0, 0.0, 0.0]))
    stream.push(make_sample(1.01, [0.0, np.nan, 0.0]))
    stream.push(make_sample(9.0, [0.0, 0.0, 0.0]))
    assert stream.events['drop_duplicate_stamp'].endswith('came a second time')
    assert stream.events['value_non_finite'].endswith('for elbow')
    assert (
        stream.events['reset_gap']
        == stream.last_event
        == ('a gap of 8.000 s, above max_gap_s 0.25')
    )
