"""What a process must be before SpiffWorkflow may run it: checked when a model is loaded.

SpiffWorkflow evaluates texts as Python, and passes silently through what it does not know. So
each expression is compiled to the small language of `conditions`, each timer must be inside the
profile, and what would run differently from what the diagram says is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.expressions import TimerExpression
from seams_lab.payload import FLOW_NODES, XML_SPACE, Payload
from seams_lab.profile import read_timer
from seams_lab.runtime.conditions import Condition, compile_condition
from seams_lab.vocabulary import BPMN

_Q = f"{{{BPMN}}}"
#: The elements whose text SpiffWorkflow would evaluate.
EXPRESSIONS = (
    "conditionExpression", "loopCondition", "completionCondition", "loopCardinality", "condition",
)  # fmt: skip
#: The event definitions that SpiffWorkflow runs, by event; of a process's start it runs none.
_RUN = {
    "startEvent": ("message", "signal", "conditional"),
    "intermediateCatchEvent": ("message", "signal", "timer", "conditional"),
    "intermediateThrowEvent": ("message", "signal", "escalation"),
    "boundaryEvent": (
        "message", "signal", "timer", "conditional", "cancel", "error", "escalation",
    ),
    "endEvent": ("message", "signal", "cancel", "error", "escalation", "terminate"),
}  # fmt: skip
_DECIDES = ("exclusiveGateway", "inclusiveGateway", "complexGateway")
_GATEWAYS = (*_DECIDES, "parallelGateway", "eventBasedGateway")


@dataclass(frozen=True)
class Admitted:
    """What was read of a process that may run.

    ``timers`` maps the BPMN id of each timer to its expression, ``conditions`` each text that
    SpiffWorkflow may ask for to its compiled form.
    """

    timers: dict[str, TimerExpression]
    conditions: dict[str, Condition]


def admit(model: str, payload: Payload, process: str, *, allow_scripts: bool) -> Admitted:
    """Check one ``bpmn:process`` of a file.

    Raises
    ------
    ResolutionError
        For the first element that cannot be run as the diagram says, with its IRI.
    """
    node = next(n for n in payload.root.iter(f"{_Q}process") if n.get("id") == process)
    reader = _Reader(model, payload)
    timers = {
        t.id: read_timer(t, f"{model}#{t.id}") for t in payload.timers if t.process == process
    }
    if not allow_scripts:
        reader.refuse_scripts(node)
    reader.refuse_unknown(node)
    reader.refuse_ignored_flows(node)
    return Admitted(timers, reader.conditions(node))


class _Reader:
    def __init__(self, model: str, payload: Payload) -> None:
        self.model, self.payload = model, payload

    def subject(self, node: etree._Element) -> str:
        """The IRI of the element that a node belongs to."""
        wanted = FLOW_NODES | {"sequenceFlow", "process", "correlationProperty"}
        for holder in (node, *node.iterancestors()):
            if _tag(holder) in wanted and holder.get("id"):
                return f"{self.model}#{holder.get('id')}"
        return self.model

    def refuse(self, node: etree._Element, code: str, fact: str, fix: str) -> ResolutionError:
        return ResolutionError(
            self.subject(node), f"bpmn:{_tag(node)}", f"line {node.sourceline}: {fact}",
            code=code, fix=fix,
        )  # fmt: skip

    def refuse_scripts(self, process: etree._Element) -> None:
        for node in process.iter(f"{_Q}scriptTask"):
            raise self.refuse(
                node, "SCRIPT", "its script would run as Python, with the rights of this program",
                "make it a service task with a handler, or trust the model and allow scripts",
            )  # fmt: skip

    def refuse_unknown(self, process: etree._Element) -> None:
        """Refuse what SpiffWorkflow passes through, or runs otherwise than BPMN says."""
        for node in process.iter(f"{_Q}*"):
            tag = _tag(node)
            if tag in _RUN:
                self.refuse_event(node, tag, process)
            elif tag == "adHocSubProcess":
                raise self.refuse(
                    node, "NOT_RUN", "ad-hoc sub-processes are not run", "use a sub-process"
                )
            elif _is_true(node.get("triggeredByEvent")):
                raise self.refuse(
                    node, "NOT_RUN", "event sub-processes are not run", "use boundary events"
                )

    def refuse_event(self, node: etree._Element, tag: str, process: etree._Element) -> None:
        if tag == "startEvent" and node.getparent() is process:
            return  # the engine itself chooses which start event fires
        found = [_tag(child).removesuffix("EventDefinition") for child in node if _defines(child)]
        if len(found) > 1:
            raise self.refuse(
                node, "NOT_RUN", f"several event definitions: {', '.join(found)}",
                "give each trigger an event of its own",
            )  # fmt: skip
        if found and found[0] not in _RUN[tag]:
            raise self.refuse(
                node, "NOT_RUN", f"a {found[0]} definition is not run on a {tag}",
                "use one of: " + ", ".join(_RUN[tag]),
            )  # fmt: skip

    def refuse_ignored_flows(self, process: etree._Element) -> None:
        """Refuse flows whose condition, or whose gateway, SpiffWorkflow would not heed."""
        tags = {e.id: e.tag for e in self.payload.elements.values()}
        flows = list(process.iter(f"{_Q}sequenceFlow"))
        sources: dict[str, list[str]] = {}
        for flow in flows:
            source = flow.get("sourceRef", "")
            sources.setdefault(flow.get("targetRef", ""), []).append(source)
            if tags.get(source) not in _GATEWAYS:
                for condition in flow.iter(f"{_Q}conditionExpression"):
                    raise self.refuse(
                        condition, "NOT_RUN",
                        f"a condition on a flow from a {tags.get(source)} is never evaluated",
                        "put an exclusive gateway before the flow",
                    )  # fmt: skip
        for flow in flows:
            others = sources[flow.get("targetRef", "")]
            if tags.get(flow.get("sourceRef", "")) == "eventBasedGateway" and len(others) > 1:
                raise self.refuse(
                    flow, "NOT_RUN", "another flow leads to this event, which would not wait then",
                    "give each flow an event of its own",
                )  # fmt: skip

    def conditions(self, process: etree._Element) -> dict[str, Condition]:
        """Compile every text that SpiffWorkflow may evaluate in a process."""
        found: dict[str, Condition] = {}
        for node in self.expressions(process):
            text = node.text
            if len(node) or text is None:
                raise self.refuse(
                    node, "BAD_CONDITION",
                    "it is empty" if text is None and not len(node) else
                    "it holds a comment, processing instruction or element",
                    "keep only the condition's text inside the element",
                )  # fmt: skip
            try:
                found[text] = compile_condition(text, self.subject(node))
            except UnusableInput as error:
                raise ResolutionError(
                    self.subject(node), f"bpmn:{_tag(node)}",
                    f"line {node.sourceline}: {error.seen}; expected {error.expected}",
                    code="BAD_CONDITION", fix=error.fix,
                ) from None  # fmt: skip
        return found

    def expressions(self, process: etree._Element) -> Iterator[etree._Element]:
        yield from process.iter(*(f"{_Q}{tag}" for tag in EXPRESSIONS))
        # Correlation lies outside the processes; SpiffWorkflow takes the first child's text.
        for holder in self.payload.root.iter(f"{_Q}correlationPropertyRetrievalExpression"):
            yield from list(holder)[:1]


def _tag(node: etree._Element) -> str:
    name = node.tag
    return name.removeprefix(_Q) if isinstance(name, str) else ""


def _defines(node: etree._Element) -> bool:
    return _tag(node).endswith("EventDefinition") or _tag(node) == "eventDefinitionRef"


def _is_true(flag: str | None) -> bool:
    return (flag or "").strip(XML_SPACE) in ("true", "1")
