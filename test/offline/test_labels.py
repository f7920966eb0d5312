"""Scores of labels, worked out by hand."""

import numpy as np
import pytest

from seqmem_ros.offline.labels import score_labels


def test_macro_f1_and_confusion():
    expected = np.array([0, 0, 0, 1, 1, 2])
    predicted = np.array([0, 0, 1, 1, 2, 2])
    result = score_labels(expected, predicted, n_labels=4)
    np.testing.assert_array_equal(
        result.confusion, [[2, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    )
    # Label 0: TP 2, FN 1; label 1: TP 1, FP 1, FN 1; label 2: TP 1, FP 1; label 3 never occurs.
    assert result.macro_f1 == pytest.approx((4 / 5 + 2 / 4 + 2 / 3) / 3)
    assert result.accuracy == pytest.approx(4 / 6)
    assert result.samples == 6


def test_a_label_that_is_only_predicted_counts_as_zero():
    result = score_labels(np.array([0, 0]), np.array([0, 1]), n_labels=2)
    assert result.macro_f1 == pytest.approx((2 / 3 + 0.0) / 2)


def test_nothing_to_compare_has_no_score():
    empty = np.empty(0, dtype=np.int64)
    result = score_labels(empty, empty, n_labels=2)
    assert result.samples == 0 and np.isnan(result.macro_f1) and np.isnan(result.accuracy)
