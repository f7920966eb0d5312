"""
Every parameter of the node in one table.

From it they are declared, described and checked, and ``config/seqmem.yaml`` is tested against
it. The fields of :class:`~seqmem_ros.core.options.StreamOptions` appear under their own names.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from seqmem_ros.core.estimators import MODEL_NAMES
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.ros.parameter_spec import AT_ANY_TIME
from seqmem_ros.ros.parameter_spec import AT_START
from seqmem_ros.ros.parameter_spec import BOOL
from seqmem_ros.ros.parameter_spec import DOUBLE
from seqmem_ros.ros.parameter_spec import INTEGER
from seqmem_ros.ros.parameter_spec import ParameterSpec
from seqmem_ros.ros.parameter_spec import STRING
from seqmem_ros.ros.parameter_spec import STRING_ARRAY

# ROS parameters have no empty list with a type; a list with one empty string is typed.
NO_NAMES = ('',)

# Declared by rclpy itself on every node, or for every topic whose QoS may be overridden.
PARAMETERS_OF_RCLPY = ('use_sim_time', 'start_type_description_service', 'qos_overrides.')

PARAMETERS = (
    ParameterSpec(
        'model',
        STRING,
        'auto',
        "What estimates: 'gru', 'lstm' or 'attention' (velocity), 'motion' (labels), a filter, "
        "or 'auto': the model that the weights hold, the shipped GRU without weights",
        choices=MODEL_NAMES,
    ),
    ParameterSpec(
        'weights',
        STRING,
        '',
        'Path of a .safetensors file; empty: the weights that come with the package',
    ),
    ParameterSpec(
        'memory',
        STRING,
        'persistent',
        "'persistent' carries the memory from message to message; 'window' computes each "
        'estimate anew from the last samples',
        choices=('persistent', 'window'),
    ),
    ParameterSpec(
        'window',
        INTEGER,
        5,
        'Samples that a joint needs before its first estimate; must be that of the weights',
        lowest=2,
        highest=1000,
    ),
    ParameterSpec(
        'autostart',
        BOOL,
        True,
        'Configure and activate at start; a failure then ends the process with exit code 1',
        AT_START,
    ),
    ParameterSpec(
        'device',
        STRING,
        'cpu',
        'Where the model runs; for networks of this size the CPU is the fastest',
        AT_START,
        choices=('cpu', 'gpu', 'tpu'),
    ),
    ParameterSpec(
        'publish_diagnostics', BOOL, True, 'Whether to publish on /diagnostics', AT_ANY_TIME
    ),
    ParameterSpec(
        'diagnostics_rate_hz',
        DOUBLE,
        1.0,
        'How often to publish on /diagnostics, in Hz',
        AT_START,
        lowest=0.01,
        highest=100.0,
    ),
    ParameterSpec(
        'joints',
        STRING_ARRAY,
        NO_NAMES,
        "Names of the joints to estimate; ['']: all joints of every message",
    ),
    ParameterSpec(
        'max_gap_s',
        DOUBLE,
        0.25,
        'A longer time in s between two stamps of a joint restarts its memory',
        AT_ANY_TIME,
        lowest=1e-6,
        highest=3600.0,
    ),
    ParameterSpec(
        'zero_stamp',
        STRING,
        'reject',
        "A message without a stamp is refused ('reject') or gets the time of its receipt "
        "('receive_time')",
        choices=('reject', 'receive_time'),
    ),
    ParameterSpec(
        'assume_joint_order',
        STRING_ARRAY,
        NO_NAMES,
        "Joint names, in order, for messages that carry none; ['']: refuse those messages",
    ),
    ParameterSpec(
        'continuous_joints',
        STRING_ARRAY,
        NO_NAMES,
        'Names of joints that turn without end and wrap, such as wheels: the shorter way '
        "round counts as their motion; ['']: none",
    ),
    ParameterSpec(
        'max_velocity_rad_s',
        DOUBLE,
        0.0,
        'A position that would need a higher speed in rad/s is rejected; 0: no limit',
        AT_ANY_TIME,
        lowest=0.0,
        highest=1e6,
    ),
    ParameterSpec(
        'joint_max_velocity',
        STRING_ARRAY,
        NO_NAMES,
        "Such limits for single joints, as 'elbow: 3.1' in rad/s; ['']: none",
        AT_ANY_TIME,
    ),
    ParameterSpec(
        'max_rejected',
        INTEGER,
        5,
        'So many values of a joint rejected in a row restart that joint; as many late '
        'messages in a row restart the joints of their publisher',
        AT_ANY_TIME,
        lowest=1,
        highest=1000000,
    ),
    ParameterSpec(
        'clock_jump_tolerance_s',
        DOUBLE,
        0.1,
        'A stamp that goes back by at most this many s is late, never a clock set back',
        AT_ANY_TIME,
        lowest=0.0,
        highest=3600.0,
    ),
    ParameterSpec(
        'max_merge_age_s',
        DOUBLE,
        0.1,
        'For weights over named joints: messages with some of the joints each are merged if no '
        'value is older than this against the newest, in s; 0: they are refused',
        AT_ANY_TIME,
        lowest=0.0,
        highest=3600.0,
    ),
    ParameterSpec(
        'min_label_duration_s',
        DOUBLE,
        0.0,
        'A new label is told once it has won for this many s without a break',
        AT_ANY_TIME,
        lowest=0.0,
        highest=3600.0,
    ),
    ParameterSpec(
        'min_label_score',
        DOUBLE,
        0.0,
        "A label that wins with a lower probability is told as 'unknown'",
        AT_ANY_TIME,
        lowest=0.0,
        highest=1.0,
    ),
    ParameterSpec(
        'publish_every_n',
        INTEGER,
        1,
        'Publish the first estimate and then every n-th; the memory takes every message',
        AT_ANY_TIME,
        lowest=1,
        highest=1000000,
    ),
)

SPECS = {spec.name: spec for spec in PARAMETERS}


def declare_parameters(node: Node) -> dict[str, Any]:
    """
    Declare all parameters on a node.

    :param node: the node, whose overrides from files and command line apply
    :returns: value of each parameter by name
    :raises SeqmemError: if a value is not allowed
    """
    return {spec.name: _declare(node, spec) for spec in PARAMETERS}


def _declare(node: Node, spec: ParameterSpec) -> Any:
    # First without type and range, since the errors of rclpy name neither choices nor remedy.
    loose = ParameterDescriptor(dynamic_typing=True)
    default = list(spec.default) if spec.type == STRING_ARRAY else spec.default
    given = node.declare_parameter(spec.name, default, loose).value
    # An empty list in a YAML file arrives as a parameter that is not set.
    value = default if given is None else spec.checked(given)
    node.set_parameters([Parameter(spec.name, spec.type, value)])
    node.set_descriptor(spec.name, spec.descriptor())
    return value


def read_parameters(node: Node) -> dict[str, Any]:
    """
    Read all parameters of a node.

    :param node: a node on which they are declared
    :returns: value of each parameter by name
    """
    return {spec.name: spec.checked(node.get_parameter(spec.name).value) for spec in PARAMETERS}


def stream_options(values: dict[str, Any]) -> StreamOptions:
    """
    Collect the parameters that are options of the stream.

    :param values: value of each parameter by name
    :returns: the options
    :raises SeqmemError: if the options do not fit together
    """
    chosen = {}
    for name in StreamOptions.__dataclass_fields__:
        value = values[name]
        is_names = SPECS[name].type == STRING_ARRAY
        chosen[name] = tuple(v for v in value if v) if is_names else value
    return StreamOptions(**chosen)


def unknown_parameters(names: Iterable[str]) -> list[str]:
    """
    Find parameters that were given but that the node does not have.

    :param names: names that were given in files or on the command line
    :returns: for each unknown one a sentence, with the nearest known name
    """
    sentences = []
    for name in names:
        if name in SPECS or name.startswith(PARAMETERS_OF_RCLPY):
            continue
        near = get_close_matches(name, SPECS, n=1)
        hint = f'; did you mean {near[0]}?' if near else ''
        sentences.append(f'parameter {name} is not known to this node and has no effect{hint}')
    return sentences
