"""Live against offline: what is the same, what is lost, what is too much."""

import numpy as np

from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.live_check import compare
from seqmem_ros.offline.live_check import Said
from seqmem_ros.offline.live_check import said_offline


def said(key, *values, names=('a', 'b')):
    return Said(key, names, np.array(values))


def test_the_same_is_identical():
    both = [said(1, 0.5, 1.5), said(2, 0.25, -1.0)]
    agreement = compare(both, both)
    assert agreement.identical
    assert str(agreement) == '2 messages, identical to the bit, 0 lost, 0 unexpected'


def test_the_largest_difference_is_found():
    live = [said(1, 0.5, 1.5), said(2, 0.25, -1.0)]
    offline = [said(1, 0.5, 1.5), said(2, 0.25, -1.5)]
    agreement = compare(live, offline)
    assert not agreement.identical and agreement.largest == 0.5
    assert 'largest difference 0.5 rad/s' in str(agreement)


def test_what_is_missing_and_what_is_too_much_is_counted():
    live = [said(1, 0.5, 1.5), said(4, 0.0, 0.0), said(3, 1.0, names=('a',))]
    offline = [said(1, 0.5, 1.5), said(2, 0.5, 0.5), said(3, 1.0, 2.0)]
    agreement = compare(live, offline)
    assert (agreement.messages, agreement.lost, agreement.unexpected) == (1, 2, 2)
    assert not agreement.identical and agreement.largest == 0.0


def test_nothing_at_all_is_not_the_same():
    assert not compare([], []).identical


def test_a_recording_that_starts_over_brings_stamps_twice():
    twice = [said(1, 0.5, 1.5), said(2, 0.1, 0.2), said(1, 0.6, 1.6)]
    assert compare(twice, twice).identical
    assert compare(twice[::-1], twice).largest > 0.05


def test_offline_is_the_stream():
    samples = [
        (10 * index, JointSample(10**9 + 10_000_000 * index, ('a',), np.array([0.02 * index])), '')
        for index in range(8)
    ]
    offline = said_offline(samples, load_estimator('difference'))
    assert [one.key for one in offline] == [10**9 + 10_000_000 * index for index in range(4, 8)]
    np.testing.assert_allclose([one.values for one in offline], 2.0, rtol=1e-9)
