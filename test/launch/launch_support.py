"""
What the launch tests share.

They start what a user starts, so the launch files must find the package by its name. Where it
is not installed, a prefix is laid out as ``colcon build --symlink-install`` would, and removed
at the end.
"""

import atexit
import os
from pathlib import Path
import shutil
import sys
import tempfile

from ament_index_python.packages import get_package_prefix

REPOSITORY = Path(__file__).parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / 'test' / 'ros')]

from launch.actions import IncludeLaunchDescription  # noqa: E402
from launch.substitutions import PathJoinSubstitution  # noqa: E402
from launch_ros.substitutions import FindPackageShare  # noqa: E402
from launch_testing.actions import ReadyToTest  # noqa: E402
from ros_harness import Domain  # noqa: E402
from ros_harness import Harness  # noqa: E402

from launch import LaunchDescription  # noqa: E402
from seqmem_ros.ros.process import environment_on_this_machine  # noqa: E402

SCRIPT = f"""#!{sys.executable}
import sys

from seqmem_ros.ros.node import main

sys.exit(main())
"""


def describe(
    file: str, arguments: dict[str, str], before: tuple = (), after: tuple = ()
) -> LaunchDescription:
    """Launch a file of the package, between other actions, in a ROS domain of its own."""
    _find_package()
    os.environ.update(environment_on_this_machine(_domain().number))
    path = PathJoinSubstitution([FindPackageShare('seqmem_ros'), 'launch', file])
    include = IncludeLaunchDescription(path, launch_arguments=arguments.items())
    return LaunchDescription([*before, include, *after, ReadyToTest()])


def make_harness() -> Harness:
    """Make a node of the test in the same domain."""
    return Harness(_domain().number)


def temporary_folder() -> Path:
    """Make a folder that is gone when the tests end."""
    folder = Path(tempfile.mkdtemp(prefix='seqmem_launch_'))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _domain(held: list[Domain] = []) -> Domain:  # noqa: B006  (one for the whole process)
    if not held:
        held.append(Domain())
    return held[0]


def _find_package() -> None:
    try:
        get_package_prefix('seqmem_ros')
    except (LookupError, OSError):
        prefix = _lay_out(temporary_folder())
        for name, path in (('AMENT_PREFIX_PATH', prefix), ('PYTHONPATH', REPOSITORY)):
            paths = [str(path), os.environ.get(name, '')]
            os.environ[name] = os.pathsep.join(filter(None, paths))


def _lay_out(prefix: Path) -> Path:
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
    share = prefix / 'share' / 'seqmem_ros'
    scripts = prefix / 'lib' / 'seqmem_ros'
    for folder in (index, share, scripts):
        folder.mkdir(parents=True)
    (index / 'seqmem_ros').touch()
    for name in ('launch', 'config'):
        (share / name).symlink_to(REPOSITORY / name)
    script = scripts / 'seqmem_node'
    script.write_text(SCRIPT)
    script.chmod(0o755)
    return prefix
