"""Labels of motions, by hand."""

import numpy as np
import pytest

from seqmem_ros.core.motion import LABELS
from seqmem_ros.core.motion import labels_from_acceleration
from seqmem_ros.core.motion import motion_labels


@pytest.mark.parametrize(
    ('velocity', 'acceleration', 'label'),
    [
        (0.0, 0.0, 'stationary'),
        (0.0, 50.0, 'stationary'),
        (0.0099, -3.0, 'stationary'),
        (-0.0099, -3.0, 'stationary'),
        (0.01, 0.0, 'steady'),
        # The limit is 0.1 rad/s^2 and a quarter of the speed in a second: 0.35 at 1 rad/s.
        (1.0, 0.349, 'steady'),
        (1.0, 0.351, 'accelerating'),
        (1.0, -0.349, 'steady'),
        (1.0, -0.351, 'decelerating'),
        # Backwards the speed grows where the acceleration is negative.
        (-1.0, -0.351, 'accelerating'),
        (-1.0, 0.351, 'decelerating'),
        (-1.0, 0.349, 'steady'),
        (0.02, 0.104, 'steady'),
        (0.02, 0.106, 'accelerating'),
        (-4.0, 1.09, 'steady'),
        (-4.0, 1.11, 'decelerating'),
    ],
)
def test_label_of_one_instant(velocity, acceleration, label):
    index = labels_from_acceleration(np.array([velocity]), np.array([acceleration]))
    assert LABELS[index[0]] == label


def test_labels_of_a_velocity_alone():
    # Uneven times; ramps of 2 rad/s^2 up and 3 rad/s^2 down, a cruise, and rest.
    time_s = np.array([0.0, 0.1, 0.3, 0.4, 0.6, 0.7, 0.9, 1.0, 1.1, 1.2, 1.3])
    velocity = np.array([0.0, 0.2, 0.6, 0.8, 0.8, 0.8, 0.8, 0.5, 0.2, 0.0, 0.0])
    labels = [LABELS[index] for index in motion_labels(velocity, time_s)]
    assert labels[0] == 'stationary'
    assert labels[1:3] == ['accelerating'] * 2
    assert labels[4:6] == ['steady'] * 2
    assert labels[7:9] == ['decelerating'] * 2
    assert labels[9:] == ['stationary'] * 2
    assert motion_labels(-velocity, time_s).tolist() == motion_labels(velocity, time_s).tolist()
