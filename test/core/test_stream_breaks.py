"""Breaks in a stream: after each one a joint is as new, and nothing else has changed."""

from collections import Counter

from arm_streams import FILTERS
from arm_streams import identity_holds
from arm_streams import NAMES
from arm_streams import NETWORKS
from arm_streams import STEP_S
from arm_streams import values_of
from arm_streams import WHOLE_ARM
import jax
import numpy as np
import pytest

from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.filters import LowPass
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream
from seqmem_ros.core.window import JointWindows


@pytest.mark.parametrize('name', [*FILTERS, *NETWORKS, *WHOLE_ARM])
def test_a_row_that_starts_takes_nothing_from_a_memory_whatever_it_holds(name, make_estimator):
    """The one reset there is: count 1, even over a memory that is not finite any more."""
    estimator = make_estimator(name)
    rows = np.arange(3)
    rng = np.random.default_rng(0)
    windows, advance = JointWindows(3), np.ones(3, dtype=bool)

    def poisoned(value):
        def fill(leaf):
            whole = np.issubdtype(leaf.dtype, np.integer)
            return np.full_like(leaf, 3 if whole else value)

        return jax.tree.map(fill, estimator.init_state(3))

    outcomes = []
    for state in (estimator.init_state(3), poisoned(np.nan), poisoned(1e30), poisoned(-7)):
        rng = np.random.default_rng(0)
        windows.restart(slice(None))
        out = []
        for i in range(8):
            position = rng.standard_normal(3)
            windows.push(rows, i * 10**7, position, effort=position)
            y, state = estimator.step(windows, advance, state)
            out.append(y)
        outcomes.append(np.stack(out))
    assert np.isfinite(outcomes[0]).all()
    for other in outcomes[1:]:
        np.testing.assert_array_equal(outcomes[0], other)


BREAKS = ('gap', 'rejected', 'jump')


@pytest.mark.parametrize('cause', BREAKS)
@pytest.mark.parametrize('name', [*FILTERS, *NETWORKS, 'window'])
def test_a_break_of_one_joint_leaves_it_as_new_and_the_others_as_they_were(
    name, cause, make_estimator, make_sample, quantised_motion
):
    estimator = make_estimator(name)
    options = StreamOptions(max_velocity_rad_s=30.0, max_rejected=4)
    broken, whole = Stream(estimator, options), Stream(estimator, options)
    fresh = Stream(estimator, options)
    for i in range(60):
        t, position = STEP_S * i, quantised_motion(STEP_S * i)
        expected = values_of(whole.push(make_sample(t, position)))
        names, shown = list(NAMES), position.copy()
        if 15 <= i < 45 and cause == 'gap':
            names, shown = names[:2], shown[:2]
        elif 15 <= i < 19 and cause == 'rejected':
            shown[2] = np.nan
        elif i >= 19 and cause == 'jump':
            shown[2] += 4.0
        got = values_of(broken.push(make_sample(t, shown, names)))
        back_i = {'gap': 45, 'rejected': 19, 'jump': 23}[cause]
        if i < back_i:
            continue
        # From here on the wrist is what a stream says that hears of it for the first time.
        alone = values_of(fresh.push(make_sample(t, shown[2:], ['wrist'])))
        assert got[0] == (NAMES[:2] if alone is None else NAMES)
        assert got[1][:2] == expected[1][:2]
        if alone is not None:
            assert got[1][2] == alone[1][0]
    expected = {'gap': 'reset_gap', 'rejected': 'reset_joint', 'jump': 'reset_joint'}[cause]
    assert {k: n for k, n in broken.counts.items() if k.startswith('reset')} == {expected: 1}
    if cause != 'gap':
        assert broken.last_event == '4 values in a row were rejected: wrist'


@pytest.mark.parametrize('cause', BREAKS)
@pytest.mark.parametrize('name', WHOLE_ARM)
def test_a_break_of_one_joint_is_one_of_the_whole_arm_for_a_network_over_it(
    name, cause, make_estimator, arm_at
):
    estimator = make_estimator(name)
    options = StreamOptions(max_velocity_rad_s=30.0, max_rejected=4)
    broken, fresh = Stream(estimator, options), Stream(estimator, options)
    for i in range(60):
        sample = arm_at(i)
        if 15 <= i < 45 and cause == 'gap':
            continue
        if 15 <= i < 19 and cause == 'rejected':
            sample = arm_at(i, wrist=np.nan)
        elif i >= 19 and cause == 'jump':
            sample = arm_at(i, wrist=4.0)
        estimate = broken.push(sample)
        if i >= {'gap': 45, 'rejected': 19, 'jump': 23}[cause]:
            assert values_of(estimate) == values_of(fresh.push(sample))
    assert fresh.counts['estimated'] > 10
    assert sum(n for k, n in broken.counts.items() if k.startswith('reset')) == 1


class BreaksAt:
    """An estimator whose output and memory turn to NaN at one call, for one row."""

    def __init__(self, inner, at):
        self._inner, self._at, self._calls = inner, at, 0

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def step(self, windows, advance, state):
        self._calls += 1
        outputs, state = self._inner.step(windows, advance, state)
        if self._calls == self._at:
            outputs = outputs.copy()
            outputs[-1] = np.nan
            state = jax.tree.map(lambda leaf: leaf * np.nan, state)
        return outputs, state


@pytest.mark.parametrize('name', WHOLE_ARM)
def test_an_output_that_is_not_finite_restarts_the_whole_arm(name, make_estimator, arm_at):
    estimator = make_estimator(name)
    broken, fresh = Stream(BreaksAt(estimator, 12)), Stream(estimator)
    for i in range(30):
        estimate = broken.push(arm_at(i))
        if i == 11 and name == 'arm_label':
            assert broken.counts['drop_non_finite_output'] == 1
        if i == 11 and name == 'named':
            assert estimate.names == NAMES[:2]
        if i >= 12:
            assert values_of(estimate) == values_of(fresh.push(arm_at(i)))
    assert broken.counts['reset_non_finite_output'] == 1
    assert identity_holds(broken.counts)


@pytest.mark.parametrize('name', [*FILTERS, *NETWORKS, *WHOLE_ARM, 'window'])
@pytest.mark.parametrize('cause', ['requested', 'clock goes on', 'clock goes back', 'no clock'])
def test_a_full_reset_leaves_it_as_new(name, cause, make_estimator, arm_at):
    """Also where the memory has grown, a clock was known and values had been rejected."""
    estimator = make_estimator(name)
    options = StreamOptions(max_rejected=3)
    used, fresh = Stream(estimator, options), Stream(estimator, options)
    clock_s = {'clock goes on': 500, 'clock goes back': 300}.get(cause)

    def push(stream, i, receive_s, scale=1.0, **changed):
        receive_ns = None if clock_s is None else round((receive_s + STEP_S * i) * 1e9)
        return values_of(stream.push(arm_at(i, scale=scale, **changed), receive_ns))

    if name not in WHOLE_ARM:
        names = tuple(f'finger_{k}' for k in range(20))
        used.push(JointSample(arm_at(0).stamp_ns, names, np.ones(20)))
    for i in range(40):
        push(used, 100 + i, 400, scale=-3.0)
    push(used, 140, 400, wrist=np.nan)
    late = 0
    if cause == 'requested':
        used.reset()
    if cause == 'clock goes on':
        # Three messages are only late, from the fourth on they are believed.
        late = 3
        assert [push(used, i, clock_s) for i in range(late)] == [None] * late
    for i in range(late, 25):
        rejected = {'elbow': np.inf} if i in (9, 10) else {}
        got = push(used, i, clock_s, **rejected)
        assert got == push(fresh, i, clock_s, **rejected)
    reset = 'reset_requested' if cause == 'requested' else 'reset_time_backwards'
    assert used.counts[reset] == 1
    assert used.counts['drop_late'] == late
    assert identity_holds(used.counts)


@pytest.mark.parametrize('clock', ['goes on', 'goes back', 'none'])
def test_a_joint_that_is_never_finite_hides_no_loop(clock, make_sample, quantised_motion):
    """As from a broadcaster that fills what it does not know with NaN, in a looping bag."""
    stream = Stream(Kalman())
    last = {}
    for turn in range(3):
        for i in range(40):
            position = quantised_motion(STEP_S * i)
            position[2] = np.nan
            clock_s = {'goes on': turn * 0.4 + STEP_S * i, 'goes back': STEP_S * i}.get(clock)
            receive_ns = None if clock_s is None else round(clock_s * 1e9)
            last[turn] = stream.push(make_sample(STEP_S * i, position), receive_ns)
    assert stream.counts['reset_time_backwards'] == 2
    for turn in range(3):
        assert last[turn].names == NAMES[:2]
        # Not from the same sample on where the clock goes on: some were taken as late.
        np.testing.assert_allclose(last[turn].velocity, last[0].velocity, atol=0.02)
    assert stream.counts['estimated'] >= 3 * 30


@pytest.mark.parametrize('max_velocity_rad_s', [0.0, 5.0])
def test_a_joint_that_is_never_finite_has_nothing_to_forget(
    max_velocity_rad_s, make_sample, quantised_motion
):
    stream = Stream(Difference(), StreamOptions(max_velocity_rad_s=max_velocity_rad_s))
    for i in range(50):
        position = quantised_motion(STEP_S * i)
        position[1] = np.nan
        stream.push(make_sample(STEP_S * i, position))
    assert stream.counts == Counter(
        {'received': 50, 'filling': 4, 'estimated': 46, 'value_non_finite': 50}
    )
    assert stream.last_event == (
        'expected finite values, got NaN, infinite or absurd ones for elbow'
    )


@pytest.mark.parametrize('late_value', [0.0, 3.0, np.nan])
def test_values_of_late_joints_are_not_judged(late_value, make_sample):
    """A second publisher repeats a joint of the first, a little behind."""
    options = StreamOptions(max_velocity_rad_s=5.0, max_rejected=3)
    alone, shared = Stream(LowPass(), options), Stream(LowPass(), options)
    for i in range(40):
        arm = make_sample(STEP_S * i, [0.01 * i, 0.02 * i], ['a', 'b'])
        hand = make_sample(STEP_S * i - 0.004, [late_value, 0.5], ['b', 'c'])
        expected = alone.push(arm)
        got = shared.push(arm)
        assert values_of(got) == values_of(expected)
        out = shared.push(hand)
        if out is not None:
            assert out.names == ('c',)
    assert shared.counts == Counter(received=80, estimated=72, filling=8)


@pytest.mark.parametrize('offset_ms', [0, 2])
def test_two_publishers_of_a_looping_bag_both_start_again(offset_ms, make_sample):
    stream = Stream(Difference())
    out = {'arm': [], 'hand': []}
    for turn in range(2):
        for i in range(60):
            receive_ns = round((100 + turn * 0.6 + STEP_S * i) * 1e9)
            arm = make_sample(STEP_S * i, [0.01 * i], ['arm'])
            hand = make_sample(STEP_S * i + offset_ms / 1000, [0.03 * i], ['hand'])
            out['arm'].append(stream.push(arm, receive_ns))
            out['hand'].append(stream.push(hand, receive_ns))
    # Each for itself, when its own late messages are believed.
    assert stream.counts['reset_time_backwards'] == 2
    assert stream.last_event.startswith('stamps went back by 0.5')
    assert stream.last_event.endswith('s: hand')
    for name, velocity in (('arm', 1.0), ('hand', 3.0)):
        second = [e for e in out[name][60:] if e is not None]
        # Five late ones, four to fill the window.
        assert len(second) >= 60 - 10
        assert [e.velocity[0] for e in second] == pytest.approx([velocity] * len(second))
