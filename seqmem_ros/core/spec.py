"""What a weights file says of its network, besides the numbers: checked, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.inputs import FEATURES
from seqmem_ros.core.observer import N_FEATURES
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.observer import PARTS_OF_LABEL

TASKS = ('velocity', 'label')
READOUTS = ('observer', 'direct')
WINDOW = 5
LARGEST_NUMBER = 1e30


@dataclass(frozen=True)
class ModelSpec:
    """
    How a network is built, what it reads and what its outputs mean.

    :param task: ``velocity`` or ``label``
    :param network: ``builder``, a name out of
        :data:`seqmem_ros.core.model.BUILDERS`, and its arguments but the random key
    :param readout: ``observer``: the network steers a
        :class:`~seqmem_ros.core.observer.SteeredObserver`; ``direct``: its outputs are the
        estimate
    :param features: inputs of a ``direct`` network, names out of
        :data:`seqmem_ros.core.inputs.FEATURES`; empty for ``observer``
    :param joints: joint names in the order of the inputs; empty: one network for every joint,
        whatever its name
    :param labels: names of the classes; empty for velocity
    :param input_mean: subtracted from the features of a ``direct`` network
    :param input_scale: divides them thereafter
    :param output_mean: added to the velocities of a ``direct`` network, rad/s
    :param output_scale: multiplies them before, rad/s
    :param nominal_rate_hz: rates that it was trained for, lowest and highest; (0, 0) if unknown
    :param card: how it was trained and scored, for people
    :raises SeqmemError: if a value is not what it must be
    """

    task: str
    network: Mapping[str, Any]
    readout: str = 'observer'
    features: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    input_mean: tuple[float, ...] = ()
    input_scale: tuple[float, ...] = ()
    output_mean: float = 0.0
    output_scale: float = 1.0
    nominal_rate_hz: tuple[float, float] = (0.0, 0.0)
    card: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_kinds()
        _expect_one_of('task', self.task, TASKS)
        _expect_one_of('readout', self.readout, READOUTS)
        for name in self.features:
            _expect_one_of('features', name, tuple(FEATURES))
        _expect(
            bool(self.labels) == (self.task == 'label'),
            f"labels: expected names for task 'label' only, got {len(self.labels)} for "
            f"'{self.task}'",
        )
        _expect(
            bool(self.features) == (self.readout == 'direct'),
            f"features: expected names for readout 'direct' only, got {len(self.features)} for "
            f"'{self.readout}'",
        )
        _expect(
            self.readout == 'direct' or not self.joints,
            "joints: expected none for readout 'observer', which serves any joint, got "
            f'{", ".join(self.joints)}',
        )
        for name in ('joints', 'labels'):
            names = getattr(self, name)
            _expect(
                len(set(names)) == len(names),
                f'{name}: expected each {name[:-1]} once, got {", ".join(names)}',
            )
        self._check_widths()

    @property
    def per_joint(self) -> bool:
        """One output a joint; False: one label for the whole arm."""
        return self.task == 'velocity' or not self.joints

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of the message that the inputs are computed from."""
        measured = tuple(name for name in ('velocity', 'effort') if name in self.features)
        return ('position', *measured)

    def _check_kinds(self) -> None:
        for name in ('network', 'card'):
            value = getattr(self, name)
            _expect(isinstance(value, Mapping), f'{name}: expected names and values, got {value}')
        for name in ('features', 'joints', 'labels'):
            value = getattr(self, name)
            good = isinstance(value, tuple) and all(isinstance(n, str) and n for n in value)
            _expect(good, f'{name}: expected names, got {value}')
        for name in ('input_mean', 'input_scale', 'nominal_rate_hz'):
            value = getattr(self, name)
            good = isinstance(value, tuple) and all(map(_is_number, value))
            _expect(good, f'{name}: expected finite numbers, got {value}')
        for name in ('output_mean', 'output_scale'):
            value = getattr(self, name)
            _expect(_is_number(value), f'{name}: expected a finite number, got {value}')
        _expect(
            0 not in self.input_scale,
            f'input_scale: expected numbers other than 0, got {self.input_scale}',
        )
        _expect(
            len(self.nominal_rate_hz) == 2,
            f'nominal_rate_hz: expected the lowest and the highest, got {self.nominal_rate_hz}',
        )

    def _check_widths(self) -> None:
        n_in, n_out = N_FEATURES, N_STEERING + PARTS_OF_LABEL * len(self.labels)
        if self.readout == 'direct':
            n_joints = len(self.joints) or 1
            n_in = n_joints * sum(FEATURES[name] for name in self.features)
            n_out = len(self.labels) or n_joints
            for name in ('input_mean', 'input_scale'):
                _expect(
                    len(getattr(self, name)) in (0, n_in),
                    f'{name}: expected 0 or {n_in} values, got {len(getattr(self, name))}',
                )
        for name, width in (('n_in', n_in), ('n_out', n_out)):
            got = self.network.get(name)
            _expect(got == width, f'network: expected {name} {width}, got {got}')


def _is_number(value: Any) -> bool:
    # Single precision has to hold it; NaN compares false.
    is_real = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_real and abs(value) < LARGEST_NUMBER


def _expect(truth: bool, sentence: str) -> None:
    if not truth:
        raise SeqmemError(sentence)


def _expect_one_of(name: str, value: Any, choices: tuple[str, ...]) -> None:
    _expect(value in choices, f"{name}: expected one of {', '.join(choices)}, got '{value}'")
