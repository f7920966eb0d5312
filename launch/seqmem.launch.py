"""
Start the node; without any argument with the GRU that comes with the package.

Nothing that is declared here is left behind in a launch file that includes this one. The other
way round, launch hands on whatever is set there: give all arguments that matter, as
two_arms.launch.py does.
"""

from launch.actions import DeclareLaunchArgument
from launch.actions import OpaqueFunction
from launch.actions import PopLaunchConfigurations
from launch.actions import PushLaunchConfigurations
from launch.substitutions import LaunchConfiguration
from launch.substitutions import PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext
from launch import LaunchDescription

# Passed to the node only where given, so that what is not given is as the file says.
PARAMETERS = {'model': str, 'weights': str, 'use_sim_time': bool, 'autostart': bool}


def generate_launch_description() -> LaunchDescription:
    """
    Declare the arguments and start one node.

    :returns: the description
    """
    default_file = PathJoinSubstitution([FindPackageShare('seqmem_ros'), 'config', 'seqmem.yaml'])
    return LaunchDescription(
        [
            PushLaunchConfigurations(),
            DeclareLaunchArgument(
                'model',
                default_value='',
                description='gru, lstm, attention (velocity), motion (labels), or a filter: '
                'kalman, tracking, savgol, line, quadratic, cubic, one_euro, super_twisting, '
                'lowpass, difference; empty: as in params_file (auto)',
            ),
            DeclareLaunchArgument(
                'weights',
                default_value='',
                description='path of a .safetensors file; empty: as in params_file (the weights '
                'that come with the package)',
            ),
            DeclareLaunchArgument(
                'params_file',
                default_value=default_file,
                description='path of a YAML file with the parameters of the node',
            ),
            DeclareLaunchArgument(
                'namespace', default_value='', description='namespace of the node'
            ),
            DeclareLaunchArgument(
                'joint_states_topic',
                default_value='joint_states',
                description='topic to read; a relative name lies in the namespace',
            ),
            DeclareLaunchArgument(
                'use_sim_time',
                default_value='',
                description='whether time comes from /clock (true or false); empty: as in '
                'params_file (false)',
            ),
            DeclareLaunchArgument(
                'log_level',
                default_value='info',
                description='what is logged: debug, info, warn, error or fatal',
            ),
            DeclareLaunchArgument(
                'autostart',
                default_value='',
                description='whether the node configures and activates itself (true or false); '
                'empty: as in params_file (true)',
            ),
            OpaqueFunction(function=_node),
            PopLaunchConfigurations(),
        ]
    )


def _node(context: LaunchContext) -> list[Node]:
    given = {
        name: ParameterValue(LaunchConfiguration(name), value_type=value_type)
        for name, value_type in PARAMETERS.items()
        if LaunchConfiguration(name).perform(context)
    }
    return [
        Node(
            package='seqmem_ros',
            executable='seqmem_node',
            name='seqmem',
            namespace=LaunchConfiguration('namespace'),
            parameters=[LaunchConfiguration('params_file'), given],
            remappings=[('joint_states', LaunchConfiguration('joint_states_topic'))],
            arguments=['--ros-args', '--log-level', LaunchConfiguration('log_level')],
            output='screen',
        )
    ]
