"""Processes to compare with, and what a process has taken of the machine."""

import os
from pathlib import Path
import sys
import time

# Above, the ports of a domain are those that the system gives away.
HIGHEST_DOMAIN = 101


def pass_through() -> None:
    """Take JointState and publish it, with nothing but rclpy."""
    import rclpy
    from rclpy.executors import ExternalShutdownException
    from rclpy.node import Node
    from rclpy.qos import QoSProfile
    from rclpy.qos import ReliabilityPolicy
    from sensor_msgs.msg import JointState

    rclpy.init(args=sys.argv)
    node = Node('seqmem')
    publisher = node.create_publisher(JointState, '~/joint_states', 50)
    node.create_subscription(
        JointState, 'joint_states', publisher.publish,
        QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT),
    )  # fmt: skip
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        rclpy.try_shutdown()


def import_only() -> None:
    """Import rclpy and jax, compile a trivial function, and say so."""
    os.environ['JAX_PLATFORMS'] = 'cpu'
    import jax
    import rclpy
    from sensor_msgs.msg import JointState

    rclpy.init()
    node = rclpy.create_node('import_only')
    node.create_publisher(JointState, 'unused', 1)
    jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))
    print('ready', time.time_ns(), flush=True)
    if '--stay' in sys.argv:
        sys.stdin.read()


def own_domain() -> dict[str, str]:
    """
    Keep processes from those of others on the same machine, who would be discovered as well.

    :returns: variables of the environment
    """
    # Not at the top: the peers must not have to import it.
    from seqmem_ros.ros.process import environment_on_this_machine

    return environment_on_this_machine(1 + os.getpid() % HIGHEST_DOMAIN)


def cpu_ns(pid: int) -> int:
    """
    Say how much processor time a process has taken, in all its threads.

    :param pid: number of the process
    :returns: ns
    """
    threads = Path(f'/proc/{pid}/task').iterdir()
    return sum(int((thread / 'schedstat').read_text().split()[0]) for thread in threads)


def resident_mib(pid: int) -> float:
    """
    Say how much memory of a process is resident.

    :param pid: number of the process
    :returns: MiB
    """
    line = next(x for x in Path(f'/proc/{pid}/status').read_text().splitlines() if 'VmRSS' in x)
    return int(line.split()[1]) / 1024


if __name__ == '__main__':
    {'pass_through': pass_through, 'import_only': import_only}[sys.argv.pop(1)]()
