"""Joint states of any kind, for tests that read and write them."""

from array import array

from builtin_interfaces.msg import Time
from hypothesis import strategies as st
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

INT32 = st.integers(-(2**31), 2**31 - 1)
UINT32 = st.integers(0, 2**32 - 1)
# rclpy ends a text at its first zero, and cannot encode half of a pair.
TEXTS = st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), max_size=9)
NAMES = st.lists(TEXTS, max_size=8)
# Of the bits of a double, so that every NaN and both zeros come.
DOUBLES = st.lists(st.binary(min_size=8, max_size=8), max_size=8).map(
    lambda each: array('d', b''.join(each))
)


@st.composite
def joint_states(draw):
    """Make a message whose fields have any length."""
    return JointState(
        header=Header(stamp=Time(sec=draw(INT32), nanosec=draw(UINT32)), frame_id=draw(TEXTS)),
        name=draw(NAMES),
        position=draw(DOUBLES),
        velocity=draw(DOUBLES),
        effort=draw(DOUBLES),
    )
