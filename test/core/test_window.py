"""Windows against a plain list of samples for each joint."""

import numpy as np
import pytest

from seqmem_ros.core.window import JointWindows

WINDOW = 5


def newest(history, lag):
    """Take the sample so many before the newest, or the first one."""
    return history[max(len(history) - 1 - lag, 0)]


def check_against_lists(windows, histories):
    """Compare every row that has samples with its list of (stamp_ns, position, velocity)."""
    differences, elapsed_s = windows.differences(), windows.elapsed_s()
    for row, history in enumerate(histories):
        assert windows.count[row] == len(history)
        if not history:
            continue
        oldest_first = [newest(history, lag) for lag in range(WINDOW - 1, -1, -1)]
        np.testing.assert_array_equal(windows.stamp_ns[row], [s for s, _, _ in oldest_first])
        np.testing.assert_array_equal(windows.position[row], [p for _, p, _ in oldest_first])
        np.testing.assert_array_equal(windows.velocity[row], [v for _, _, v in oldest_first])
        stamp_ns, position, _ = history[-1]
        for lag in range(1, WINDOW):
            before_ns, before, _ = newest(history, lag)
            assert differences[row, lag - 1] == position - before
            assert elapsed_s[row, lag - 1] == (stamp_ns - before_ns) / 1e9


@pytest.mark.parametrize('seed', range(4))
def test_rows_in_any_order_are_lists_of_samples(seed):
    rng = np.random.default_rng(seed)
    windows, histories = JointWindows(3), [[] for _ in range(3)]
    stamp_ns = 1_700_000_000_000_000_000
    for _ in range(300):
        stamp_ns += int(rng.integers(1, 10**8))
        rows = rng.permutation(len(histories))[: rng.integers(1, len(histories) + 1)]
        action = rng.random()
        if action < 0.05:
            windows.restart(rows)
            for row in rows:
                histories[row] = []
        elif action < 0.08:
            mask = np.zeros(len(histories), dtype=bool)
            mask[rows] = True
            windows.restart(mask)
            histories = [[] if m else h for m, h in zip(mask, histories)]
        elif action < 0.11 and len(histories) < 12:
            windows.resize(len(histories) + 2)
            histories += [[], []]
        else:
            position, velocity = rng.standard_normal((2, len(rows)))
            windows.push(rows, stamp_ns, position, velocity=velocity)
            for row, p, v in zip(rows, position, velocity):
                histories[row].append((stamp_ns, p, v))
        check_against_lists(windows, histories)
    assert windows.capacity == len(histories) == 13


def test_one_stamp_a_row_is_possible():
    windows = JointWindows(2)
    windows.push(np.array([0, 1]), np.array([10, 20]), np.zeros(2))
    windows.push(np.array([0, 1]), np.array([1_000_000_010, 500_000_020]), np.array([3.0, 4.0]))
    np.testing.assert_array_equal(windows.elapsed_s()[:, 0], [1.0, 0.5])


def test_fields_that_are_not_pushed_stay_zero():
    windows = JointWindows(1)
    windows.push(np.array([0]), 5, np.array([1.0]), effort=np.array([2.0]))
    np.testing.assert_array_equal(windows.velocity, 0.0)
    np.testing.assert_array_equal(windows.effort, 2.0)


def test_differences_keep_what_single_precision_would_lose():
    windows = JointWindows(1)
    start_ns = 2**61
    windows.push(np.array([0]), start_ns, np.array([1e8]))
    windows.push(np.array([0]), start_ns + 1, np.array([1e8 + 2.0**-24]))
    assert windows.differences()[0, 0] == 2.0**-24
    assert windows.elapsed_s()[0, 0] == 1e-9


@pytest.mark.parametrize('n_pushed', [5, 6, 23])
def test_growing_shows_how_fresh_windows_would_have_filled(n_pushed):
    rng = np.random.default_rng(n_pushed)
    windows = JointWindows(2)
    samples = [(100 + 7 * i, *rng.standard_normal((3, 2))) for i in range(n_pushed)]
    rows = np.arange(2)
    for stamp_ns, position, velocity, effort in samples:
        windows.push(rows, stamp_ns, position, velocity=velocity, effort=effort)
    pasts = list(windows.growing())
    assert len(pasts) == WINDOW
    histories = [[], []]
    for past, (stamp_ns, position, velocity, effort) in zip(pasts, samples[-WINDOW:]):
        for row in rows:
            histories[row].append((stamp_ns, position[row], velocity[row]))
        check_against_lists(past, histories)
        np.testing.assert_array_equal(past.effort[:, -1], effort)
    np.testing.assert_array_equal(windows.count, n_pushed)


@pytest.mark.parametrize('window', [2, 3, 9])
def test_other_lengths(window):
    windows = JointWindows(1, window)
    for i in range(20):
        windows.push(np.array([0]), i, np.array([float(i * i)]))
    expected = [19**2 - (19 - lag) ** 2 for lag in range(1, window)]
    np.testing.assert_array_equal(windows.differences(), [expected])
    assert len(list(windows.growing())) == window


def test_a_window_of_one_sample_is_refused():
    with pytest.raises(ValueError, match=r'^window: expected at least 2 samples, got 1$'):
        JointWindows(3, 1)
