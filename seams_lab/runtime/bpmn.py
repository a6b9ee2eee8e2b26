"""From a checked BPMN file to the specifications that SpiffWorkflow runs.

Each model has a parser of its own, for two models may use the same ids. The parser reads a copy
of the checked tree; `admission` has read every text in it that SpiffWorkflow would evaluate.
"""

# mypy: disable-error-code="import-untyped"
# mypy: allow-subclassing-any

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree
from SpiffWorkflow.bpmn import BpmnWorkflow
from SpiffWorkflow.bpmn.parser import event_parsers as events
from SpiffWorkflow.bpmn.parser.BpmnParser import BpmnParser
from SpiffWorkflow.bpmn.parser.TaskParser import TaskParser
from SpiffWorkflow.bpmn.parser.util import full_tag
from SpiffWorkflow.bpmn.specs import BpmnProcessSpec, defaults
from SpiffWorkflow.bpmn.specs.event_definitions import MessageEventDefinition
from SpiffWorkflow.bpmn.specs.event_definitions.base import EventDefinition
from SpiffWorkflow.bpmn.specs.mixins import BoundaryEventMixin, EventBasedGatewayMixin
from SpiffWorkflow.bpmn.specs.mixins.multiinstance_task import LoopTask
from SpiffWorkflow.bpmn.specs.mixins.subworkflow_task import CallActivity, SubWorkflowTask
from SpiffWorkflow.specs.MultiChoice import MultiChoice
from SpiffWorkflow.task import Task

from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.expressions import TimerExpression
from seams_lab.graph import ModelGraph
from seams_lab.payload import XML_SPACE, Element, Payload
from seams_lab.runtime.admission import admit
from seams_lab.runtime.conditions import Condition
from seams_lab.runtime.tasks import HandlerTask
from seams_lab.runtime.timing import EventGateway, EventRace, TimerDefinition
from seams_lab.vocabulary import BPMN, SEAM

_Q = f"{{{BPMN}}}"
#: The key in a workflow's root task, in its internal data, of the start event that fires.
START = "start"
# SpiffWorkflow compares these with the text "true"; they are xs:boolean.
_BOOLEANS = (
    "cancelActivity", "isExecutable", "isSequential", "testBefore", "parallelMultiple",
    "triggeredByEvent",
)  # fmt: skip
# Children of these are predicted one step at a time: a loop through one does not run away.
_LOOK_FIRST = (MultiChoice, EventBasedGatewayMixin, BoundaryEventMixin)


@dataclass(frozen=True)
class Executable:
    """A process that can be run.

    ``process`` is the IRI of the proc:Process, ``model`` that of its BPMN model, ``hashes`` the
    sha256 of each payload it comes from, ``starts`` the ids of its start events with whether
    each is a none start. ``subprocesses`` maps ``<model IRI>#<id>`` to a specification.
    """

    process: str
    model: str
    spec: BpmnProcessSpec
    subprocesses: dict[str, BpmnProcessSpec]
    hashes: dict[str, str]
    starts: dict[str, bool]


class StartChoice(EventDefinition):
    """A process's start event: it fires when it was selected, or as the none start of a call.

    SpiffWorkflow's own would fire every none start and arm timers inside the instance.
    """

    def __init__(self, bpmn_id: str, is_none: bool) -> None:
        super().__init__(bpmn_id, "Start")
        self.bpmn_id, self.is_none = bpmn_id, is_none

    def has_fired(self, my_task: Task) -> bool:
        """Whether this is the start event that the instance began with."""
        workflow = my_task.workflow
        if workflow.parent_task_id is not None:
            return self.is_none
        return bool(workflow.task_tree.internal_data.get(START) == self.bpmn_id)

    def catches(self, my_task: Task, event: Any) -> bool:
        """Never: what starts an instance is decided outside it."""
        return False


class _StartParser(events.StartEventParser):
    def create_task(self) -> Any:
        if self.process_parser.node.tag != full_tag("process"):
            return super().create_task()
        none = self.process_parser.parser.is_none_start(self.bpmn_id)
        task = self._create_task(StartChoice(self.bpmn_id, none))
        self.spec.start.connect(task)
        return task


class _CatchParser(events.IntermediateCatchEventParser):
    def parse_timer_event(self, event: etree._Element) -> TimerDefinition:
        return _timer(self)


class _BoundaryParser(events.BoundaryEventParser):
    def parse_timer_event(self, event: etree._Element) -> TimerDefinition:
        return _timer(self)


def _timer(parser: Any) -> TimerDefinition:
    model = parser.process_parser.parser
    return TimerDefinition(
        parser.bpmn_id,
        f"{model.model}#{parser.bpmn_id}",
        model.timers[parser.bpmn_id],
        parser.node.get("name") or parser.bpmn_id,
        "Timer",
    )


class _EndParser(events.EndEventParser):
    def create_task(self) -> Any:
        # SpiffWorkflow's own takes an end event with a signal for one without.
        signal = self.get_event_definition([events.SIGNAL_EVENT_XPATH])
        if not self.event_nodes:
            return super().create_task()
        task = self._create_task(signal)
        task.connect(self.spec.end)
        return task


class _SendParser(events.SendTaskParser):
    def create_task(self) -> Any:
        if self.node.get("messageRef") is None and not self.xpath(events.MESSAGE_EVENT_XPATH):
            return HandlerTask(self.spec, self.bpmn_id, **self.bpmn_attributes)
        return super().create_task()


class _ReceiveParser(events.ReceiveTaskParser):
    def create_task(self) -> Any:
        if self.node.get("messageRef") is None and not self.xpath(events.MESSAGE_EVENT_XPATH):
            # SpiffWorkflow's own would pass at once.
            name = self.node.get("name") or self.bpmn_id
            return self._create_task(MessageEventDefinition(name))
        return super().create_task()


class _GatewayParser(events.EventBasedGatewayParser):
    def create_task(self) -> Any:
        return self._create_task(EventRace())


class ModelParser(BpmnParser):
    """SpiffWorkflow's parser for one model, with this project's timers, starts and tasks."""

    OVERRIDE_PARSER_CLASSES = {  # noqa: RUF012  (SpiffWorkflow's name and form)
        full_tag("startEvent"): (_StartParser, defaults.StartEvent),
        full_tag("intermediateCatchEvent"): (_CatchParser, defaults.IntermediateCatchEvent),
        full_tag("boundaryEvent"): (_BoundaryParser, defaults.BoundaryEvent),
        full_tag("endEvent"): (_EndParser, defaults.EndEvent),
        full_tag("sendTask"): (_SendParser, defaults.SendTask),
        full_tag("receiveTask"): (_ReceiveParser, defaults.ReceiveTask),
        full_tag("eventBasedGateway"): (_GatewayParser, EventGateway),
        full_tag("serviceTask"): (TaskParser, HandlerTask),
        full_tag("businessRuleTask"): (TaskParser, HandlerTask),
    }

    def __init__(self, model: str, payload: Payload) -> None:
        super().__init__()
        self.model, self.payload = model, payload
        #: The expressions of admitted timers, by BPMN id.
        self.timers: dict[str, TimerExpression] = {}
        self.add_bpmn_xml(_normalised(payload.root), filename=model)

    def is_none_start(self, bpmn_id: str) -> bool:
        """Whether a start event has no event definition."""
        node = next(n for n in self.payload.root.iter(f"{_Q}startEvent") if n.get("id") == bpmn_id)
        return not any(
            str(child.tag).endswith(("EventDefinition", "}eventDefinitionRef")) for child in node
        )


def _normalised(root: etree._Element) -> etree._Element:
    """Copy a checked tree into the form that SpiffWorkflow's parser expects."""
    tree = copy.deepcopy(root)
    for node in tree.iter(f"{_Q}*"):
        for name in _BOOLEANS:
            flag = node.get(name)
            if flag is not None:
                node.set(name, "true" if flag.strip(XML_SPACE) in ("true", "1") else "false")
    # A data store that no task uses is but a drawing; one that is used is still refused.
    for store in list(tree.iter(f"{_Q}dataStore")):
        parent = store.getparent()
        assert parent is not None
        parent.remove(store)
    return tree


class Loader:
    """Reads processes of a model graph for one engine.

    ``conditions`` collects what was compiled, ``elements`` the BPMN elements of the processes
    that were read, by IRI.
    """

    def __init__(self, graph: ModelGraph, *, allow_scripts: bool) -> None:
        self.graph, self.allow_scripts = graph, allow_scripts
        self.conditions: dict[str, Condition] = {}
        self.elements: dict[str, Element] = {}
        self._parsers: dict[str, ModelParser] = {}
        self._specs: dict[tuple[str, str], BpmnProcessSpec] = {}

    def load(self, process: str) -> Executable:
        """Read a process and what it calls.

        Raises
        ------
        ResolutionError
            For a process that no file, or more than one, holds; for an element that cannot be
            run; and for whatever SpiffWorkflow cannot run.
        UnusableInput
            For a file that cannot be read.
        """
        model, bpmn_id = self._place(process)
        subprocesses: dict[str, BpmnProcessSpec] = {}
        try:
            spec = self._spec(model, bpmn_id)
            self._add_subprocesses(model, spec, subprocesses)
            for each in (spec, *subprocesses.values()):
                _refuse_loops(each)
            # Foreseeing the whole instance is where SpiffWorkflow fails if it does.
            BpmnWorkflow(spec, subprocesses)
        except (ResolutionError, UnusableInput):
            raise
        except Exception as error:
            raise ResolutionError(
                process, "seam:executes", f"SpiffWorkflow cannot run it: {_said(error)}",
                code="NOT_EXECUTABLE", fix="change what the message names",
            ) from error  # fmt: skip
        models = sorted({model, *(key.rpartition("#")[0] for key in subprocesses)})
        hashes = {m: self._parser(m).payload.sha256 for m in models}
        starts = {s.bpmn_id: s.event_definition.is_none for s in spec.bpmn_start_events}
        return Executable(process, model, spec, subprocesses, hashes, starts)

    def _place(self, process: str) -> tuple[str, str]:
        """The model and the id of the ``bpmn:process`` that details a proc:Process."""
        detailed = self.graph.pairs(str(SEAM.detailedBy)).get(process, ())
        found = [
            (model, held)
            for model in self.graph.bpmn_models
            if model in detailed
            for held in self.graph.payload(model).processes
            if self.graph.process_of(model, held) == process
        ] or [
            (model, held)
            for model in self.graph.bare
            for held in self._processes(model)
            if process in (held, f"{model}#{held}")
        ]
        if len(found) != 1:
            places = ", ".join(f"{model}#{held}" for model, held in found)
            raise ResolutionError(
                process, "seam:detailedBy", places or "no bpmn:process of a file is this process",
                code="SEVERAL_PROCESSES" if found else "NO_PROCESS",
                fix="let the process be detailed by the one model whose file holds it",
            )  # fmt: skip
        return found[0]

    def _parser(self, model: str) -> ModelParser:
        if model not in self._parsers:
            self._parsers[model] = ModelParser(model, self.graph.payload(model))
        return self._parsers[model]

    def _spec(self, model: str, bpmn_id: str) -> BpmnProcessSpec:
        """The specification of a ``bpmn:process``, which is admitted first."""
        if (model, bpmn_id) not in self._specs:
            payload = self.graph.payload(model)
            admitted = admit(model, payload, bpmn_id, allow_scripts=self.allow_scripts)
            parser = self._parser(model)
            parser.timers.update(admitted.timers)
            self.conditions.update(admitted.conditions)
            for element in payload.elements.values():
                if element.process == bpmn_id:
                    self.elements[f"{model}#{element.id}"] = element
            self._specs[model, bpmn_id] = parser.get_spec(bpmn_id)
        return self._specs[model, bpmn_id]

    def _add_subprocesses(
        self, model: str, spec: BpmnProcessSpec, found: dict[str, BpmnProcessSpec]
    ) -> None:
        for task in spec.task_specs.values():
            if isinstance(task, LoopTask):
                # SpiffWorkflow connects at the first run, in a specification that threads share.
                child = spec.task_specs[task.task_spec]
                if not child.completed_event.is_connected(task.merge_child):
                    child.completed_event.connect(task.merge_child)
            if not isinstance(task, SubWorkflowTask):
                continue
            within, local = model, task.spec
            if isinstance(task, CallActivity):
                within, local = self._called(model, task)
            elif "#" in local:  # seen before
                local = local.rpartition("#")[2]
            key = f"{within}#{local}"
            # Two models may use one id: SpiffWorkflow's names are made unique.
            task.spec = key
            if key in found:
                continue
            if isinstance(task, CallActivity):
                found[key] = self._spec(within, local)
                _refuse_without_none_start(key, f"{model}#{task.bpmn_id}", found[key])
            else:
                found[key] = self._parser(within).get_spec(local)
            self._add_subprocesses(within, found[key], found)

    def _called(self, model: str, task: CallActivity) -> tuple[str, str]:
        """Where the process lies that a call activity calls: in its own file, else in another."""
        if "#" in task.spec and task.spec.rpartition("#")[0] in self._parsers:
            within, _, local = task.spec.rpartition("#")
            return within, local
        local = task.spec.rpartition(":")[2]
        if local in self.graph.payload(model).processes:
            return model, local
        found = [m for m in self.graph.bpmn_models if local in self._processes(m)]
        if len(found) != 1:
            raise ResolutionError(
                f"{model}#{task.bpmn_id}", "bpmn:calledElement",
                f"{local!r} is a process of {', '.join(found) if found else 'no file'}",
                code="SEVERAL_CALLED" if found else "NOT_CALLED",
                fix="call the id of a bpmn:process that exactly one file of the model holds",
            )  # fmt: skip
        return found[0], local

    def _processes(self, model: str) -> tuple[str, ...]:
        try:
            return self.graph.payload(model).processes
        except UnusableInput:
            return ()


def _refuse_without_none_start(called: str, caller: str, spec: BpmnProcessSpec) -> None:
    none = [s for s in spec.bpmn_start_events if s.event_definition.is_none]
    if len(none) != 1:
        raise ResolutionError(
            caller, "bpmn:calledElement", f"{called} has {len(none)} none start events",
            code="NO_NONE_START", fix="give the called process exactly one plain start event",
        )  # fmt: skip


def _refuse_loops(spec: BpmnProcessSpec) -> None:
    """Refuse a loop without a gateway that decides: SpiffWorkflow foresees it without end."""
    state: dict[str, bool] = {}  # False: on the path, True: done
    for first in spec.task_specs:
        stack: list[tuple[str, Iterator[str]]] = []
        if first not in state:
            state[first] = False
            stack.append((first, iter(_foreseen(spec, first))))
        while stack:
            following = next(stack[-1][1], None)
            if following is None:
                state[stack.pop()[0]] = True
            elif following not in state:
                state[following] = False
                stack.append((following, iter(_foreseen(spec, following))))
            elif not state[following]:
                loop = [name for name, _ in stack]
                ids = [spec.task_specs[n].bpmn_id for n in loop[loop.index(following) :]]
                raise ResolutionError(
                    f"{spec.file}#{spec.name}", "seam:executes",
                    "SpiffWorkflow cannot run a loop without a gateway: "
                    + ", ".join(i for i in ids if i),
                    code="NOT_EXECUTABLE", fix="let an exclusive gateway decide on each round",
                )  # fmt: skip


def _foreseen(spec: BpmnProcessSpec, name: str) -> list[str]:
    task = spec.task_specs[name]
    return [] if isinstance(task, _LOOK_FIRST) else list(task._outputs)


def _said(error: BaseException) -> str:
    """What an error says, in one line."""
    text = str(error) or type(error).__name__
    return " ".join(text.split())
