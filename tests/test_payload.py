"""BPMN files: what is read, what is refused, and that a hostile file does nothing."""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import socket
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from fixtures import documents
from fixtures.documents import BPMN, CATCH, chain, definitions, flows, process

import seams_lab.payload as payload_module
from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.payload import (
    MAX_BYTES,
    MAX_CHAIN,
    MAX_SUBPROCESS_DEPTH,
    parse_payload,
    read_payload,
)
from seams_lab.profile import read_timer

HOUR = documents.timer_definition("timeDuration", '"PT1H"')
ROOT = f'<bpmn:definitions xmlns:bpmn="{BPMN}">{{}}</bpmn:definitions>'
EXPRESSION = process(documents.POSITIONS[CATCH].format(HOUR.replace('"PT1H"', "{}")))


def refuse(data: bytes) -> UnusableInput:
    """The refusal of a file; it says where, what was seen, what was expected and the fix."""
    with pytest.raises(UnusableInput) as caught:
        parse_payload(data, "hostile.bpmn")
    error = caught.value
    for part in (error.where, error.seen, error.expected, error.fix):
        assert part.strip()
        assert part in str(error)
    assert error.where.startswith("hostile.bpmn")
    assert error.__suppress_context__ or error.__context__ is None  # no chain of tracebacks
    return error


# ---------------------------------------------------------------- hostile files


@pytest.fixture
def port() -> Iterator[int]:
    """A port on this host; a connection to it fails the test."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file whose text must never appear."""
    path = tmp_path / "secret.txt"
    path.write_text('"PT77H"')
    return path


LAUGHS = "".join(
    f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10)
)  # ten to the ninth of them
DOCTYPES = {
    "external entity of a file": '<!DOCTYPE d [<!ENTITY x SYSTEM "file://{secret}">]>',
    "external entity of a relative file": '<!DOCTYPE d [<!ENTITY x SYSTEM "secret.txt">]>',
    "external entity over http": '<!DOCTYPE d [<!ENTITY x SYSTEM "http://127.0.0.1:{port}/x">]>',
    "parameter entity of a file": (
        '<!DOCTYPE d [<!ENTITY % p SYSTEM "file://{secret}"> %p; <!ENTITY x "y">]>'
    ),
    "parameter entity over http": (
        '<!DOCTYPE d [<!ENTITY % p SYSTEM "http://127.0.0.1:{port}/x"> %p; <!ENTITY x "y">]>'
    ),
    "external subset": '<!DOCTYPE d SYSTEM "file://{secret}" [<!ENTITY x "y">]>',
    "public identifier": '<!DOCTYPE d PUBLIC "-//x" "file://{secret}" [<!ENTITY x "y">]>',
    "internal entity": "<!DOCTYPE d [<!ENTITY x '\"PT1H\"'>]>",
    "billion laughs": f'<!DOCTYPE d [<!ENTITY l0 "ha">{LAUGHS}<!ENTITY x "&l9;">]>',
    "quadratic blow-up": f'<!DOCTYPE d [<!ENTITY x "{"a" * 100_000}">]>',
    "default attribute": (
        "<!DOCTYPE d [<!ATTLIST bpmn:boundaryEvent cancelActivity CDATA 'false'><!ENTITY x \"y\">]>"
    ),
    "unparsed entity": '<!DOCTYPE d [<!NOTATION n SYSTEM "n"><!ENTITY x "y">]>',
    "after a comment": '<!-- c --><?p i?><!DOCTYPE d [<!ENTITY x "y">]>',
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
@pytest.mark.parametrize("name", DOCTYPES)
def test_a_doctype_is_refused_before_the_parser_sees_it(
    name: str, encoding: str, secret: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trap(*_: object) -> None:
        raise AssertionError("the file was parsed")

    monkeypatch.setattr(payload_module.etree, "fromstring", trap)
    monkeypatch.chdir(secret.parent)
    doctype = DOCTYPES[name].replace("{secret}", str(secret)).replace("{port}", str(port))
    declared = {"latin-1": "ISO-8859-1"}.get(encoding, encoding[:6].upper())
    text = f'<?xml version="1.0" encoding="{declared}"?>{doctype}' + ROOT.format(
        EXPRESSION.format("&x;" * (1000 if "quadratic" in name else 1))
    )
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    error = refuse(mark + text.encode(encoding))
    assert "DOCTYPE" in error.seen
    assert "PT77H" not in repr(vars(error))
    assert len(str(error)) < 400


@pytest.mark.parametrize("name", DOCTYPES)
def test_the_parser_itself_is_hardened_too(
    name: str, secret: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the first check ever miss a DOCTYPE, the second one still refuses it."""
    monkeypatch.setattr(payload_module, "_refuse_doctype", lambda *_: None)
    monkeypatch.chdir(secret.parent)
    doctype = DOCTYPES[name].replace("{secret}", str(secret)).replace("{port}", str(port))
    error = refuse(definitions(EXPRESSION.format("&x;"), doctype))
    assert "PT77H" not in repr(vars(error))


def test_an_entity_without_a_doctype_is_not_well_formed() -> None:
    assert "not well-formed" in refuse(definitions(EXPRESSION.format("&x;"))).seen


@pytest.mark.parametrize("code", ["CHILD_NODE", "NOT_A_LITERAL"])
def test_xinclude_is_not_followed(code: str, secret: Path) -> None:
    include = (
        '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" parse="text" '
        f'href="{secret.as_uri()}"/>'
    )
    inside, beside = (include, "") if code == "CHILD_NODE" else ("PT1H", include)
    [timer] = parse_payload(definitions(beside + EXPRESSION.format(inside))).timers
    with pytest.raises(ResolutionError) as caught:
        read_timer(timer)
    assert caught.value.code == code
    assert "PT77H" not in str(caught.value)


def test_a_stylesheet_or_schema_is_not_fetched(port: int) -> None:
    location = (
        '<bpmn:import importType="http://www.w3.org/2001/XMLSchema" '
        f'location="http://127.0.0.1:{port}/x.xsd" namespace="x"/>'
    )
    before = f'<?xml-stylesheet type="text/xsl" href="http://127.0.0.1:{port}/x.xsl"?>'
    payload = parse_payload(definitions(location + process(""), before))
    assert payload.processes == ("P",)


@pytest.mark.parametrize("depth", [300, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    deep = "<bpmn:subProcess>" * depth + "</bpmn:subProcess>" * depth
    refuse(definitions(process(deep)))
    foreign = "<x>" * depth + "</x>" * depth
    refuse(definitions(process(foreign)))


@pytest.mark.parametrize("tag", ["subProcess", "adHocSubProcess", "transaction"])
def test_sub_processes_nest_to_a_cap(tag: str) -> None:
    def nested(depth: int) -> bytes:
        inner = "".join(f'<bpmn:{tag} id="s{i}">' for i in range(depth)) + f"</bpmn:{tag}>" * depth
        return definitions(process(inner))

    assert f"s{MAX_SUBPROCESS_DEPTH - 1}" in parse_payload(nested(MAX_SUBPROCESS_DEPTH)).elements
    error = refuse(nested(MAX_SUBPROCESS_DEPTH + 1))
    assert str(MAX_SUBPROCESS_DEPTH) in error.seen
    assert "line" in error.where


def test_a_file_over_the_size_cap_is_refused_and_not_read_to_its_end(tmp_path: Path) -> None:
    text = definitions(process(f"<bpmn:documentation>{'a' * 11_000_000}</bpmn:documentation>"))
    assert "larger than" in refuse(text).seen
    path = tmp_path / "large.bpmn"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)  # a sparse file: reading all of it would exhaust the memory
    with pytest.raises(UnusableInput, match="larger than"):
        read_payload(path)


def test_a_file_of_the_largest_size_is_read() -> None:
    empty = definitions(process("<bpmn:documentation></bpmn:documentation>"))
    room = MAX_BYTES - len(empty)
    data = empty.replace(b"></bpmn:doc", b">" + b"a" * room + b"</bpmn:doc")
    assert len(data) == MAX_BYTES
    assert parse_payload(data).processes == ("P",)
    refuse(data + b" ")


NOT_BPMN = {
    "empty": b"",
    "blank": b"  \n ",
    "a byte order mark alone": b"\xef\xbb\xbf",
    "NUL bytes": b"\x00" * 100,
    "NUL in the text": definitions(process("")).replace(b"<bpmn:process", b"\x00<bpmn:process"),
    "NUL after the root": definitions(process("")) + b"\x00",
    "a control character": definitions(process("\x01")),
    "JSON": b'{"a": 1}',
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "a zip": b"PK\x03\x04" + b"\x00" * 50,
    "cut off": definitions(process(""))[:-10],
    "text after the root": definitions(process("")) + b"x",
    "two roots": definitions(process("")) + b"<a/>",
    "an unknown encoding": definitions("").replace(b"UTF-8", b"utf-99"),
    "an encoding that is no text": definitions("").replace(b"UTF-8", b"zlib"),
    "a wrong encoding": definitions(process("\u00e9")).replace("\u00e9".encode(), b"\xff\xfe\xfd"),
    "an unbound prefix": b"<bpmn:definitions/>",
    "no namespace": b'<definitions><process id="P"/></definitions>',
    "an older namespace": definitions(process("")).replace(b"20100524", b"20100501"),
    "another root": f'<process xmlns="{BPMN}" id="P"/>'.encode(),
    "HTML": b"<!doctype html><html></html>",
    "an XSD": b'<schema xmlns="http://www.w3.org/2001/XMLSchema"/>',
}


@pytest.mark.parametrize("name", NOT_BPMN)
def test_what_is_not_bpmn_is_unusable(name: str) -> None:
    refuse(NOT_BPMN[name])


def test_random_damage_is_read_or_refused_and_never_raises_anything_else() -> None:
    generator = random.Random(20261130)
    whole = definitions(process(documents.POSITIONS[documents.NON_INTERRUPTING].format(HOUR)))
    refused = 0
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(generator.randint(1, 4)):
            at = generator.randrange(len(data))
            data[at : at + generator.randint(0, 3)] = generator.randbytes(generator.randint(0, 3))
        try:
            parse_payload(bytes(data))
        except UnusableInput:
            refused += 1
    assert 300 < refused < 600


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("missing.bpmn", "no such file"),
        (".", "a folder"),
        ("file.txt/inside.bpmn", "no such file"),
        ("x" * 5000 + ".bpmn", ""),
        ("nul\x00.bpmn", "no such file"),
        ("loop.bpmn", ""),
    ],
    ids=["missing", "folder", "below a file", "name too long", "NUL in the name", "link loop"],
)
def test_a_path_that_cannot_be_read_is_unusable(name: str, seen: str, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "loop.bpmn").symlink_to(tmp_path / "loop.bpmn")
    with pytest.raises(UnusableInput) as caught:
        read_payload(tmp_path / name)
    assert seen in caught.value.seen
    assert caught.value.fix


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file"
)
def test_a_file_without_permission_is_unusable(tmp_path: Path) -> None:
    path = tmp_path / "model.bpmn"
    path.write_bytes(definitions(process("")))
    path.chmod(0)
    with pytest.raises(UnusableInput, match="permissions"):
        read_payload(path)


@pytest.mark.parametrize("method", ["open", "is_file"])
def test_an_error_of_the_system_is_unusable_input(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.bpmn"
    path.write_bytes(definitions(process("")))

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, method, denied)
    with pytest.raises(UnusableInput, match="Permission denied"):
        read_payload(path)


def test_a_path_may_be_text_and_the_bytes_are_hashed(tmp_path: Path) -> None:
    path = tmp_path / "model.bpmn"
    data = definitions(process(""))
    path.write_bytes(data)
    payload = read_payload(str(path))
    assert payload == read_payload(path)
    assert payload.sha256 == hashlib.sha256(data).hexdigest()
    assert payload.path == str(path)


def test_the_error_survives_being_sent_to_another_process() -> None:
    error = refuse(b"")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), vars(copy)) == (str(error), vars(error))


# ---------------------------------------------------------------- what is read

TIMED = process(documents.POSITIONS[documents.NON_INTERRUPTING].format(HOUR))


def as_written(data: bytes) -> tuple[object, ...]:
    payload = parse_payload(data)
    return payload.processes, payload.timers, payload.elements


@pytest.mark.parametrize("prefix", ["bpmn:", "bpmn2:", "semantic:", "B_-9:", "\u00fc:", ""])
def test_names_are_matched_by_namespace_and_not_by_prefix(prefix: str) -> None:
    plain = definitions(TIMED).decode()
    declaration = f'xmlns:{prefix[:-1]}="{BPMN}"' if prefix else f'xmlns="{BPMN}"'
    changed = plain.replace(f'xmlns:bpmn="{BPMN}"', declaration).replace("bpmn:", prefix)
    assert as_written(changed.encode()) == as_written(plain.encode())


def test_a_bpmn_prefix_bound_to_another_namespace_is_not_bpmn() -> None:
    foreign = (
        '<x:process xmlns:x="urn:x" id="Q"><x:startEvent id="E"><x:timerEventDefinition/>'
        "</x:startEvent></x:process>"
    )
    payload = parse_payload(definitions(TIMED + foreign))
    assert payload.processes == ("P",)
    assert [t.id for t in payload.timers] == ["T"]
    assert "E" not in payload.elements


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "ISO-8859-1", "US-ASCII"])
def test_encodings_are_read_alike(encoding: str) -> None:
    text = definitions(TIMED).decode().replace("UTF-8", encoding)
    assert as_written(text.encode(encoding)) == as_written(definitions(TIMED))


def test_a_byte_order_mark_is_fine() -> None:
    assert as_written(b"\xef\xbb\xbf" + definitions(TIMED)) == as_written(definitions(TIMED))


def test_elements_keep_document_order_names_lines_and_process() -> None:
    data = definitions(
        '<bpmn:process id="P"><bpmn:startEvent id="S" name="Start \u00e9"/>\n'
        '<bpmn:subProcess id="Sub"><bpmn:userTask id="U"/></bpmn:subProcess>\n'
        f'<bpmn:intermediateCatchEvent id="T">{HOUR}</bpmn:intermediateCatchEvent>'
        '</bpmn:process>\n<bpmn:collaboration id="C"><bpmn:participant id="Part"/>'
        "</bpmn:collaboration>"
    )
    elements = parse_payload(data).elements
    assert list(elements) == ["P", "S", "Sub", "U", "T", "C", "Part"]
    assert [e.line for e in elements.values()] == [1, 1, 2, 2, 3, 4, 4]
    assert [e.process for e in elements.values()] == ["P"] * 5 + ["", ""]
    assert elements["S"].name == "Start \u00e9"
    assert (elements["U"].tag, elements["U"].parent) == ("userTask", "subProcess")
    assert elements["T"].definitions == ("timerEventDefinition",)


@pytest.mark.parametrize(
    "pair",
    [
        '<bpmn:startEvent id="X"/><bpmn:endEvent id="X"/>',
        '<bpmn:subProcess id="X"><bpmn:task id="X"/></bpmn:subProcess>',
        '<bpmn:task id="P"/>',
        f'<bpmn:startEvent id="X">{HOUR.replace("Definition>", "Definition id=@X@>", 1)}'
        "</bpmn:startEvent>".replace("@", '"'),
    ],
)
def test_an_id_names_one_element(pair: str) -> None:
    error = refuse(definitions(process(pair.replace("@", '"'))))
    assert "already the id" in error.seen
    assert "line" in error.where


def test_ids_outside_bpmn_are_not_counted() -> None:
    """Diagram interchange and extensions have ids of their own."""
    other = '<x:shape xmlns:x="urn:x" id="T"/><x:shape xmlns:x="urn:x" id="T"/>'
    assert len(parse_payload(definitions(TIMED + other)).timers) == 1


def test_several_processes_each_keep_their_timers() -> None:
    catch = '<bpmn:intermediateCatchEvent id="{}">' + HOUR + "</bpmn:intermediateCatchEvent>"
    payload = parse_payload(
        definitions(
            process(catch.format("A"), "P1") + process(catch.format("B"), "P2") + process("", "P3")
        )
    )
    assert payload.processes == ("P1", "P2", "P3")
    assert [(t.id, t.process) for t in payload.timers] == [("A", "P1"), ("B", "P2")]


def test_a_timer_after_a_process_is_not_taken_into_it() -> None:
    after = '<bpmn:choreography id="C"><bpmn:intermediateCatchEvent id="A">' + HOUR
    after += "</bpmn:intermediateCatchEvent></bpmn:choreography>"
    [timer] = parse_payload(definitions(process("") + after)).timers
    assert timer.process == ""


def test_a_timer_without_an_id_is_named_by_its_line() -> None:
    inside = f"\n<bpmn:intermediateCatchEvent>{HOUR}</bpmn:intermediateCatchEvent>"
    [timer] = parse_payload(definitions(process(inside))).timers
    assert timer.id == "intermediateCatchEvent on line 2"


PLACES = [
    ("a process start", f'<bpmn:startEvent id="T">{HOUR}</bpmn:startEvent>',
     "startEvent of process", "TimerStartEvent"),
    ("an intermediate catch event",
     f'<bpmn:intermediateCatchEvent id="T">{HOUR}</bpmn:intermediateCatchEvent>',
     "intermediateCatchEvent", "TimerCatchEvent"),
    ("a catch event in a sub-process",
     f'<bpmn:subProcess id="X"><bpmn:intermediateCatchEvent id="T">{HOUR}'
     "</bpmn:intermediateCatchEvent></bpmn:subProcess>",
     "intermediateCatchEvent", "TimerCatchEvent"),
    ("a start in an embedded sub-process",
     f'<bpmn:subProcess id="X"><bpmn:startEvent id="T">{HOUR}</bpmn:startEvent></bpmn:subProcess>',
     "startEvent of embedded subProcess", None),
    ("a start in an event sub-process",
     f'<bpmn:subProcess id="X" triggeredByEvent="true"><bpmn:startEvent id="T">{HOUR}'
     "</bpmn:startEvent></bpmn:subProcess>", "startEvent of event subProcess", None),
    ("a start in an event sub-process, as 1",
     f'<bpmn:subProcess id="X" triggeredByEvent="1"><bpmn:startEvent id="T">{HOUR}'
     "</bpmn:startEvent></bpmn:subProcess>", "startEvent of event subProcess", None),
    ("a throw event",
     f'<bpmn:intermediateThrowEvent id="T">{HOUR}</bpmn:intermediateThrowEvent>',
     "intermediateThrowEvent", None),
    ("an end event", f'<bpmn:endEvent id="T">{HOUR}</bpmn:endEvent>', "endEvent", None),
    ("a boundary on nothing", f'<bpmn:boundaryEvent id="T">{HOUR}</bpmn:boundaryEvent>',
     "boundary interrupting on missing None", None),
    ("a boundary on an unknown id",
     f'<bpmn:boundaryEvent id="T" attachedToRef="?">{HOUR}</bpmn:boundaryEvent>',
     "boundary interrupting on missing '?'", None),
    *[
        (f"a boundary on a {tag}",
         f'<bpmn:{tag} id="U"/><bpmn:boundaryEvent id="T" attachedToRef="U">{HOUR}'
         "</bpmn:boundaryEvent>",
         f"boundary interrupting on {tag}", "TimerCatchEvent" if tag == "userTask" else None)
        for tag in ("userTask", "task", "manualTask", "serviceTask", "scriptTask", "receiveTask",
                    "sendTask", "businessRuleTask", "callActivity", "subProcess", "transaction")
    ],
    ("a boundary before its task in the file",
     f'<bpmn:boundaryEvent id="T" attachedToRef="U">{HOUR}</bpmn:boundaryEvent>'
     '<bpmn:userTask id="U"/>', "boundary interrupting on userTask", "TimerCatchEvent"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("inside", "position", "index_type"), [p[1:] for p in PLACES], ids=[p[0] for p in PLACES]
)
def test_where_a_timer_sits_decides_its_index_type(
    inside: str, position: str, index_type: str | None
) -> None:
    [timer] = parse_payload(definitions(process(inside))).timers
    assert (timer.position, timer.index_type) == (position, index_type)


def test_a_boundary_on_a_task_of_another_process_never_fires_and_is_not_lifted() -> None:
    boundary = f'<bpmn:boundaryEvent id="T" attachedToRef="U">{HOUR}</bpmn:boundaryEvent>'
    [timer] = parse_payload(
        definitions(process('<bpmn:userTask id="U"/>', "P1") + process(boundary, "P2"))
    ).timers
    assert timer.index_type is None


@pytest.mark.parametrize(
    ("reference", "definition", "found"),
    [
        ("D", '<bpmn:timerEventDefinition id="D"/>', True),
        (" D ", '<bpmn:timerEventDefinition id="D"/>', True),
        ("t:D", '<bpmn:timerEventDefinition id="D"/>', True),
        ("D", "", True),  # it leads nowhere: better seen than passed over
        ("D", '<bpmn:messageEventDefinition id="D"/>', False),
    ],
)
def test_a_definition_by_reference_is_seen_when_it_may_be_a_timer(
    reference: str, definition: str, found: bool
) -> None:
    event = (
        '<bpmn:intermediateCatchEvent id="T"><bpmn:eventDefinitionRef>'
        f"{reference}</bpmn:eventDefinitionRef></bpmn:intermediateCatchEvent>"
    )
    timers = parse_payload(definitions(definition + process(event))).timers
    assert [t.references for t in timers] == ([(reference.strip(),)] if found else [])


def test_an_expression_keeps_its_text_and_attributes() -> None:
    definition = (
        '<bpmn:timerEventDefinition><bpmn:timeDate language="L">a<!--c-->b</bpmn:timeDate>'
        "<bpmn:timeCycle/></bpmn:timerEventDefinition>"
    )
    [timer] = parse_payload(documents.event(CATCH, definition)).timers
    first, second = timer.expressions
    assert (first.kind, first.body, first.language, first.has_children) == (
        "timeDate", "a", "L", True,
    )  # fmt: skip
    assert (second.kind, second.body, second.language, second.has_children) == (
        "timeCycle", "", None, False,
    )  # fmt: skip
    assert timer.kind is None
    assert timer.body is None


# ---------------------------------------------------------------- chains

N = [f"n{i}" for i in range(5_000)]


@pytest.mark.parametrize("length", [2, 399, MAX_CHAIN, MAX_CHAIN + 1, 490, 5_000])
@pytest.mark.parametrize("first", ["startEvent", "task"])
@pytest.mark.parametrize("order", ["forward", "backward", "shuffled"])
def test_a_chain_is_read_up_to_the_cap(length: int, first: str, order: str) -> None:
    edges = list(pairwise(N[:length]))
    if order == "backward":
        edges.reverse()
    elif order == "shuffled":
        random.Random(7).shuffle(edges)
    nodes = f'<bpmn:{first} id="n0"/>' + "".join(f'<bpmn:task id="{n}"/>' for n in N[1:length])
    data = definitions(process(nodes + flows(edges)))
    if length <= MAX_CHAIN:
        assert len(parse_payload(data).elements) == 1 + 2 * length - 1
    else:
        error = refuse(data)
        assert f"{MAX_CHAIN} flow nodes" in error.seen
        assert "'n0'" in error.seen


@pytest.mark.parametrize(("length", "fine"), [(1, True), (MAX_CHAIN, True), (5_000, False)])
def test_a_cycle_without_a_start_is_walked_once(length: int, fine: bool) -> None:
    nodes = "".join(f'<bpmn:task id="{n}"/>' for n in N[:length])
    ring = flows(zip(N[:length], [*N[1:length], N[0]], strict=True))
    data = definitions(process(nodes + ring))
    if fine:
        parse_payload(data)
    else:
        refuse(data)


def test_a_walk_from_elsewhere_does_not_hide_a_long_chain() -> None:
    """A loose task that leads into the middle stands first in the file."""
    middle = flows([("loose", "n300")]).replace("flow0", "into")
    data = definitions(process('<bpmn:task id="loose"/>' + middle + chain(N[:600])))
    assert "chain" in refuse(data).seen


def test_a_chain_through_boundary_events_counts() -> None:
    nodes = '<bpmn:startEvent id="n0"/>' + "".join(
        f'<bpmn:userTask id="{n}"/>' if i % 2 == 0
        else f'<bpmn:boundaryEvent id="{n}" attachedToRef="n{i}"/>'
        for i, n in enumerate(N[1 : MAX_CHAIN + 1])
    )  # fmt: skip
    pairs = zip(N[:MAX_CHAIN:2], N[1 : MAX_CHAIN + 1 : 2], strict=True)
    assert "chain" in refuse(definitions(process(nodes + flows(pairs)))).seen


def test_a_wide_flow_and_long_sub_processes_are_fine() -> None:
    fan = [edge for n in N[:2000] for edge in (("split", n), (n, "join"))]
    nodes = '<bpmn:startEvent id="split"/><bpmn:endEvent id="join"/>' + "".join(
        f'<bpmn:task id="{n}"/>' for n in N[:2000]
    )
    payload = parse_payload(definitions(process(nodes + flows(fan))))
    assert len(payload.elements) == 1 + 2002 + 4000
    names = [[f"s{s}n{i}" for i in range(MAX_CHAIN)] for s in range(3)]
    subs = "".join(
        f'<bpmn:subProcess id="s{s}">{chain(row).replace("flow", f"s{s}f")}</bpmn:subProcess>'
        for s, row in enumerate(names)
    )
    parse_payload(definitions(process(subs)))


def test_a_flow_to_or_from_nowhere_is_read() -> None:
    loose = '<bpmn:sequenceFlow id="a"/><bpmn:sequenceFlow id="b" sourceRef="x"/>'
    assert set(parse_payload(definitions(process(loose))).elements) == {"P", "a", "b"}


def test_a_payload_prints_shortly() -> None:
    assert repr(parse_payload(definitions(TIMED), "m.bpmn")) == (
        "<Payload m.bpmn: 1 process(es), 4 elements, 1 timer(s)>"
    )
