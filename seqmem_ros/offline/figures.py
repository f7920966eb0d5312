"""All pictures of a result, as files that a page can hold."""

from collections.abc import Callable
from collections.abc import Iterator
from io import BytesIO
import re
from typing import NamedTuple

from matplotlib.figure import Figure

from seqmem_ros.offline.labels import LabelScore
from seqmem_ros.offline.plot_health import plot_health
from seqmem_ros.offline.plot_joint import plot_joint
from seqmem_ros.offline.plot_labels import plot_confusion
from seqmem_ros.offline.plot_labels import plot_delay
from seqmem_ros.offline.plot_labels import plot_timeline
from seqmem_ros.offline.plot_overall import plot_joint_errors
from seqmem_ros.offline.plot_overall import plot_lag
from seqmem_ros.offline.plot_style import joints_by_speed
from seqmem_ros.offline.plot_style import velocities
from seqmem_ros.offline.result import Result

DPI = 110


class Picture(NamedTuple):
    """
    One figure.

    :ivar name: of its file, without suffix
    :ivar title: for people
    :ivar png: the file
    :ivar detail: whether it may be folded away at first
    """

    name: str
    title: str
    png: bytes
    detail: bool = False


def make_pictures(
    result: Result, on_picture: Callable[[int], object] = lambda count: None
) -> list[Picture]:
    """
    Draw everything there is to see.

    :param result: of an evaluation
    :param on_picture: called with 1 after each
    :returns: overall figures first, then joints, the fastest first
    """
    pictures = []
    for name, title, figure, detail in _figures(result):
        pictures.append(Picture(name, title, to_png(figure), detail))
        on_picture(1)
    return pictures


def count_pictures(result: Result) -> int:
    """
    Say how many pictures there will be.

    :param result: of an evaluation
    :returns: their number
    """
    labels = sum(isinstance(each.total, LabelScore) for each in result.estimators.values())
    return 1 + 3 * labels + (2 + len(result.recording.names) if velocities(result) else 0)


def to_png(figure: Figure) -> bytes:
    """
    Draw a figure.

    :param figure: the figure
    :returns: a PNG file
    """
    buffer = BytesIO()
    figure.savefig(buffer, format='png', dpi=DPI)
    return buffer.getvalue()


def slug(text: str) -> str:
    """
    Make a name for a file.

    :param text: any text
    :returns: letters, digits, dots, dashes and underscores alone
    """
    return re.sub(r'[^A-Za-z0-9._-]+', '_', text).strip('_.') or 'unnamed'


def _figures(result: Result) -> Iterator[tuple[str, str, Figure, bool]]:
    names = result.recording.names
    if velocities(result):
        yield 'rmse_against_lag', 'Error against lag', plot_lag(result), False
        yield 'rmse_per_joint', 'Error of each joint', plot_joint_errors(result), False
    for name, each in result.estimators.items():
        if isinstance(each.total, LabelScore):
            file = slug(name)
            yield f'confusion_{file}', f'{name}: confusion', plot_confusion(each), False
            yield f'timeline_{file}', f'{name}: timeline', plot_timeline(result, each), False
            yield f'delay_{file}', f'{name}: delay', plot_delay(each), False
    yield 'health', 'The recording', plot_health(result), False
    if velocities(result):
        for place, joint in enumerate(joints_by_speed(result)):
            still = not result.moving[joint]
            title = f'{names[joint]} (never moves)' if still else names[joint]
            hidden = place > 5 or (still and place > 0)
            yield f'joint_{slug(names[joint])}', title, plot_joint(result, joint), hidden
