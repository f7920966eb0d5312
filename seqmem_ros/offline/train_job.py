"""What ``seqmem train`` does, from its arguments to one weights file with its own card."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import fields
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from seqmem_ros import __version__
from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import SHIPPED
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.weights import file_digest
from seqmem_ros.core.weights import load_model
from seqmem_ros.core.weights import save_model
from seqmem_ros.offline.degrade import AS_RECORDED
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.fit_simulated import fit_simulated
from seqmem_ros.offline.fit_simulated import score_simulated
from seqmem_ros.offline.resumable import History
from seqmem_ros.offline.resumable import Progress
from seqmem_ros.offline.train import TrainingOptions
from seqmem_ros.offline.train_bags import BagSetting
from seqmem_ros.offline.train_bags import MOTION
from seqmem_ros.offline.train_bags import study
from seqmem_ros.offline.train_bags import train_on_bags
from seqmem_ros.offline.train_report import score_lines
from seqmem_ros.offline.train_windows import train_on_windows
from seqmem_ros.offline.train_windows import WindowSetting
from seqmem_ros.offline.windows_file import read_windows

BATCH, BATCH_OF_SIMULATION, BATCH_OF_WINDOWS = 16, 48, 64
LEARNING_RATE, FINE_TUNING_RATE = 3e-3, 3e-4

Bar = Callable[[int, str], AbstractContextManager[Progress]]
Say = Callable[[str], None]


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

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Name the arguments."""
        return tuple(field.name for field in fields(cls))

    @property
    def asked(self) -> dict[str, Any]:
        """What an interrupted training and its continuation must agree on."""
        return {name: value for name, value in asdict(self).items() if name != 'resume'}


@dataclass(frozen=True, eq=False)
class Trained:
    """
    What came out.

    :ivar model: as written, with its card
    :ivar history: of the last part of the training
    :ivar simulated: of the part on simulation before it, if there was one
    :ivar path: of the weights file
    """

    model: SequenceModel
    history: History
    simulated: History | None
    path: Path

    @property
    def title(self) -> str:
        """Name it in a picture."""
        return f'{self.path.name}: {self.model.kind}, {self.model.spec.task}'

    def to_json(self) -> dict[str, Any]:
        """
        Lay it out as plain JSON.

        :returns: file, digest, card and histories
        """
        histories = {'history': self.history}
        if self.simulated is not None:
            histories['simulated'] = self.simulated
        return {
            'weights': str(self.path),
            'digest': file_digest(self.path),
            **self.model.spec.card,
            **{name: _history_json(history) for name, history in histories.items()},
        }


def run_job(job: Job, bar: Bar, say: Say) -> Trained:
    """
    Train.

    :param job: what is asked for
    :param bar: makes what shows the progress, from the number of steps and a word
    :param say: called with each line for people
    :returns: what came out; the weights file is written
    :raises SeqmemError: if something that was asked for cannot be
    """
    start = _start(job)
    options = _options(job, start)
    setting = _bag_setting(job, start, options)
    _check_simulation(job, setting, options)
    studied = None
    if job.bags:
        spec = start.spec if start else None
        studied = study(job.bags, options, setting, spec)
        _say_all(say, studied.findings)
    simulated, findings = None, {}
    if job.simulate:
        model, simulated = _simulated(job, options, start, bar)
        # The spec of a training on bags says what was recorded, that of one before it does not.
        start, history = model, simulated
        findings = {'simulation': f'{job.simulate} steps on simulated joints'}
        scores = {} if job.bags else score_simulated(model, options.n_samples)
    checkpoint = f'{job.out}.checkpoint'
    resume = job.resume and (Path(checkpoint).is_file() or not job.simulate)
    if studied is not None:
        with bar(job.steps, 'bags') as progress:
            model, history, scores = train_on_bags(
                studied, options, setting, start, checkpoint, resume, progress, job.asked
            )
        findings = {**studied.findings, **findings}
    elif job.windows:
        windows, chosen = read_windows(job.windows), _window_setting(job)
        options = _window_options(job, options, windows.x.shape[1])
        with bar(job.steps, 'windows') as progress:
            model, history, scores, findings = train_on_windows(
                windows, options, chosen, start, checkpoint, resume, progress, job.asked
            )
        _say_all(say, findings)
    card = _card(job, options, setting, findings, scores)
    model = SequenceModel(replace(model.spec, card=card), model.network)
    save_model(job.out, model)
    for path in (checkpoint, f'{job.out}.simulated.checkpoint'):
        Path(path).unlink(missing_ok=True)
    _say_all(say, score_lines(model.spec, scores))
    size_kb = Path(job.out).stat().st_size / 1000
    _say_all(say, {'written': f'{job.out}, {size_kb:.0f} kB, digest {file_digest(job.out)}'})
    return Trained(model, history, simulated, Path(job.out))


def _start(job: Job) -> SequenceModel | None:
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


def _options(job: Job, start: SequenceModel | None) -> TrainingOptions:
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


def _window_options(job: Job, options: TrainingOptions, length: int) -> TrainingOptions:
    # So wide a memory sees in a stream exactly what it saw in a window.
    window = length if job.attention_window is None else job.attention_window
    return replace(options, attention_window=window)


def _bag_setting(job: Job, start: SequenceModel | None, options: TrainingOptions) -> BagSetting:
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


def _window_setting(job: Job) -> WindowSetting:
    features = job.features or ('position', 'lag_velocity')
    return WindowSetting(job.joints, features, job.rate, job.hold_out)


def _check_simulation(job: Job, setting: BagSetting, options: TrainingOptions) -> None:
    if not job.simulate:
        return
    if job.simulate < 1:
        raise SeqmemError(f'simulate: expected a number of steps, got {job.simulate}')
    if setting.together or job.windows:
        raise SeqmemError(
            'simulate: it makes single joints, for a shared network; expected neither --windows '
            'nor --joints-together nor --labels of a whole arm beside it'
        )
    if options.task == 'label' and setting.labels != (MOTION,):
        raise SeqmemError('simulate: its labels are those of motion; expected no other --labels')


def _simulated(
    job: Job, options: TrainingOptions, start: SequenceModel | None, bar: Bar
) -> tuple[SequenceModel, History]:
    checkpoint = f'{job.out}.simulated.checkpoint'
    batch = BATCH_OF_SIMULATION if job.batch is None else job.batch
    options = replace(options, n_steps=job.simulate, batch_size=batch)
    with bar(job.simulate, 'simulation') as progress:
        return fit_simulated(options, start, checkpoint, job.resume, progress, job.asked)


def _card(
    job: Job,
    options: TrainingOptions,
    setting: BagSetting,
    findings: dict[str, str],
    scores: dict[str, Any],
) -> dict[str, Any]:
    training = {**asdict(options), 'simulated_steps': job.simulate, 'start_from': job.start_from}
    if job.start_from:
        for name in ('hidden_size', 'n_layers', 'attention_window'):
            training.pop(name)
    if job.bags:
        training |= {
            'target': setting.target if options.task == 'velocity' else None,
            'degradation': str(setting.degradation),
            'chunk': setting.chunk,
        }
    versions = {name: version(name) for name in ('jax', 'numpy', 'optax')}
    training |= {**findings, 'seqmem_ros': __version__, **versions}
    return {
        'training': {name: value for name, value in training.items() if value is not None},
        'scores': scores,
    }


def _say_all(say: Say, lines: dict[str, str]) -> None:
    for name, text in lines.items():
        first, *rest = text.split('\n')
        say('\n'.join([f'{name:<13}{first}', *(f'{"":<13}{line}' for line in rest)]))


def _history_json(history: History) -> dict[str, Any]:
    return {
        'loss': [float(f'{loss:.6g}') if np.isfinite(loss) else None for loss in history.losses],
        'held_out': [[step, float(f'{loss:.6g}')] for step, loss in history.checks],
    }
