"""
Start a node for each of two arms, in the namespaces ``left`` and ``right``.

An example to copy: the group keeps the arguments of one arm from reaching the other, or
whatever else the file that includes this one starts; and what is given here in full cannot come
from that file by accident.
"""

from launch.actions import DeclareLaunchArgument
from launch.actions import GroupAction
from launch.actions import IncludeLaunchDescription
from launch.actions import PopLaunchConfigurations
from launch.actions import PushLaunchConfigurations
from launch.substitutions import LaunchConfiguration
from launch.substitutions import PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """
    Include the launch file of the node once for each arm.

    :returns: the description
    """
    return LaunchDescription(
        [
            PushLaunchConfigurations(),
            DeclareLaunchArgument(
                'left_model', default_value='gru', description='model of the left arm'
            ),
            DeclareLaunchArgument(
                'right_model', default_value='gru', description='model of the right arm'
            ),
            _arm('left'),
            _arm('right'),
            PopLaunchConfigurations(),
        ]
    )


def _arm(side: str) -> GroupAction:
    file = PathJoinSubstitution([FindPackageShare('seqmem_ros'), 'launch', 'seqmem.launch.py'])
    arguments = {
        'namespace': side,
        'model': LaunchConfiguration(f'{side}_model'),
        'weights': '',
        'joint_states_topic': 'joint_states',
    }
    return GroupAction(
        [IncludeLaunchDescription(file, launch_arguments=arguments.items())], scoped=True
    )
