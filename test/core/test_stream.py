"""The rules between a sample and an estimate, and the memory that they guard."""

import numpy as np
import pytest

from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.filters import LowPass
from seqmem_ros.core.joint_map import MOST_JOINTS
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream

STEP_S = 0.01


# An estimator holds no memory, so that all tests may share one, and its compiled programs.
ESTIMATORS = {'kalman': Kalman()}


@pytest.fixture(params=['kalman', 'gru', 'attention'])
def estimator(request, make_model):
    """Estimators whose memory goes back to their start."""
    name = request.param
    if name not in ESTIMATORS:
        ESTIMATORS[name] = NetworkEstimator(make_model(name))
    return ESTIMATORS[name]


def feed(stream, make_sample, motion, times_s, **options):
    """Push one sample for each time and return what came out."""
    return [stream.push(make_sample(t, motion(t), **options)) for t in times_s]


def velocities(estimates):
    """Stack the velocities of estimates that all are there."""
    return np.stack([estimate.velocity for estimate in estimates])


def identity_holds(counts):
    """Every message is counted once."""
    dropped = sum(count for key, count in counts.items() if key.startswith('drop_'))
    return counts['received'] == counts['estimated'] + counts['filling'] + dropped


def test_nothing_before_the_window_is_full(estimator, make_sample, quantised_motion):
    stream = Stream(estimator)
    out = feed(stream, make_sample, quantised_motion, STEP_S * np.arange(7))
    assert [estimate is None for estimate in out] == [True] * 4 + [False] * 3
    assert stream.counts == {'received': 7, 'filling': 4, 'estimated': 3}


def test_an_estimate_carries_stamp_names_and_positions_of_its_sample(make_sample):
    stream = Stream(Difference())
    samples = [make_sample(STEP_S * i, [0.1 * i, -0.2 * i, 3.0]) for i in range(6)]
    estimate = [stream.push(sample) for sample in samples][-1]
    assert estimate.stamp_ns == samples[-1].stamp_ns
    assert estimate.names == samples[-1].names
    np.testing.assert_array_equal(estimate.position, samples[-1].position)
    np.testing.assert_allclose(estimate.velocity, [10.0, -20.0, 0.0], atol=1e-9)


def test_the_order_of_joints_in_a_message_does_not_matter(
    estimator, make_sample, quantised_motion
):
    plain, shuffled = Stream(estimator), Stream(estimator)
    names = ('shoulder', 'elbow', 'wrist')
    for i in range(20):
        position = quantised_motion(STEP_S * i)
        # The first message fixes the rows; from then on names change places.
        order = [0, 1, 2] if i == 0 else np.random.default_rng(i).permutation(3)
        one = plain.push(make_sample(STEP_S * i, position))
        other = shuffled.push(make_sample(STEP_S * i, position[order], [names[k] for k in order]))
        if one is not None:
            assert other.names == tuple(names[k] for k in order)
            np.testing.assert_array_equal(one.velocity[order], other.velocity)


def test_a_subset_advances_only_its_joints(estimator, make_sample, quantised_motion):
    together, apart = Stream(estimator), Stream(estimator)
    for i in range(30):
        t = STEP_S * i
        position = quantised_motion(t)
        whole = together.push(make_sample(t, position))
        arm = apart.push(make_sample(t, position[:2], ('shoulder', 'elbow')))
        hand = apart.push(make_sample(t + 0.002, position[2:], ('wrist',)))
    np.testing.assert_array_equal(whole.velocity[:2], arm.velocity)
    assert (arm.names, hand.names) == (('shoulder', 'elbow'), ('wrist',))
    assert apart.counts['estimated'] == 52


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf, 1e300])
def test_a_value_that_is_not_finite_touches_no_other_joint(
    estimator, bad, make_sample, quantised_motion
):
    clean, dirty = Stream(estimator), Stream(estimator)
    for i in range(30):
        position = quantised_motion(STEP_S * i)
        expected = clean.push(make_sample(STEP_S * i, position))
        if i in (10, 11, 20):
            position[1] = bad
        estimate = dirty.push(make_sample(STEP_S * i, position))
        if i in (10, 11, 20):
            assert estimate.names == ('shoulder', 'wrist')
        if estimate is not None:
            assert np.isfinite(estimate.velocity).all()
            others = [estimate.names.index(name) for name in ('shoulder', 'wrist')]
            np.testing.assert_array_equal(estimate.velocity[others], expected.velocity[[0, 2]])
    assert dirty.counts['value_non_finite'] == 3
    assert dirty.counts['reset_joint'] == 0


def test_a_joint_without_finite_values_for_long_starts_again(make_sample):
    stream = Stream(LowPass(), StreamOptions(max_rejected=3))
    for i in range(20):
        position = [0.01 * i, np.nan if 8 <= i < 12 else 0.02 * i, 0.0]
        estimate = stream.push(make_sample(STEP_S * i, position))
        # Three in a row, then five samples until the window is full again.
        has_elbow = estimate is not None and 'elbow' in estimate.names
        assert has_elbow == (4 <= i < 8 or i >= 16)
    assert stream.counts['reset_joint'] == 1


def test_fields_that_are_not_used_may_hold_anything(make_sample, quantised_motion):
    plain, odd = Stream(Kalman()), Stream(Kalman())
    for i in range(12):
        position = quantised_motion(STEP_S * i)
        expected = plain.push(make_sample(STEP_S * i, position))
        got = odd.push(
            make_sample(STEP_S * i, position, velocity=[np.nan] * 3, effort=[1e300] * 3)
        )
    np.testing.assert_array_equal(expected.velocity, got.velocity)


def test_reset_leaves_it_as_new(estimator, make_sample, quantised_motion):
    used, fresh = Stream(estimator), Stream(estimator)
    feed(used, make_sample, lambda t: 3 + t * np.array([5.0, -1.0, 0.3]), STEP_S * np.arange(40))
    used.reset()
    times_s = 1.0 + STEP_S * np.arange(25)
    after = feed(used, make_sample, quantised_motion, times_s)
    expected = feed(fresh, make_sample, quantised_motion, times_s)
    assert [a is None for a in after] == [e is None for e in expected]
    np.testing.assert_array_equal(velocities(after[4:]), velocities(expected[4:]))
    assert used.counts['reset_requested'] == 1
    assert used.last_event == 'all memory was reset (requested)'


def test_a_recording_that_starts_over_leaves_it_as_new(estimator, make_sample, quantised_motion):
    looping, fresh = Stream(estimator), Stream(estimator)
    times_s = STEP_S * np.arange(30)
    feed(looping, make_sample, quantised_motion, times_s)
    second = feed(looping, make_sample, quantised_motion, times_s)
    expected = feed(fresh, make_sample, quantised_motion, times_s)
    np.testing.assert_array_equal(velocities(second[4:]), velocities(expected[4:]))
    assert looping.counts['reset_time_backwards'] == 1
    assert second[:4] == [None] * 4
    assert looping.last_event == 'stamps went back by 0.290 s'


def test_a_gap_starts_again(estimator, make_sample, quantised_motion):
    stream, fresh = Stream(estimator), Stream(estimator)
    feed(stream, make_sample, quantised_motion, STEP_S * np.arange(10))
    late_s = 1.0 + STEP_S * np.arange(10)
    after = feed(stream, make_sample, quantised_motion, late_s)
    expected = feed(fresh, make_sample, quantised_motion, late_s)
    assert after[:4] == [None] * 4
    np.testing.assert_array_equal(velocities(after[4:]), velocities(expected[4:]))
    assert stream.counts['reset_gap'] == 1
    assert stream.last_event == 'a gap of 0.910 s, above max_gap_s 0.25'


def test_a_jump_is_rejected_and_in_the_end_believed(make_sample):
    stream = Stream(Difference(), StreamOptions(max_velocity_rad_s=5.0, max_rejected=3))
    position = [0.01 * i for i in range(10)] + [0.0] + [0.01 * i for i in range(11, 15)]
    out = [stream.push(make_sample(STEP_S * i, [p], ['a'])) for i, p in enumerate(position)]
    # One glitch to zero is left out and leaves no trace.
    assert out[10] is None
    assert stream.counts['value_jump'] == stream.counts['drop_all_rejected'] == 1
    assert [out[i].velocity[0] for i in (9, 11, 14)] == pytest.approx([1.0, 1.0, 1.0])
    # A new zero is believed after three values, and the window fills again.
    out = [stream.push(make_sample(STEP_S * i, [2.0], ['a'])) for i in range(15, 25)]
    assert [estimate is None for estimate in out] == [True] * 7 + [False] * 3
    assert [estimate.velocity[0] for estimate in out[7:]] == [0.0] * 3
    assert stream.counts['reset_joint'] == 1


def test_a_joint_that_wraps_goes_on_for_many_turns(make_sample):
    stream = Stream(Difference(), StreamOptions(continuous_joints=('a',)))
    for i in range(2000):
        angle = 0.2 * i  # over sixty turns
        wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
        estimate = stream.push(make_sample(STEP_S * i, [wrapped, wrapped], ['a', 'b']))
        if estimate is not None:
            assert estimate.velocity[0] == pytest.approx(20.0, abs=1e-6)
            assert estimate.position[0] == wrapped
    jumps = estimate.velocity[1]
    assert abs(jumps) > 15


def test_positions_far_from_zero_are_as_good(make_sample):
    for offset in (0.0, 1e4, -1e8):
        stream = Stream(Difference())
        for i in range(6):
            estimate = stream.push(make_sample(STEP_S * i, [offset + 0.5 * i], ['a']))
        assert estimate.velocity[0] == pytest.approx(50.0, rel=1e-4)


def test_more_than_eight_joints_leave_the_first_as_they_were(
    estimator, make_sample, quantised_motion
):
    plain, growing = Stream(estimator), Stream(estimator)
    more = [f'finger_{i}' for i in range(20)]
    for i in range(30):
        t = STEP_S * i
        expected = plain.push(make_sample(t, quantised_motion(t)))
        if i >= 10:
            growing.push(make_sample(t, np.full(20, 0.1 * t), more))
        got = growing.push(make_sample(t, quantised_motion(t)))
    # A program for more rows may round otherwise, so not to the bit.
    np.testing.assert_allclose(got.velocity, expected.velocity, rtol=1e-4, atol=1e-5)
    assert growing.counts['estimated'] == 26 + 16


def test_made_up_names_do_not_fill_the_memory(make_sample):
    stream = Stream(Difference())
    for i in range(60):
        names = [f'joint_{i}_{k}' for k in range(100)]
        stream.push(make_sample(STEP_S * i, np.zeros(100), names))
    assert stream.counts['drop_too_many_joints'] == 60 - MOST_JOINTS // 100
    assert f'at most {MOST_JOINTS} different joints' in stream.last_event
    assert identity_holds(stream.counts)


def test_named_joints_must_all_be_there(make_model, make_sample):
    stream = Stream(NetworkEstimator(make_model('named')), StreamOptions(max_merge_age_s=0.0))
    effort = [1.0, 2.0, 3.0]
    out = [stream.push(make_sample(STEP_S * i, [0, 0, 0], effort=effort)) for i in range(5)]
    assert out[-1].names == ('shoulder', 'elbow', 'wrist')
    assert stream.push(make_sample(0.06, [0, 0], ['shoulder', 'wrist'], effort=[1, 2])) is None
    assert stream.last_event == ('expected 3 joints shoulder, elbow, wrist, missing elbow')
    assert stream.push(make_sample(0.07, [0, 0, 0])) is None
    assert stream.last_event == 'effort: expected a value for each joint, got none'
    assert stream.push(make_sample(0.08, [0, np.nan, 0], effort=effort)) is None
    assert stream.counts['drop_missing_joint'] == 1
    assert stream.counts['drop_no_effort'] == 1
    assert stream.counts['drop_all_rejected'] == 1
    assert identity_holds(stream.counts)


def test_one_label_for_the_whole_arm(make_model, make_sample, quantised_motion):
    stream = Stream(NetworkEstimator(make_model('arm_label')))
    estimate = feed(stream, make_sample, quantised_motion, STEP_S * np.arange(8))[-1]
    assert estimate.scores.shape == (1, 2)
    assert estimate.scores.sum() == pytest.approx(1.0, abs=1e-6)
    assert estimate.labels == (('free', 'contact')[int(estimate.scores[0].argmax())],)
    assert estimate.velocity is None


def test_labels_of_each_joint_are_the_most_probable(make_model, make_sample, quantised_motion):
    stream = Stream(NetworkEstimator(make_model('label')))
    estimate = feed(stream, make_sample, quantised_motion, STEP_S * np.arange(8))[-1]
    assert estimate.scores.shape == (3, 2)
    np.testing.assert_allclose(estimate.scores.sum(axis=1), 1.0, atol=1e-6)
    expected = tuple(('still', 'moving')[int(s[1] > s[0])] for s in estimate.scores)
    assert estimate.labels == expected


class BreaksAt:
    """A difference that gives NaN for its second row at one sample."""

    def __init__(self, at):
        self._inner, self._at, self._calls = Difference(), at, 0

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def step(self, windows, advance, state):
        self._calls += 1
        velocity, state = self._inner.step(windows, advance, state)
        if self._calls == self._at:
            velocity[1] = np.nan
        return velocity, state


def test_an_output_that_is_not_finite_is_not_published(make_sample):
    stream = Stream(BreaksAt(8))
    for i in range(16):
        estimate = stream.push(make_sample(STEP_S * i, [0.1 * i, 0.2 * i], ['a', 'b']))
        names = () if estimate is None else estimate.names
        # The second joint restarts after sample 7 and fills its window again.
        assert names == (() if i < 4 else ('a',) if 7 <= i < 12 else ('a', 'b'))
    assert stream.counts['reset_non_finite_output'] == 1


def _mutations(rng, time_s):
    """Draw a message as the field sends them: mostly right."""
    n = int(rng.integers(1, 5))
    names = tuple(rng.choice(['a', 'b', 'c', 'd', 'e'], n, replace=bool(rng.random() < 0.05)))
    position = rng.standard_normal(n) * 10.0 ** rng.integers(-3, 3)
    if rng.random() < 0.1:
        position[rng.integers(n)] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e12, 0.0])
    if rng.random() < 0.05:
        position = position[: rng.integers(0, n)]
    if rng.random() < 0.03:
        names = ()
    velocity = np.full(rng.choice([0, n, n + 1], p=[0.5, 0.47, 0.03]), np.nan)
    stamp_ns = round((time_s + rng.choice([0, 0, 0, -0.02, -0.5, 0.4])) * 1e9)
    if rng.random() < 0.02:
        stamp_ns = 0
    return JointSample(stamp_ns, names, position, velocity, np.empty(0))


@pytest.mark.parametrize('clocked', [False, True])
@pytest.mark.parametrize('gate', [0.0, 50.0])
def test_every_message_is_accounted_for_whatever_comes(estimator, clocked, gate):
    rng = np.random.default_rng(5)
    options = StreamOptions(
        max_velocity_rad_s=gate, continuous_joints=('a',), zero_stamp='receive_time'
    )
    stream = Stream(estimator, options)
    for i in range(1500):
        time_s = 100 + 0.01 * i if i < 1000 else 50 + 0.01 * i
        sample = _mutations(rng, time_s)
        estimate = stream.push(sample, round(time_s * 1e9) if clocked else None)
        assert identity_holds(stream.counts)
        if estimate is not None:
            assert estimate.stamp_ns == (sample.stamp_ns or round(time_s * 1e9))
            assert np.isfinite(estimate.velocity).all()
            assert np.isfinite(estimate.position).all()
            assert set(estimate.names) <= set(sample.names)
    assert stream.counts['estimated'] > 20
    assert stream.counts['reset_time_backwards'] > 0
    assert stream.counts['drop_length_mismatch'] > 0


def test_the_first_capacity_is_compiled_once_and_growth_once_more(make_model, make_sample):
    stream = Stream(NetworkEstimator(make_model('gru')))
    stream.warm_up()
    assert stream.compile_count == 1
    for i in range(20):
        stream.push(make_sample(STEP_S * i, np.zeros(8), [f'j{k}' for k in range(8)]))
        if i == 10:
            stream.reset()
    assert stream.compile_count == 1
    stream.push(make_sample(0.5, [0.0], ['ninth']))
    assert stream.compile_count == 2
