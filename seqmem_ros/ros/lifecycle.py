"""The managed node: what happens on each transition."""

import gc
from pathlib import Path
import sys
import time
from typing import Any

from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode
from rclpy.lifecycle import LifecycleState
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.subscription import Subscription
from std_srvs.srv import Trigger

from seqmem_ros.core.device import use_device
from seqmem_ros.core.dispatch import compute_in_caller
from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import FILTERS
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.stream import Stream
from seqmem_ros.ros.dependencies import is_dependency
from seqmem_ros.ros.dependencies import missing_dependency
from seqmem_ros.ros.inputs import subscribe
from seqmem_ros.ros.outputs import make_output
from seqmem_ros.ros.parameter_spec import ON_CONFIGURE
from seqmem_ros.ros.parameters import declare_parameters
from seqmem_ros.ros.parameters import read_parameters
from seqmem_ros.ros.parameters import SPECS
from seqmem_ros.ros.parameters import stream_options
from seqmem_ros.ros.parameters import unknown_parameters
from seqmem_ros.ros.pipeline import Pipeline
from seqmem_ros.ros.reporter import Reporter

SUCCESS = TransitionCallbackReturn.SUCCESS
FAILURE = TransitionCallbackReturn.FAILURE


class SeqmemNode(LifecycleNode):
    """
    Joint states in, one estimate out for each message.

    configure loads, checks, compiles and runs the model once; activate subscribes; deactivate
    stops and forgets; cleanup frees. A step that cannot be done logs its reason in one line
    and leaves the node as it was.

    :param arguments: passed on to rclpy's LifecycleNode
    :ivar autostart: whether the process should configure and activate the node itself
    :raises SeqmemError: if a parameter has a value that is not allowed
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__('seqmem', **arguments)
        self._stage = 'unconfigured'
        self._failure = ''
        self._stream: Stream | None = None
        self._output: Any = None
        self._pipeline: Pipeline | None = None
        self._subscription: Subscription | None = None
        values = declare_parameters(self)
        self.autostart = values['autostart']
        self._warn_of_unknown_parameters()
        self.add_on_set_parameters_callback(self._check_parameters)
        self._answer_impossible_transitions()
        self.create_service(Trigger, '~/reset', self._on_reset)
        self._reporter = Reporter(self, values['diagnostics_rate_hz'], self._condition)

    def start(self) -> bool:
        """
        Configure and activate.

        :returns: whether both succeeded; if not, the reason has been logged
        """
        return self.trigger_configure() == SUCCESS and self.trigger_activate() == SUCCESS

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load, check, compile and run once; see the class."""
        started_s = time.monotonic()
        try:
            self._configure(read_parameters(self))
        except Exception as error:
            # Also a fault that nobody foresaw must leave the node unconfigured, in one line.
            self._free()
            return self._failed('configure', error)
        self._stage, self._failure = 'inactive', ''
        estimator = self._stream.estimator
        self.get_logger().info(
            f'configured in {time.monotonic() - started_s:.1f} s: {estimator.task} by '
            f'{estimator.name}, {estimator.source} {estimator.digest}'.rstrip()
        )
        return SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start to listen; see the class."""
        try:
            self._subscription = subscribe(
                self, self._pipeline.callback, self._reporter.note_unheard
            )
        except Exception as error:
            return self._failed('activate', error)
        # What is loaded by now stays: the collector of garbage, for which messages would have to
        # wait, need not look at it from now on.
        gc.freeze()
        self._stage, self._failure = 'active', ''
        self._reporter.begin(self._stream)
        self._pipeline.begin()
        self.get_logger().info(f'active: reading {self._subscription.topic_name}')
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop to listen, and forget; see the class."""
        self._unsubscribe()
        self._stream.reset()
        gc.unfreeze()
        self._stage = 'inactive'
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free the model and its topics; see the class."""
        self._free()
        self._stage, self._failure = 'unconfigured', ''
        return SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free everything, in whatever state the node is."""
        self._unsubscribe()
        self._free()
        self._stage = 'finalized'
        return SUCCESS

    def _configure(self, values: dict[str, Any]) -> None:
        options = stream_options(values)
        weights = values['weights'] and Path(values['weights']).expanduser()
        if values['model'] not in FILTERS:
            # JAX, which takes most of a start, is imported by these and not before: while that
            # lasts, other nodes find out about this one.
            compute_in_caller()
            use_device(values['device'])
        estimator = load_estimator(values['model'], weights, values['memory'])
        if estimator.window != values['window']:
            raise SeqmemError(
                f'parameter window: expected {estimator.window} for {estimator.name} '
                f'({estimator.source}), got {values["window"]}; set it to {estimator.window}'
            )
        if not self.context.ok():
            raise SeqmemError('told to stop while loading')
        self._stream = Stream(estimator, options)
        joints = options.joints or estimator.joints
        self._stream.warm_up(**({'n_joints': len(joints)} if joints else {}))
        self._output = make_output(self, estimator)
        self._pipeline = Pipeline(self, self._stream, self._output, self._reporter)
        self._pipeline.publish_every_n = values['publish_every_n']

    def _failed(self, transition: str, error: Exception) -> TransitionCallbackReturn:
        if isinstance(error, SeqmemError):
            reason = str(error)
        elif is_dependency(error):
            reason = missing_dependency(error, sys.executable)
        else:
            reason = f'{type(error).__name__}: {error}'
        self._failure = f'cannot {transition}: ' + ' '.join(reason.split())
        # Told to stop in the middle of it, nothing works any more and nothing is wrong.
        if self.context.ok():
            self.get_logger().error(self._failure)
        return FAILURE

    def _free(self) -> None:
        if self._output is not None:
            self._output.destroy()
        self._output = self._stream = self._pipeline = None

    def _unsubscribe(self) -> None:
        if self._subscription is not None:
            self.destroy_subscription(self._subscription)
        self._subscription = None

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Any:
        response.success = self._stage == 'active'
        if response.success:
            self._stream.reset()
            response.message = (
                f'memory cleared; the next estimate comes after {self._stream.estimator.window} '
                'samples'
            )
            self.get_logger().info('reset on request: ' + response.message)
        else:
            response.message = f'nothing to reset: the node is {self._stage}, not active'
        return response

    def _condition(self) -> tuple[str, str, Stream | None]:
        return self._stage, self._failure, self._stream

    def _check_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            spec = SPECS.get(parameter.name)
            if spec is None:
                continue
            try:
                spec.checked(parameter.value)
            except SeqmemError as error:
                return SetParametersResult(successful=False, reason=str(error))
            if spec.when == ON_CONFIGURE and self._stage in ('inactive', 'active'):
                reason = f'{spec.name} takes effect on configure: deactivate and clean up first'
                return SetParametersResult(successful=False, reason=reason)
        try:
            self._change_limits({parameter.name: parameter.value for parameter in parameters})
        except SeqmemError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _change_limits(self, new: dict[str, Any]) -> None:
        known = {name: SPECS[name].checked(new[name]) for name in new.keys() & SPECS.keys()}
        if not known:
            return
        values = read_parameters(self) | known
        options = stream_options(values)
        if self._pipeline is not None:
            self._pipeline.publish_every_n = values['publish_every_n']
            self._stream.change(options)

    def _warn_of_unknown_parameters(self) -> None:
        # rclpy ignores a misspelt parameter without a word, and has no public way to list
        # what was given; without this attribute there is just no warning.
        for sentence in unknown_parameters(getattr(self, '_parameter_overrides', {})):
            self.get_logger().warning(sentence)

    def _answer_impossible_transitions(self) -> None:
        """Answer a transition that the state does not allow; rclpy would end the process."""
        service = next(s for s in self.services if s.srv_type is ChangeState)
        answer = service.callback

        def answer_or_refuse(request: Any, response: Any) -> Any:
            try:
                return answer(request, response)
            except RuntimeError as error:
                wanted = request.transition.label or request.transition.id
                self.get_logger().error(
                    f'transition {wanted} is not possible while {self._stage}: {error}'
                )
                response.success = False
                return response

        service.callback = answer_or_refuse
