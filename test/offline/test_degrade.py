"""Degradation: bounds, shares and seeds."""

import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.degrade import AS_RECORDED
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.degrade import degrade
from seqmem_ros.offline.degrade import Degrader


def samples(count=2000):
    time_s = np.arange(count) * 0.01
    position = np.stack([np.sin(time_s), 0.3 * time_s], axis=1)
    return [
        JointSample(10**18 + index * 10**7, ('a', 'b'), row, 2.0 * row, 3.0 * row)
        for index, row in enumerate(position)
    ]


def test_quantisation_is_to_the_nearest_of_2_to_the_bits_steps_per_turn():
    clean = samples()
    coarse = list(degrade(clean, Degradation(bits=10, drop=0.0)))
    step = 2.0 * np.pi / 1024
    errors = np.array([c.position - s.position for c, s in zip(coarse, clean)])
    steps = np.array([c.position for c in coarse]) / step
    assert np.abs(errors).max() <= step / 2 * (1 + 1e-9)
    assert np.abs(errors).max() > 0.49 * step
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)


def test_nothing_else_is_touched():
    clean = samples(5)
    for coarse, sample in zip(degrade(clean, Degradation(bits=8, drop=0.0)), clean):
        assert (coarse.stamp_ns, coarse.names) == (sample.stamp_ns, sample.names)
        np.testing.assert_array_equal(coarse.velocity, sample.velocity)
        np.testing.assert_array_equal(coarse.effort, sample.effort)


def test_as_recorded_is_the_recording_to_the_bit():
    clean = samples(50)
    for copy, sample in zip(degrade(clean, AS_RECORDED), clean, strict=True):
        assert copy.stamp_ns == sample.stamp_ns
        np.testing.assert_array_equal(copy.position, sample.position)


def test_noise_has_the_stated_deviation_before_quantisation():
    setting = Degradation(bits=0, noise_rad=1e-3, drop=0.0)
    clean = samples(20000)
    errors = np.array([d.position - s.position for d, s in zip(degrade(clean, setting), clean)])
    # 40 000 draws: the deviation of the estimated deviation is 0.35 %.
    assert errors.std() == pytest.approx(1e-3, rel=0.02)
    assert abs(errors.mean()) < 3e-5


def test_messages_are_dropped_with_the_stated_probability():
    kept = list(degrade(samples(20000), Degradation(drop=0.1)))
    # 4 sigma of a binomial distribution.
    assert abs(len(kept) - 18000) < 4 * np.sqrt(20000 * 0.1 * 0.9)


def test_stamps_jitter_by_the_stated_deviation_but_no_stamp_stays_none():
    setting = Degradation(bits=0, drop=0.0, jitter_s=0.001)
    clean = samples(5000)
    shifts = [d.stamp_ns - s.stamp_ns for d, s in zip(degrade(clean, setting), clean)]
    assert np.std(shifts) == pytest.approx(1e6, rel=0.05)
    (unstamped,) = degrade([JointSample(0, ('a',), np.zeros(1))], setting)
    assert unstamped.stamp_ns == 0


def as_rows(degraded):
    return [(d.stamp_ns, tuple(d.position)) for d in degraded]


def test_the_seed_decides():
    setting = Degradation(bits=0, noise_rad=1e-3, drop=0.2, jitter_s=1e-3, seed=7)
    clean = samples(200)
    first = as_rows(degrade(clean, setting))
    assert first == as_rows(degrade(clean, setting))
    degrader = Degrader(setting)
    assert first == as_rows(d for s in clean if (d := degrader(s)) is not None)
    other = Degradation(bits=0, noise_rad=1e-3, drop=0.2, jitter_s=1e-3, seed=8)
    assert first != as_rows(degrade(clean, other))


def test_dropping_messages_does_not_change_the_noise_of_the_others():
    clean = samples(200)
    whole = dict(as_rows(degrade(clean, Degradation(bits=0, noise_rad=1e-3, drop=0.0))))
    holed = as_rows(degrade(clean, Degradation(bits=0, noise_rad=1e-3, drop=0.5)))
    assert 50 < len(holed) < 150
    assert all(whole[stamp_ns] == position for stamp_ns, position in holed)


def test_missing_values_stay_missing():
    degrader = Degrader(Degradation(drop=0.0))
    broken = degrader(JointSample(1, ('a', 'b'), np.array([np.nan, 1.0])))
    assert np.isnan(broken.position[0]) and broken.position[1] == pytest.approx(1.0, abs=2e-4)
    assert degrader(JointSample(1, ('a',))).position.size == 0


def test_it_describes_itself():
    assert str(Degradation()) == '14 bits per revolution, 1 % of messages dropped, seed 0'
    full = Degradation(bits=12, noise_rad=2e-4, drop=0.0, jitter_s=5e-4, seed=3)
    assert str(full) == '12 bits per revolution, noise 0.0002 rad, stamps jitter by 0.5 ms, seed 3'
    assert str(AS_RECORDED) == 'none'


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        ({'bits': 33}, 'bits: expected 0 to 32, got 33'),
        ({'drop': 1.0}, 'drop: expected a probability below 1, got 1.0'),
        ({'noise_rad': -1.0}, 'noise_rad: expected a number from 0 up, got -1.0'),
        ({'jitter_s': float('nan')}, 'jitter_s: expected a number from 0 up, got nan'),
        ({'seed': -1}, 'seed: expected a number from 0 up, got -1'),
    ],
)
def test_values_out_of_range_are_refused(values, text):
    with pytest.raises(SeqmemError, match=text):
        Degradation(**values)
