"""The table of parameters: against the options, the models and the file that users read."""

import math
from pathlib import Path
import re

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

import rclpy
from rclpy.context import Context
from rclpy.parameter import Parameter
import yaml

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import MODEL_NAMES
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.ros.parameter_spec import AT_START
from seqmem_ros.ros.parameter_spec import STRING_ARRAY
from seqmem_ros.ros.parameters import declare_parameters
from seqmem_ros.ros.parameters import PARAMETERS
from seqmem_ros.ros.parameters import read_parameters
from seqmem_ros.ros.parameters import SPECS
from seqmem_ros.ros.parameters import stream_options
from seqmem_ros.ros.parameters import unknown_parameters

CONFIG = Path(__file__).parents[2] / 'config' / 'seqmem.yaml'


@pytest.fixture
def make_node(ros_domain):
    context = Context()
    rclpy.init(args=[], context=context)
    nodes = []

    def make(**overrides):
        parameters = [Parameter(name, value=value) for name, value in overrides.items()]
        nodes.append(
            rclpy.create_node('declares', context=context, parameter_overrides=parameters)
        )
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown(context=context)


def test_every_option_of_the_stream_is_a_parameter_with_its_default():
    assert stream_options({spec.name: spec.default for spec in PARAMETERS}) == StreamOptions()


def test_every_model_can_be_chosen():
    assert SPECS['model'].choices == MODEL_NAMES


def test_the_file_has_each_parameter_with_its_default_and_no_other():
    ((address, content),) = yaml.safe_load(CONFIG.read_text()).items()
    assert address == '/**'
    defaults = {
        spec.name: list(spec.default) if spec.type == STRING_ARRAY else spec.default
        for spec in PARAMETERS
    }
    assert content == {'ros__parameters': defaults}
    for name, value in content['ros__parameters'].items():
        assert type(value) is type(defaults[name]), name
        assert value != [], name


def test_the_file_loads_as_it_is(ros_domain):
    context = Context()
    arguments = ['--ros-args', '--params-file', str(CONFIG)]
    rclpy.init(args=arguments, context=context)
    try:
        node = rclpy.create_node('any_name', namespace='any/where', context=context)
        assert {'model', 'joints'} <= set(node._parameter_overrides)
        defaults = {
            spec.name: list(spec.default) if spec.type == STRING_ARRAY else spec.default
            for spec in PARAMETERS
        }
        assert declare_parameters(node) == defaults
        node.destroy_node()
    finally:
        rclpy.try_shutdown(context=context)


def test_the_file_explains_each_parameter():
    lines = CONFIG.read_text().splitlines()
    for spec in PARAMETERS:
        (at,) = [k for k, line in enumerate(lines) if line.startswith(f'    {spec.name}:')]
        comment = []
        while lines[at - 1].strip().startswith('#'):
            at -= 1
            comment.append(lines[at])
        words = re.findall(r'\w+', ' '.join(comment))
        assert len(words) >= 8, spec.name


def test_units_are_told():
    for spec in PARAMETERS:
        for suffix, unit in (('_s', ' s'), ('_hz', 'Hz'), ('_rad_s', 'rad/s')):
            if spec.name.endswith(suffix):
                assert unit in spec.description, spec.name


def test_a_node_declares_all_of_them(make_node):
    node = make_node()
    values = declare_parameters(node)
    assert values == read_parameters(node)
    for spec in PARAMETERS:
        parameter = node.get_parameter(spec.name)
        descriptor = node.describe_parameter(spec.name)
        assert parameter.type_ == spec.type
        assert descriptor.description == spec.description
        assert descriptor.read_only == (spec.when == AT_START)


def test_an_integer_is_taken_for_a_double(make_node):
    values = declare_parameters(make_node(max_gap_s=2))
    assert values['max_gap_s'] == 2.0
    assert isinstance(values['max_gap_s'], float)


def test_a_value_that_is_not_set_is_the_default(make_node):
    # What rcl makes of an empty list in a file.
    assert declare_parameters(make_node(joints=None))['joints'] == ['']


@pytest.mark.parametrize(
    'name',
    [
        'max_gap_s',
        'max_velocity_rad_s',
        'clock_jump_tolerance_s',
        'max_merge_age_s',
        'min_label_duration_s',
        'min_label_score',
    ],
)
@pytest.mark.parametrize('value', [math.nan, math.inf, -1.0])
def test_numbers_that_are_none_are_refused(name, value):
    with pytest.raises(SeqmemError, match=f'parameter {name}: expected .* to .*, got {value}'):
        SPECS[name].checked(value)


@pytest.mark.parametrize(
    'name, value, expected',
    [
        ('autostart', 1, 'expected true or false, got 1; {} true'),
        ('window', True, 'expected a whole number, got True; {} 5'),
        ('window', 5.0, 'expected a whole number, got 5.0; {} 5'),
        ('max_gap_s', False, 'expected a number, got False; {} 0.25'),
        ('weights', 1, 'expected a string, got 1; {} ""'),
        ('joints', 'elbow', 'expected a list of strings, got \'elbow\'; {} [""]'),
        (
            'zero_stamp',
            'maybe',
            'expected one of reject, receive_time, got \'maybe\'; {} "reject"',
        ),
        ('max_rejected', 0, 'expected 1 to 1000000, got 0; {} 5'),
    ],
)
def test_each_error_tells_what_was_expected_what_came_and_what_to_do(
    make_node, name, value, expected
):
    with pytest.raises(SeqmemError) as error:
        declare_parameters(make_node(**{name: value}))
    remedy = 'set it to such a value, or leave it out for the default'
    assert str(error.value) == f'parameter {name}: {expected.format(remedy)}'


def test_an_empty_name_is_no_name():
    values = {spec.name: spec.default for spec in PARAMETERS}
    options = stream_options(values | {'joints': ['', 'elbow'], 'continuous_joints': ['']})
    assert options.joints == ('elbow',)
    assert options.continuous_joints == ()


def test_a_misspelt_name_is_told_with_the_right_one():
    given = ['max_gap', 'use_sim_time', 'qos_overrides./joint_states.subscription.depth', 'model']
    assert unknown_parameters(given) == [
        'parameter max_gap is not known to this node and has no effect; did you mean max_gap_s?'
    ]
    assert unknown_parameters(['zzz']) == [
        'parameter zzz is not known to this node and has no effect'
    ]
