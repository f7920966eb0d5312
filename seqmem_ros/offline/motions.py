"""
Joint trajectories as arms make them, with exact position, velocity and acceleration.

A motion is a function of time; it is sampled only where an encoder looks (see
:mod:`seqmem_ros.offline.simulate`), so jitter of the sampling instant costs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Motion = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]

SLOWEST_RAD_S = 1e-3
FASTEST_RAD_S = 6.0


@dataclass(frozen=True)
class Segment:
    """
    A part of a motion, starting at position 0.

    :param duration_s: its length in s
    :param motion: time since its start in s -> position, velocity, acceleration
    :param end_rad: position at its end in rad
    """

    duration_s: float
    motion: Motion
    end_rad: float


def hold(duration_s: float) -> Segment:
    """
    Stand still.

    :param duration_s: for so long
    :returns: the segment
    """
    return Segment(duration_s, lambda t: (0.0 * t, 0.0 * t, 0.0 * t), 0.0)


def minimum_jerk(distance_rad: float, duration_s: float) -> Segment:
    r"""
    Move from rest to rest with the least mean squared jerk.

    .. math:: p = D (10 s^3 - 15 s^4 + 6 s^5), \quad s = t / T

    Flash and Hogan, *J. Neuroscience* 5(7), 1985, Eq. 1 of the appendix.

    :param distance_rad: D
    :param duration_s: T
    :returns: the segment
    """

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s = t / duration_s
        position = distance_rad * s**3 * (10 - 15 * s + 6 * s**2)
        velocity = distance_rad / duration_s * 30 * s**2 * (1 - s) ** 2
        acceleration = distance_rad / duration_s**2 * 60 * s * (1 - s) * (1 - 2 * s)
        return position, velocity, acceleration

    return Segment(duration_s, motion, distance_rad)


def jerk_limited_trapezoid(speed_rad_s: float, ramp_s: float, cruise_s: float) -> Segment:
    """
    Ramp up, cruise, ramp down; the jerk is constant on each half of a ramp.

    :param speed_rad_s: cruising velocity, with its sign
    :param ramp_s: length of each ramp
    :param cruise_s: time at that velocity
    :returns: the segment
    """
    ramp_rad = speed_rad_s * ramp_s / 2
    total_s = 2 * ramp_s + cruise_s

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        up = _ramp(np.clip(t / ramp_s, 0, 1))
        down = _ramp(np.clip((total_s - t) / ramp_s, 0, 1))
        cruising = np.clip(t - ramp_s, 0, cruise_s)
        position = speed_rad_s * (ramp_s * (up[0] + 0.5 - down[0]) + cruising)
        velocity = speed_rad_s * up[1] * down[1]
        acceleration = speed_rad_s / ramp_s * (up[2] - down[2])
        return position, velocity, acceleration

    return Segment(total_s, motion, 2 * ramp_rad + speed_rad_s * cruise_s)


def sudden_stop(before: Segment, at_s: float, decay_s: float) -> Segment:
    """
    Cut a motion short by a contact: the velocity decays within milliseconds.

    :param before: the motion that is stopped
    :param at_s: time of the contact
    :param decay_s: time constant of the decay
    :returns: the segment, with the standstill after the contact
    """
    position_0, velocity_0, _ = (x[0] for x in before.motion(np.array([at_s])))

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        free = before.motion(np.minimum(t, at_s))
        decay = np.exp(-np.maximum(t - at_s, 0) / decay_s)
        stopped = (
            position_0 + velocity_0 * decay_s * (1 - decay),
            velocity_0 * decay,
            -velocity_0 / decay_s * decay,
        )
        return tuple(np.where(t < at_s, f, s) for f, s in zip(free, stopped))

    duration_s = at_s + 30 * decay_s
    return Segment(duration_s, motion, float(motion(np.array([duration_s]))[0][0]))


def rippled(motion: Motion, waves_per_rad: float, share: float, phase_rad: float) -> Motion:
    r"""
    Let the velocity ripple with the position, as gears and motors make it.

    .. math:: p = p_0 + \frac{s}{k} \sin(k p_0 + \varphi), \quad
       v = v_0 (1 + s \cos(k p_0 + \varphi))

    The kinematic error of a harmonic drive is such a function of the position (Tuttle and Seering,
    *IEEE Trans. Robotics and Automation* 12(3), 1996). A joint that stands still does not ripple.

    :param motion: the smooth motion, :math:`p_0`
    :param waves_per_rad: k, rad/rad
    :param share: s, the largest change of the velocity as a part of itself
    :param phase_rad: :math:`\varphi`
    :returns: the motion
    """

    def with_ripple(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        position, velocity, acceleration = motion(t)
        angle = waves_per_rad * position + phase_rad
        factor = 1 + share * np.cos(angle)
        bend = -share * waves_per_rad * velocity**2 * np.sin(angle)
        wave = share / waves_per_rad * np.sin(angle)
        return position + wave, velocity * factor, acceleration * factor + bend

    return with_ripple


def together(*motions: Motion) -> Motion:
    """
    Add up motions, as a joint shows them that vibrates while it moves.

    :param motions: each a function of time
    :returns: the motion whose position, velocity and acceleration are their sums
    """

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        position, velocity, acceleration = (sum(parts) for parts in zip(*(m(t) for m in motions)))
        return position, velocity, acceleration

    return motion


def chain(segments: list[Segment]) -> Motion:
    """
    Run segments one after the other.

    :param segments: in order; before the first and after the last one the joint stands still
    :returns: the motion
    """
    starts_s = np.cumsum([0.0] + [segment.duration_s for segment in segments])
    starts_rad = np.cumsum([0.0] + [segment.end_rad for segment in segments])
    parts = [*segments, hold(np.inf)]

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # A jittered first sample may lie before the start.
        t = np.maximum(t, 0.0)
        which = np.searchsorted(starts_s, t, side='right') - 1
        out = np.zeros((3, len(t)))
        for index in np.unique(which):
            here = which == index
            out[:, here] = parts[index].motion(t[here] - starts_s[index])
            out[0, here] += starts_rad[index]
        return out[0], out[1], out[2]

    return motion


def sines(amplitude_rad: np.ndarray, frequency_hz: np.ndarray, phase_rad: np.ndarray) -> Motion:
    """
    Add up sines.

    :param amplitude_rad: shape (K,)
    :param frequency_hz: shape (K,)
    :param phase_rad: shape (K,)
    :returns: the motion
    """
    omega = 2 * np.pi * frequency_hz

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle = t[:, None] * omega + phase_rad  # (T, K)
        position = np.sin(angle) @ amplitude_rad
        velocity = np.cos(angle) @ (amplitude_rad * omega)
        return position, velocity, -np.sin(angle) @ (amplitude_rad * omega**2)

    return motion


def _ramp(s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration of a unit ramp of velocity over s in 0..1."""
    early = s < 0.5
    position = np.where(early, 2 * s**3 / 3, s**2 * (2 - 2 * s / 3) - s + 1 / 6)
    velocity = np.where(early, 2 * s**2, 1 - 2 * (1 - s) ** 2)
    inside = (s > 0) & (s < 1)
    acceleration = np.where(inside, np.where(early, 4 * s, 4 * (1 - s)), 0.0)
    return position, velocity, acceleration
