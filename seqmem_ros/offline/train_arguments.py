"""The arguments of ``seqmem train`` as settings: what goes together, and what does not."""

from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import fields
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import SHIPPED
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.weights import load_model
from seqmem_ros.offline.bag_targets import MOTION
from seqmem_ros.offline.degrade import AS_RECORDED
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.train import TrainingOptions
from seqmem_ros.offline.train_bags import BagSetting
from seqmem_ros.offline.train_windows import WindowSetting

BATCH, BATCH_OF_SIMULATION, BATCH_OF_WINDOWS = 16, 48, 64
LEARNING_RATE, FINE_TUNING_RATE = 3e-3, 3e-4


@dataclass(frozen=True)
class Job:
    """The arguments of ``seqmem train``; see its help."""

    bags: list[str]
    out: str
    task: str | None = None
    model: str | None = None
    hidden: int | None = None
    layers: int | None = None
    attention_window: int | None = None
    start_from: str | None = None
    together: bool | None = None
    features: tuple[str, ...] | None = None
    simulate: int = 0
    topic: str | None = None
    labels: list[str] | None = None
    windows: str | None = None
    rate: float = 100.0
    target: str = 'reference'
    split: str = 'block'
    hold_out: float = 0.2
    bits: int = 14
    noise: float = 0.0
    drop: float = 0.01
    no_degrade: bool = False
    joints: tuple[str, ...] = ()
    continuous_joints: tuple[str, ...] = ()
    max_gap: float = 0.25
    zero_stamp: str = 'reject'
    steps: int = 1500
    batch: int | None = None
    chunk: int = 128
    learning_rate: float | None = None
    seed: int = 0
    resume: bool = False

    def __post_init__(self) -> None:
        if self.simulate < 0:
            raise SeqmemError(f'simulate: expected a number of steps, got {self.simulate}')

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Name the arguments."""
        return tuple(field.name for field in fields(cls))

    @property
    def asked(self) -> dict[str, Any]:
        """What an interrupted training and its continuation must agree on."""
        return {name: value for name, value in asdict(self).items() if name != 'resume'}


def start_of(job: Job) -> SequenceModel | None:
    """
    Load the model to go on from.

    :param job: the arguments
    :returns: the model; None for a fresh one
    :raises SeqmemError: if it does not fit the other arguments
    """
    if job.start_from is None:
        return None
    given = [
        name
        for name in ('model', 'hidden', 'layers', 'attention_window', 'features', 'together')
        if getattr(job, name) is not None
    ]
    if given:
        raise SeqmemError(
            'start-from: it says model, sizes and inputs; expected beside it no '
            f'{", ".join(given)}'
        )
    model = load_model(SHIPPED.get(job.start_from, Path(job.start_from)))
    if job.task not in (None, model.spec.task):
        raise SeqmemError(
            f'start-from: expected a model for {job.task}, {job.start_from} is one for '
            f'{model.spec.task}'
        )
    return model


def options_of(job: Job, start: SequenceModel | None) -> TrainingOptions:
    """
    Say what to train and for how long.

    :param job: the arguments
    :param start: from :func:`start_of`
    :returns: the options
    :raises SeqmemError: if one is out of its range
    """
    task = start.spec.task if start else job.task or ('label' if job.windows else 'velocity')
    rate = FINE_TUNING_RATE if start else LEARNING_RATE
    default = BATCH if job.bags else BATCH_OF_WINDOWS if job.windows else BATCH_OF_SIMULATION
    model = job.model or 'gru'
    return TrainingOptions(
        task=task,
        model=start.kind if start else model,
        hidden_size=32 if job.hidden is None else job.hidden,
        n_layers=1 if job.layers is None else job.layers,
        n_steps=job.steps if job.bags or job.windows else job.simulate,
        batch_size=default if job.batch is None else job.batch,
        learning_rate=rate if job.learning_rate is None else job.learning_rate,
        seed=job.seed,
        attention_window=5 if job.attention_window is None else job.attention_window,
    )


def window_options(job: Job, options: TrainingOptions, length: int) -> TrainingOptions:
    """
    Let attention look at whole windows, unless something else was asked for.

    :param job: the arguments
    :param options: from :func:`options_of`
    :param length: of the windows
    :returns: the options
    """
    # So wide a memory sees in a stream exactly what it saw in a window.
    window = length if job.attention_window is None else job.attention_window
    return replace(options, attention_window=window)


def bag_setting(job: Job, start: SequenceModel | None, options: TrainingOptions) -> BagSetting:
    """
    Say how bags are learned from.

    :param job: the arguments
    :param start: from :func:`start_of`
    :param options: from :func:`options_of`
    :returns: the setting
    :raises SeqmemError: if arguments do not go together
    """
    whole_arm = options.task == 'label' and job.labels not in (None, [MOTION])
    together = whole_arm if job.together is None else job.together
    default = ('position', 'lag_velocity') if options.task == 'label' else ('lag_velocity',)
    degradation = Degradation(job.bits, job.noise, job.drop, seed=job.seed)
    if job.labels and options.task == 'velocity':
        raise SeqmemError("labels: expected --task label beside it, got 'velocity'")
    if together and not whole_arm and options.task == 'label':
        raise SeqmemError(
            'labels: those of motion belong to a joint; expected --labels beside --joints-together'
        )
    if job.features and not together and not job.windows:
        raise SeqmemError('features: expected --joints-together beside it')
    return BagSetting(
        topic=job.topic,
        labels=tuple(job.labels or (MOTION,)),
        together=bool(start.spec.joints) if start else together,
        features=job.features or default,
        target=job.target,
        split=job.split,
        hold_out=job.hold_out,
        chunk=job.chunk,
        degradation=AS_RECORDED if job.no_degrade else degradation,
        options=StreamOptions(
            joints=job.joints,
            max_gap_s=job.max_gap,
            zero_stamp=job.zero_stamp,
            continuous_joints=job.continuous_joints,
        ),
    )


def window_setting(job: Job) -> WindowSetting:
    """
    Say how windows are learned from.

    :param job: the arguments
    :returns: the setting
    :raises SeqmemError: if one is out of its range
    """
    features = job.features or ('position', 'lag_velocity')
    return WindowSetting(job.joints, features, job.rate, job.hold_out)


def check_simulation(
    job: Job, setting: BagSetting, options: TrainingOptions, start: SequenceModel | None
) -> None:
    """
    Refuse what a simulation of single joints cannot teach.

    :param job: the arguments
    :param setting: from :func:`bag_setting`
    :param options: from :func:`options_of`
    :param start: from :func:`start_of`
    :raises SeqmemError: says what does not go together
    """
    if not job.simulate:
        return
    if setting.together or job.windows:
        raise SeqmemError(
            'simulate: it makes single joints, for a shared network; expected neither --windows '
            'nor --joints-together nor --labels of a whole arm beside it'
        )
    if start and start.spec.readout != 'observer':
        raise SeqmemError(
            f'simulate: it teaches networks that steer a filter; {job.start_from} gives its '
            'estimate itself; leave one of --simulate and --start-from out'
        )
    if options.task == 'label' and setting.labels != (MOTION,):
        raise SeqmemError('simulate: its labels are those of motion; expected no other --labels')
