"""What the velocity benchmark plays."""

import numpy as np
import pytest
from velocity_suite import Cell
from velocity_suite import DATA
from velocity_suite import real_motions
from velocity_suite import real_suite
from velocity_suite import simulated_suite

from seqmem_ros.offline.motions import chain
from seqmem_ros.offline.motions import hold
from seqmem_ros.offline.motions import minimum_jerk
from seqmem_ros.offline.motions import sudden_stop


def test_a_part_of_the_simulated_suite_is_that_of_the_whole():
    whole = simulated_suite((100, 500), (12, 17), ('moves', 'still'), per_cell=2, n_samples=60)
    part = simulated_suite((500,), (17,), ('still',), per_cell=2, n_samples=60)
    assert len(whole.recordings) == 16
    index = [i for i, cell in enumerate(whole.cells) if cell == Cell('still', 500, 17)]
    assert part.cells == (Cell('still', 500, 17),) * 2
    for i, recording in zip(index, part.recordings):
        np.testing.assert_array_equal(whole.recordings[i].position, recording.position)
        np.testing.assert_array_equal(whole.recordings[i].stamp_ns, recording.stamp_ns)
    assert not np.array_equal(part.recordings[0].stamp_ns, part.recordings[1].stamp_ns)


def test_cells_are_what_they_say():
    suite = simulated_suite((50, 1000), (10, 20), ('sines',), per_cell=1, n_samples=400)
    for cell, recording in zip(suite.cells, suite.recordings):
        step_s = np.median(np.diff(recording.stamp_ns)) / 1e9
        assert step_s == pytest.approx(1 / cell.rate_hz, rel=0.2)
        counts = recording.position / (2 * np.pi / 2**cell.bits)
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)
        assert recording.kind == 'sines'


def test_sudden_stops_are_found_where_they_are(monkeypatch):
    stop = sudden_stop(minimum_jerk(0.5, 1.0), 0.4, 0.005)
    motion = chain([hold(0.3), stop, hold(0.2), minimum_jerk(-0.5, 0.2)])
    monkeypatch.setattr('velocity_suite.random_motion', lambda *_: motion)
    suite = simulated_suite((100,), (14,), ('contacts', 'moves'), per_cell=1, n_samples=150)
    # Stamps begin at one second; the grid is half a millisecond.
    assert suite.stops_ns[0] / 1e9 == pytest.approx([1.7], abs=6e-4)
    assert len(suite.stops_ns[1]) == 0


def test_real_motions_are_smooth_curves_through_the_recordings():
    motions = real_motions()
    assert {name: len(joints) for name, joints in motions.items()} == {
        'kr300': 6, 'lwr': 7, 'tilt': 1
    }  # fmt: skip
    for joints in motions.values():
        for motion, duration_s in joints:
            time_s = np.linspace(0.1, duration_s - 0.1, 500)
            position, velocity, acceleration = motion(time_s)
            after, faster, _ = motion(time_s + 1e-5)
            np.testing.assert_allclose((after - position) / 1e-5, velocity, atol=2e-3)
            np.testing.assert_allclose((faster - velocity) / 1e-5, acceleration, atol=2.0)
            assert np.ptp(position) > 0.01


def test_a_real_motion_stays_with_its_recording():
    """The integral of the reference is the position, but for what the reference smooths."""
    with np.load(DATA / 'kuka_lwr.npz') as archive:
        stamp_ns, recorded = archive['stamp_ns'], archive['position'][:, 3].astype(float)
    motion, duration_s = real_motions()['lwr'][3]
    start = 3  # the first whose window of 3 samples to each side is full
    time_s = (stamp_ns[start:] - stamp_ns[start]) / 1e9
    inside = time_s <= duration_s
    position = motion(time_s[inside])[0]
    np.testing.assert_allclose(position, recorded[start:][inside], atol=5e-3)


def test_the_real_suite_counts_and_loses():
    suite = real_suite((100,), (12,))
    assert len(suite.recordings) == 14
    for cell, recording in zip(suite.cells, suite.recordings):
        assert (cell.rate_hz, cell.bits) == (100, 12)
        steps = np.diff(recording.stamp_ns) / 10**7
        assert 0 < np.mean(steps > 1.5) < 0.03
        counts = recording.position / (2 * np.pi / 4096)
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)
