"""Labels of motions, by hand."""

import numpy as np
import pytest

from seqmem_ros.core.motion import LABELS
from seqmem_ros.core.motion import motion_labels


@pytest.mark.parametrize(
    ('velocity', 'label'),
    [
        (0.0, 'stationary'),
        (0.0199, 'stationary'),
        (-0.0199, 'stationary'),
        (0.02, 'forward'),
        (-0.02, 'backward'),
        (4.0, 'forward'),
        (-4.0, 'backward'),
    ],
)
def test_label_of_one_instant(velocity, label):
    assert LABELS[motion_labels(np.array([velocity]))[0]] == label


def test_many_joints_at_once_keep_their_places():
    velocity = np.array([[0.0, 1.0], [-1.0, 0.01], [0.5, -0.5]])
    assert motion_labels(velocity).tolist() == [[0, 1], [2, 0], [1, 2]]
