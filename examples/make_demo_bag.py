"""
Make the shipped recording ``seqmem_ros/data/kr300_a`` from the file that its README names.

Needs the extra packages of ``seqmem_ros[offline]`` and SciPy:

    python examples/make_demo_bag.py kr300_a.mat seqmem_ros/data/kr300_a
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.bags import write_joint_bag

NAMES = tuple(f'joint_a{axis}' for axis in range(1, 7))
RATE_HZ = 250
# The file counts from 0, which to ROS means "no time yet", so the start is made up; the
# source's folders of recordings are dated 2020-10-21.
START_NS = 1_603_281_600 * 1_000_000_000
# A recorder gets a message after it was stamped; how much later is made up as well.
RECORD_DELAY_NS = 300_000


def read_samples(path: Path) -> Iterator[tuple[int, JointSample]]:
    """
    Turn the recorded trajectory into joint states.

    :param path: ``kr300_a.mat``
    :returns: record time in ns, and sample: motor-side angle and velocity of each axis, and
        the motor's torque times the gear ratio
    """
    content = loadmat(path, squeeze_me=True, struct_as_record=False)
    recording: Any = content['rec']
    gear_ratio = content['para'].u
    position = _rounded(np.deg2rad(recording.act_pos_mot_deg.T), bits=30)
    velocity = _rounded(np.deg2rad(recording.act_vel_mot_deg_per_s.T), bits=24)
    effort = _rounded(recording.act_torque_abs_nm.T * gear_ratio, bits=8)
    for index in range(len(position)):
        stamp_ns = START_NS + index * (1_000_000_000 // RATE_HZ)
        sample = JointSample(stamp_ns, NAMES, position[index], velocity[index], effort[index])
        yield stamp_ns + RECORD_DELAY_NS, sample


def _rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """Drop binary places far below the noise: they hold nothing, and compress badly."""
    return np.round(values * 2.0**bits) / 2.0**bits


def main() -> None:
    """Read the two paths and write the bag."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('mat', type=Path, help='kr300_a.mat')
    parser.add_argument('bag', type=Path, help='folder to make')
    paths = parser.parse_args()
    count = write_joint_bag(
        paths.bag, '/joint_states', read_samples(paths.mat), 'base_link', compressed=True
    )
    print(f'{paths.bag}: {count} messages')


if __name__ == '__main__':
    main()
