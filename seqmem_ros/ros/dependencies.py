"""What to say when a package cannot be imported. Imports nothing that could be missing."""

import os


def is_dependency(error: Exception) -> bool:
    """
    Tell a package that is not installed from a fault in this one.

    :param error: what was raised
    :returns: whether it is a failed import of another package
    """
    return isinstance(error, ImportError) and not (error.name or '').startswith('seqmem_ros')


def missing_dependency(error: ImportError, executable: str) -> str:
    """
    Tell which package is missing, for which interpreter, and how to get it.

    :param error: what the import raised
    :param executable: path of the Python interpreter
    :returns: one sentence
    """
    package = (error.name or '').partition('.')[0]
    why = ' '.join(str(error).split())
    return f"expected to import '{package}' with {executable}, got: {why}; {_remedy(package)}"


def _remedy(package: str) -> str:
    distribution = os.environ.get('ROS_DISTRO', '<distro>')
    if package == 'rclpy' or package.endswith(('_msgs', '_srvs', '_interfaces')):
        return (
            f'source /opt/ros/{distribution}/setup.bash, install '
            f'ros-{distribution}-{package.replace("_", "-")}, or, on a machine without ROS, '
            "pip install 'seqmem_ros[ros]'"
        )
    return f'install it for this interpreter: python3 -m pip install {package}'
