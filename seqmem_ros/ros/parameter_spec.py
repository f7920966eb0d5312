"""What there is to know about one parameter, and how its values are checked."""

from dataclasses import dataclass
import json
from typing import Any

from rcl_interfaces.msg import FloatingPointRange
from rcl_interfaces.msg import IntegerRange
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.parameter import Parameter

from seqmem_ros.core.errors import SeqmemError

BOOL = Parameter.Type.BOOL
INTEGER = Parameter.Type.INTEGER
DOUBLE = Parameter.Type.DOUBLE
STRING = Parameter.Type.STRING
STRING_ARRAY = Parameter.Type.STRING_ARRAY

TYPE_IN_WORDS = {
    BOOL: 'true or false',
    INTEGER: 'a whole number',
    DOUBLE: 'a number',
    STRING: 'a string',
    STRING_ARRAY: 'a list of strings',
}

AT_START = 'at start'
ON_CONFIGURE = 'on configure'
AT_ANY_TIME = 'at any time'


@dataclass(frozen=True)
class ParameterSpec:
    """
    What there is to know about one parameter.

    :param name: its name
    :param type: its type
    :param default: its default value
    :param description: what it does, with its unit
    :param when: when a new value takes effect: ``AT_START`` (read-only), ``ON_CONFIGURE`` or
        ``AT_ANY_TIME``
    :param choices: allowed strings; empty: any
    :param lowest: smallest allowed number
    :param highest: largest allowed number
    """

    name: str
    type: Parameter.Type
    default: Any
    description: str
    when: str = ON_CONFIGURE
    choices: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None

    def checked(self, value: Any) -> Any:
        """
        Check a value, and bring it into the type of this parameter.

        :param value: as it came from a file, a command line or ``ros2 param set``
        :returns: the value; an integer becomes a float where a float is meant
        :raises SeqmemError: if the type, the choice or the range is wrong
        """
        if not self._has_type(value):
            raise self._error(TYPE_IN_WORDS[self.type], value)
        if self.choices and value not in self.choices:
            raise self._error('one of ' + ', '.join(self.choices), value)
        # Written so that NaN, which compares false, is refused.
        if self.lowest is not None and not self.lowest <= value <= self.highest:
            raise self._error(f'{self.lowest:.12g} to {self.highest:.12g}', value)
        if self.type == DOUBLE:
            return float(value)
        return list(value) if self.type == STRING_ARRAY else value

    def descriptor(self) -> ParameterDescriptor:
        """
        Describe this parameter to ``ros2 param describe``.

        :returns: the descriptor, with its range
        """
        descriptor = ParameterDescriptor(
            name=self.name,
            type=self.type.value,
            description=self.description,
            additional_constraints=self._constraints(),
            read_only=self.when == AT_START,
            dynamic_typing=True,
        )
        if self.type == DOUBLE and self.lowest is not None:
            descriptor.floating_point_range = [
                FloatingPointRange(from_value=self.lowest, to_value=self.highest)
            ]
        if self.type == INTEGER and self.lowest is not None:
            descriptor.integer_range = [
                IntegerRange(from_value=self.lowest, to_value=self.highest, step=1)
            ]
        return descriptor

    def _constraints(self) -> str:
        choices = f'one of: {", ".join(self.choices)}; ' if self.choices else ''
        return f'{choices}takes effect {self.when}'

    def _has_type(self, value: Any) -> bool:
        if self.type == BOOL:
            return isinstance(value, bool)
        if self.type == INTEGER:
            return isinstance(value, int) and not isinstance(value, bool)
        if self.type == DOUBLE:
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        if self.type == STRING:
            return isinstance(value, str)
        return isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value)

    def _error(self, expected: str, value: Any) -> SeqmemError:
        shown = f"'{value}'" if isinstance(value, str) else value
        return SeqmemError(
            f'parameter {self.name}: expected {expected}, got {shown}; set it to such a value, '
            f'or leave it out for the default {json.dumps(self.default)}'
        )
