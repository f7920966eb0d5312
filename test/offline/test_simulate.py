"""Simulated recordings: reproducible, in range, and true to their encoder."""

from dataclasses import astuple
from dataclasses import replace

import numpy as np
import pytest

from seqmem_ros.offline import simulate as simulation
from seqmem_ros.offline.motions import sines
from seqmem_ros.offline.simulate import Encoder
from seqmem_ros.offline.simulate import KINDS
from seqmem_ros.offline.simulate import random_encoder
from seqmem_ros.offline.simulate import random_motion
from seqmem_ros.offline.simulate import record
from seqmem_ros.offline.simulate import simulate

PERFECT = Encoder(rate_hz=250.0, bits=16)
MOTION = sines(np.array([0.4]), np.array([0.7]), np.array([0.3]))


def _recorded(encoder, n_samples=4000, seed=3, motion=MOTION):
    return record(np.random.default_rng(seed), motion, encoder, n_samples)


def _arrays(recording):
    return (
        recording.stamp_ns, recording.position, recording.velocity, recording.acceleration
    )  # fmt: skip


def _counts(recording):
    return recording.position * 2**recording.encoder.bits / (2 * np.pi)


def test_a_seed_says_all():
    first, second = (simulate(np.random.default_rng(5), 300) for _ in range(2))
    other = simulate(np.random.default_rng(6), 300)
    for a, b in zip(_arrays(first), _arrays(second)):
        np.testing.assert_array_equal(a, b)
    assert astuple(first.encoder) == astuple(second.encoder)
    assert first.kind == second.kind
    assert not np.array_equal(first.position, other.position)


@pytest.mark.parametrize('kind', KINDS)
def test_recordings_have_their_length_and_stay_finite_and_below_the_fastest_speed(kind):
    rng = np.random.default_rng(8)
    for _ in range(10):
        recording = simulate(rng, 200, kind)
        assert recording.kind == kind
        for array in _arrays(recording):
            assert array.shape == (200,)
            assert np.isfinite(array).all()
        assert np.abs(recording.velocity).max() <= 6.0


def test_standing_still_means_a_velocity_of_zero():
    recording = simulate(np.random.default_rng(1), 100, 'still')
    np.testing.assert_array_equal(recording.velocity, 0.0)
    np.testing.assert_array_equal(recording.acceleration, 0.0)


def test_no_kind_draws_all_kinds():
    rng = np.random.default_rng(2)
    assert {simulate(rng, 8).kind for _ in range(200)} == set(KINDS)


@pytest.mark.parametrize('kind', KINDS)
def test_harder_motions_vibrate_unless_they_rest(monkeypatch, kind):
    monkeypatch.setattr(simulation, 'record', lambda rng, motion, *_: motion)
    time_s = np.linspace(0, 0.2, 400)
    swinging = 0
    for seed in range(60):
        # The same seed, so the same motion below.
        plain, harder = (
            simulate(np.random.default_rng(seed), 200, kind, harder=harder)
            for harder in (False, True)
        )
        added = harder(time_s)[1] - plain(time_s)[1]
        swinging += added.any()
        assert np.abs(added).max() <= 2 * 0.03 * 6.0
    if kind in ('sines', 'wander', 'cruise', 'scan'):
        # 3 sqrt(0.85 0.15 / 60)
        assert swinging / 60 == pytest.approx(0.85, abs=0.14)
    else:
        assert swinging == 0


def test_harder_recordings_are_more_often_the_kinds_that_are_hard():
    rng = np.random.default_rng(9)
    kinds = [simulate(rng, 8, harder=True).kind for _ in range(2000)]
    # 3 sqrt(0.13 0.87 / 2000)
    assert kinds.count('scan') / 2000 == pytest.approx(0.13, abs=0.023)
    assert kinds.count('cruise') / 2000 == pytest.approx(0.08, abs=0.019)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"^kind: expected one of moves, .*, got 'dance'$"):
        random_motion(np.random.default_rng(0), 'dance', 1.0)


def test_drawn_encoders_cover_their_ranges_and_no_more():
    rng = np.random.default_rng(4)
    drawn = [random_encoder(rng) for _ in range(3000)]
    ranges = {
        'rate_hz': (50, 1000), 'noise_counts': (0, 1.5), 'sampling_jitter': (0, 0.1),
        'stamp_jitter': (0, 0.05), 'drop': (0, 0.05), 'repeat': (0, 0.03),
    }  # fmt: skip
    for name, (lowest, highest) in ranges.items():
        values = np.array([getattr(encoder, name) for encoder in drawn])
        assert lowest <= values.min() <= lowest + 0.02 * (highest - lowest)
        assert highest - 0.02 * (highest - lowest) <= values.max() <= highest
    assert {encoder.bits for encoder in drawn} == set(range(10, 21))
    rates = np.array([encoder.rate_hz for encoder in drawn])
    # Evenly in the logarithm: half of them below the geometric mean of 50 and 1000.
    assert np.mean(rates < np.sqrt(50 * 1000)) == pytest.approx(0.5, abs=0.04)
    # 3 sqrt(0.5 0.5 / 3000) = 0.027, and 0.026 for thirds and quarters.
    for name, share in (
        ('noise_counts', 1 / 2), ('sampling_jitter', 1 / 2), ('stamp_jitter', 1 / 3),
        ('drop', 1 / 2), ('repeat', 1 / 4),
    ):  # fmt: skip
        present = np.mean([getattr(encoder, name) > 0 for encoder in drawn])
        assert present == pytest.approx(share, abs=0.028), name


@pytest.mark.parametrize('seed', range(5))
def test_a_recording_never_starts_or_moves_faster_than_its_joint(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        recording = simulate(rng, 120)
        encoder = recording.encoder
        step_s = np.diff(recording.stamp_ns) * 1e-9
        # The stamp may be off by 3 sigma at both ends, the position by its noise (5 sigma) and a
        # repeat or two.
        step_s += 6 * encoder.stamp_jitter / encoder.rate_hz
        step_s *= 1 if encoder.repeat == 0 else 6
        travel = np.abs(recording.velocity).max() * step_s
        noise = (10 * encoder.noise_counts + 1) * encoder.count_rad
        assert (np.abs(np.diff(recording.position)) <= 1.01 * travel + noise).all()


def test_count_is_a_turn_over_a_power_of_two():
    assert Encoder(100.0, 12).count_rad == pytest.approx(2 * np.pi / 4096, rel=1e-15)


@pytest.mark.parametrize('bits', [10, 14, 20])
def test_positions_lie_on_the_grid_of_counts(bits):
    recording = _recorded(replace(PERFECT, bits=bits, noise_counts=0.8))
    counts = _counts(recording)
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)


def test_a_perfect_encoder_rounds_the_motion_to_half_a_count():
    recording = _recorded(PERFECT)
    time_s = np.arange(4000) / 250
    truth = 0.4 * np.sin(2 * np.pi * 0.7 * time_s + 0.3)
    # The zero of the encoder is drawn, but the same throughout.
    error = recording.position - truth
    assert np.ptp(error) <= 1.001 * PERFECT.count_rad
    assert np.ptp(error) > 0.9 * PERFECT.count_rad
    velocity = 0.4 * 2 * np.pi * 0.7 * np.cos(2 * np.pi * 0.7 * time_s + 0.3)
    np.testing.assert_allclose(recording.velocity, velocity, atol=1e-12)


def test_noise_has_the_standard_deviation_that_it_claims():
    still = sines(np.zeros(1), np.ones(1), np.zeros(1))
    recording = _recorded(replace(PERFECT, noise_counts=1.3), motion=still)
    # Rounding adds 1/12 to the variance.
    assert np.std(_counts(recording)) == pytest.approx(np.sqrt(1.3**2 + 1 / 12), rel=0.05)


def test_stamps_of_a_perfect_encoder_are_even():
    stamp_ns = _recorded(PERFECT, 50).stamp_ns
    assert stamp_ns.dtype == np.int64
    np.testing.assert_allclose(stamp_ns - stamp_ns[0], np.arange(50) * 4_000_000, atol=50)


@pytest.mark.parametrize(
    'defects',
    [
        {'sampling_jitter': 0.1, 'stamp_jitter': 0.05},
        # Far beyond what is drawn: samples overtake one another.
        {'sampling_jitter': 1.0},
        {'stamp_jitter': 2.0, 'drop': 0.3},
    ],
)
def test_stamps_increase_strictly_whatever_the_jitter(defects):
    recording = _recorded(replace(PERFECT, **defects))
    assert (np.diff(recording.stamp_ns) > 0).all()
    assert recording.stamp_ns[0] > 0


def test_sampling_jitter_moves_stamp_and_truth_together():
    recording = _recorded(replace(PERFECT, sampling_jitter=0.1))
    time_s = (recording.stamp_ns - 1_000_000_000) * 1e-9
    jitter = time_s * 250 - np.arange(4000)
    assert np.std(jitter) == pytest.approx(0.1, rel=0.05)
    truth = 0.4 * 2 * np.pi * 0.7 * np.cos(2 * np.pi * 0.7 * time_s + 0.3)
    # Stamps carry up to 4000 ns that keep them apart; the acceleration is 7.7 rad/s^2.
    np.testing.assert_allclose(recording.velocity, truth, atol=4e-5)


def test_stamp_jitter_moves_the_stamp_alone():
    recording = _recorded(replace(PERFECT, stamp_jitter=0.05))
    time_s = np.arange(4000) / 250
    truth = 0.4 * 2 * np.pi * 0.7 * np.cos(2 * np.pi * 0.7 * time_s + 0.3)
    np.testing.assert_allclose(recording.velocity, truth, atol=1e-12)
    late = (recording.stamp_ns - 1_000_000_000) * 1e-9 * 250 - np.arange(4000)
    assert np.std(late) == pytest.approx(0.05, rel=0.05)


def test_the_share_of_lost_samples_is_the_probability():
    recording = _recorded(replace(PERFECT, drop=0.2))
    instants = np.round((recording.stamp_ns - 1_000_000_000) * 1e-9 * 250)
    lost = 1 - 4000 / (instants[-1] + 1)
    # 4 sigma of a share of 5000 draws
    assert lost == pytest.approx(0.2, abs=4 * np.sqrt(0.2 * 0.8 / 5000))
    truth = 0.4 * 2 * np.pi * 0.7 * np.cos(2 * np.pi * 0.7 * instants / 250 + 0.3)
    np.testing.assert_allclose(recording.velocity, truth, atol=1e-12)


def test_an_encoder_that_loses_too_much_is_refused():
    with pytest.raises(ValueError, match=r'^drop: expected at most about 0\.4, got 0\.7$'):
        _recorded(replace(PERFECT, drop=0.7))


def test_repeats_show_the_position_before_and_have_their_share():
    fine = replace(PERFECT, bits=20, repeat=0.1)
    climb = lambda t: (2.0 * t, 0 * t + 2.0, 0 * t)  # noqa: E731
    recording = _recorded(fine, motion=climb)
    same = np.diff(recording.position) == 0
    assert np.mean(same) == pytest.approx(0.1, abs=4 * np.sqrt(0.1 * 0.9 / 4000))
    # Every sample that is not a repeat is the motion itself.
    truth = 2.0 * np.arange(4000) / 250
    error = (recording.position - truth)[1:][~same]
    assert np.ptp(error) <= 1.01 * fine.count_rad
    np.testing.assert_array_equal(recording.velocity, 2.0)


def test_a_wrapping_joint_starts_over_at_half_a_turn_and_keeps_its_velocity():
    motion = sines(np.array([9.0]), np.array([0.2]), np.array([0.0]))
    endless = _recorded(PERFECT, motion=motion)
    wrapping = _recorded(replace(PERFECT, wraps=True), motion=motion)
    assert np.abs(endless.position).max() > 6.0
    assert wrapping.position.min() >= -np.pi and wrapping.position.max() < np.pi
    turns = (endless.position - wrapping.position) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.rint(turns), atol=1e-9)
    np.testing.assert_array_equal(endless.velocity, wrapping.velocity)
