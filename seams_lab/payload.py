"""Read a BPMN file into plain values; hostile files are refused and nothing is evaluated.

This is the only module that parses BPMN. The order is: cap the size, stop at a DOCTYPE before
any entity is seen, parse the bytes with a hardened parser, check ids, nesting and chains.
Elements are matched by namespace, never by prefix.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from lxml import etree

from seams_lab.errors import UnusableInput
from seams_lab.vocabulary import BPMN

MAX_BYTES = 8 * 1024 * 1024
MAX_SUBPROCESS_DEPTH = 50
# SpiffWorkflow's parser recurses along sequence flows: it fails beyond 492 tasks in a row, and
# beyond 394 nodes where tasks and boundary events alternate.
MAX_CHAIN = 350

_Q = f"{{{BPMN}}}"
XML_SPACE = " \t\r\n"
EXPRESSION_KINDS = ("timeDate", "timeDuration", "timeCycle")
_SUBPROCESSES = {"subProcess", "adHocSubProcess", "transaction"}
_TASKS = {
    "task", "userTask", "serviceTask", "scriptTask", "manualTask", "businessRuleTask",
    "sendTask", "receiveTask",
}  # fmt: skip
_EVENTS = {
    "startEvent", "endEvent", "intermediateCatchEvent", "intermediateThrowEvent", "boundaryEvent",
}  # fmt: skip
_GATEWAYS = {
    "exclusiveGateway", "inclusiveGateway", "parallelGateway", "complexGateway",
    "eventBasedGateway",
}  # fmt: skip
FLOW_NODES = _TASKS | _EVENTS | _GATEWAYS | _SUBPROCESSES | {"callActivity"}
# What deserves an IRI in the index (ADR-0006, extended for timers and business rules).
SEAM_WORTHY = (FLOW_NODES - _SUBPROCESSES) | {
    "process",
    "collaboration",
    "participant",
    "messageFlow",
}


@dataclass(frozen=True, slots=True)
class Element:
    """A BPMN element that has an id.

    ``tag`` is the local name, ``process`` the id of the enclosing ``bpmn:process`` ("" outside),
    ``parent`` the tag of the parent element, ``definitions`` the local names of the event
    definitions it holds.
    """

    id: str
    tag: str
    name: str
    process: str
    parent: str
    line: int
    definitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Expression:
    """One ``timeDate``, ``timeDuration`` or ``timeCycle`` element as the file has it.

    ``body`` is the text, ``language`` the attribute or None, ``has_children`` whether a comment,
    processing instruction or element stands inside.
    """

    kind: str
    body: str
    language: str | None
    has_children: bool


@dataclass(frozen=True, slots=True)
class TimerElement:
    """A BPMN event with a timer, as the file has it; whether it is sound is decided elsewhere.

    ``position`` says in words where it sits; ``index_type`` is the proc: class that its index
    entry must have, or None where the timer is out of scope and must not be lifted (R30-R34).
    """

    id: str
    name: str
    tag: str
    process: str
    line: int
    position: str
    index_type: str | None
    attached_to: str | None = None
    interrupting: bool | None = None
    cancel_activity: str | None = None
    definitions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    expressions: tuple[Expression, ...] = ()

    @property
    def kind(self) -> str | None:
        """The expression kind, or None when an expression is missing or there are several."""
        return self.expressions[0].kind if len(self.expressions) == 1 else None

    @property
    def body(self) -> str | None:
        """The text of the one expression, or None."""
        return self.expressions[0].body if len(self.expressions) == 1 else None


@dataclass(frozen=True)
class Payload:
    """A checked BPMN file.

    ``elements`` maps every id to its Element in document order; ``timers`` are in document
    order; ``processes`` are the ids of the ``bpmn:process`` elements; ``root`` is the checked
    XML tree (for drawing and for the engine), ``sha256`` the hex digest of the bytes.
    """

    path: str
    sha256: str
    elements: dict[str, Element]
    processes: tuple[str, ...]
    timers: tuple[TimerElement, ...]
    root: etree._Element = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return (
            f"<Payload {self.path}: {len(self.processes)} process(es), "
            f"{len(self.elements)} elements, {len(self.timers)} timer(s)>"
        )


def read_payload(path: str | Path) -> Payload:
    """Read a BPMN file.

    Raises
    ------
    UnusableInput
        The file is missing, too large, not well-formed XML, not BPMN 2.0, has a DOCTYPE,
        duplicate ids, or nesting or chains that would exhaust a parser's stack.
    """
    path = Path(path)
    try:
        if not path.is_file():
            seen = "a folder" if path.is_dir() else "no such file"
            raise UnusableInput(str(path), seen, "a BPMN 2.0 file", "check the path")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnusableInput(
            str(path), error.strerror or str(error), "a readable file", "check its permissions"
        ) from None
    return parse_payload(data, str(path))


def parse_payload(data: bytes, name: str = "<bytes>") -> Payload:
    """Parse BPMN bytes; *name* is used in messages. Raises UnusableInput as `read_payload`."""
    if len(data) > MAX_BYTES:
        raise UnusableInput(
            name, f"larger than {MAX_BYTES:,} bytes", "a BPMN file of a sensible size",
            "split the model, or take embedded images out of it",
        )  # fmt: skip
    _refuse_doctype(data, name)
    root = _parse(data, name)
    if root.tag != f"{_Q}definitions":
        raise UnusableInput(
            name, f"root element {root.tag!r}", f"'definitions' in the namespace {BPMN}",
            "export the diagram as BPMN 2.0",
        )  # fmt: skip
    elements = _elements(root, name)
    _refuse_deep_nesting(root, name)
    _refuse_long_chains(root, name)
    return Payload(
        path=name,
        sha256=hashlib.sha256(data).hexdigest(),
        elements=elements,
        processes=tuple(e.id for e in elements.values() if e.tag == "process"),
        timers=tuple(_timers(root, elements)),
        root=root,
    )


class _Stop(Exception):
    """Ends the expat scan at the root element: a DOCTYPE can only stand before it."""


def _refuse_doctype(data: bytes, name: str) -> None:
    # lxml alone is not enough: older versions expand entities while they parse, and a newer one
    # that skips them leaves a body that reads as empty. expat tells us before the subset is read.
    scanner = expat.ParserCreate()

    def doctype(*_: object) -> None:
        raise UnusableInput(
            name, "a DOCTYPE declaration", "plain XML without one",
            "delete the <!DOCTYPE ...> line; BPMN needs none and entities are a known attack",
        )  # fmt: skip

    def root_reached(*_: object) -> None:
        raise _Stop

    scanner.StartDoctypeDeclHandler = doctype
    scanner.StartElementHandler = root_reached
    try:
        scanner.Parse(data, True)
    except _Stop:
        return
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise UnusableInput(
            name, f"not well-formed XML ({error})", "a BPMN 2.0 XML file in UTF-8 or UTF-16",
            "open and save it again in a BPMN modeler",
        ) from None  # fmt: skip


def _parse(data: bytes, name: str) -> etree._Element:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False,
        attribute_defaults=False, huge_tree=False, remove_comments=False, remove_pis=False,
    )  # fmt: skip
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise UnusableInput(
            name, f"not well-formed XML ({error})", "a BPMN 2.0 XML file",
            "open and save it again in a BPMN modeler",
        ) from None  # fmt: skip
    if root.getroottree().docinfo.internalDTD is not None:
        raise UnusableInput(name, "a DOCTYPE declaration", "plain XML without one", "delete it")
    return root


def _local(element: etree._Element) -> str | None:
    """The local name of a BPMN element; None for comments, other namespaces and so on."""
    tag = element.tag
    return tag[len(_Q) :] if isinstance(tag, str) and tag.startswith(_Q) else None


def _line(node: etree._Element) -> int:
    return node.sourceline if isinstance(node.sourceline, int) else 0


def _children(element: etree._Element, *tags: str) -> Iterator[etree._Element]:
    for child in element:
        if _local(child) in tags:
            yield child


def _definitions(element: etree._Element) -> list[etree._Element]:
    return [c for c in element if (_local(c) or "").endswith("EventDefinition")]


def _elements(root: etree._Element, name: str) -> dict[str, Element]:
    elements: dict[str, Element] = {}
    process_of: dict[etree._Element | None, str] = {}
    for node in root.iter(f"{_Q}*"):
        tag = _local(node)
        parent = node.getparent()
        # Parents come before children, so the enclosing process is known by then.
        process = node.get("id", "") if tag == "process" else process_of.get(parent, "")
        process_of[node] = process
        identifier = node.get("id")
        if identifier is None or tag is None:
            continue
        if identifier in elements:
            first = elements[identifier]
            raise UnusableInput(
                f"{name}, line {node.sourceline}",
                f"id {identifier!r} of a {tag} is already the id of the {first.tag} "
                f"on line {first.line}",
                "every id once in a file", "give one of the two another id",
            )  # fmt: skip
        elements[identifier] = Element(
            id=identifier,
            tag=tag,
            name=node.get("name", ""),
            process=process,
            parent=(_local(parent) or "") if parent is not None else "",
            line=_line(node),
            definitions=tuple(_local(d) or "" for d in _definitions(node)),
        )
    return elements


def _refuse_deep_nesting(root: etree._Element, name: str) -> None:
    depth: dict[etree._Element | None, int] = {}
    for node in root.iter(f"{_Q}*"):
        parent = node.getparent()
        own = depth.get(parent, 0) + (_local(node) in _SUBPROCESSES)
        depth[node] = own
        if own > MAX_SUBPROCESS_DEPTH:
            raise UnusableInput(
                f"{name}, line {node.sourceline}",
                f"sub-processes nested more than {MAX_SUBPROCESS_DEPTH} deep",
                f"at most {MAX_SUBPROCESS_DEPTH} levels", "use call activities",
            )  # fmt: skip


def _refuse_long_chains(root: etree._Element, name: str) -> None:
    """Walk every flow depth first, as SpiffWorkflow's parser does, without recursion."""
    following: dict[str, list[str]] = {}
    # Its order, too: the boundary events of a node, then its flows, each as the file has them.
    for boundary in root.iter(f"{_Q}boundaryEvent"):
        following.setdefault(boundary.get("attachedToRef", ""), []).append(boundary.get("id", ""))
    for flow in root.iter(f"{_Q}sequenceFlow"):
        following.setdefault(flow.get("sourceRef", ""), []).append(flow.get("targetRef", ""))
    targets = {target for nexts in following.values() for target in nexts}
    starts = [event.get("id", "") for event in root.iter(f"{_Q}startEvent")]
    seen: set[str] = set()
    # Start events, then other sources, then the rest (cycles): a walk that began in the middle
    # of a chain would leave only its first half to the walk from the start.
    for start in [*starts, *sorted(following, key=lambda node: node in targets)]:
        stack = [] if start in seen else [(start, iter(following.get(start, ())))]
        seen.add(start)
        while stack:
            if len(stack) > MAX_CHAIN:
                raise UnusableInput(
                    name,
                    f"a chain of more than {MAX_CHAIN} flow nodes from {stack[0][0]!r}",
                    f"at most {MAX_CHAIN} nodes in a row",
                    "put stretches of the flow into sub-processes or call activities",
                )
            following_node = next(stack[-1][1], None)
            if following_node is None:
                stack.pop()
            elif following_node not in seen:
                seen.add(following_node)
                stack.append((following_node, iter(following.get(following_node, ()))))


def _timers(root: etree._Element, elements: dict[str, Element]) -> Iterator[TimerElement]:
    definition_tags = {e.id: e.tag for e in elements.values() if e.tag.endswith("EventDefinition")}
    for node in root.iter(f"{_Q}*"):
        tag = _local(node) or ""
        if tag not in _EVENTS:
            continue
        definitions = _definitions(node)
        references = [(r.text or "").strip() for r in _children(node, "eventDefinitionRef")]
        # A reference that leads nowhere in this file may still mean a timer: better refused
        # than passed over, because SpiffWorkflow would go straight through the event.
        may_be_timer = any(
            definition_tags.get(_local_reference(r), "timerEventDefinition")
            == "timerEventDefinition"
            for r in references
        )
        if may_be_timer or any(_local(d) == "timerEventDefinition" for d in definitions):
            yield _timer(node, tag, definitions, references, elements)


def _local_reference(reference: str) -> str:
    """A QName's local part: definitions are looked up in this file only."""
    return reference.rpartition(":")[2]


def _timer(
    node: etree._Element,
    tag: str,
    definitions: list[etree._Element],
    references: list[str],
    elements: dict[str, Element],
) -> TimerElement:
    line = _line(node)
    holder = next(node.iterancestors(f"{_Q}process"), None)
    process = holder.get("id", "") if holder is not None else ""
    attached_to = node.get("attachedToRef") if tag == "boundaryEvent" else None
    cancel_activity = node.get("cancelActivity") if tag == "boundaryEvent" else None
    interrupting = None
    if tag == "boundaryEvent":
        # xs:boolean; its whitespace is collapsed, and the default is true.
        interrupting = (cancel_activity or "true").strip(XML_SPACE) not in ("false", "0")
    host = elements.get(attached_to or "")
    position, index_type = _position(
        node, tag, attached_to, interrupting, host if host and host.process == process else None
    )
    return TimerElement(
        id=node.get("id") or f"{tag} on line {line}",
        name=node.get("name", ""),
        tag=tag,
        process=process,
        line=line,
        position=position,
        index_type=index_type,
        attached_to=attached_to,
        interrupting=interrupting,
        cancel_activity=cancel_activity,
        definitions=tuple(_local(d) or "" for d in definitions),
        references=tuple(references),
        expressions=tuple(
            Expression(_local(e) or "", e.text or "", e.get("language"), len(e) > 0)
            for d in definitions
            if _local(d) == "timerEventDefinition"
            for e in _children(d, *EXPRESSION_KINDS)
        ),
    )


def _position(
    node: etree._Element,
    tag: str,
    attached_to: str | None,
    interrupting: bool | None,
    host: Element | None,
) -> tuple[str, str | None]:
    """Where a timer sits, in words, and the index type that it must have there (R30-R34)."""
    if tag == "startEvent":
        parent = node.getparent()
        holder = _local(parent) if parent is not None else None
        if holder == "process":
            return "startEvent of process", "TimerStartEvent"
        triggered = parent is not None and parent.get("triggeredByEvent", "").strip(XML_SPACE) in (
            "true",
            "1",
        )
        return f"startEvent of {'event' if triggered else 'embedded'} {holder}", None
    if tag == "intermediateCatchEvent":
        return tag, "TimerCatchEvent"
    if tag == "boundaryEvent":
        mode = "interrupting" if interrupting else "non-interrupting"
        words = f"boundary {mode} on {host.tag if host else f'missing {attached_to!r}'}"
        return words, "TimerCatchEvent" if host and host.tag == "userTask" else None
    return tag, None
