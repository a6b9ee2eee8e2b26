"""Loading: what runs otherwise than the diagram says is refused, and models do not mix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fixtures.engines import (
    END,
    HOUR,
    NOW,
    START,
    USER,
    answer,
    begin,
    boundary,
    bpmn,
    catch,
    engine,
    fire,
    flow_elements,
    reopened,
    run,
    timer,
    waiting,
)
from fixtures.small_models import BASE, STARTED, change, write
from lxml import etree

from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.graph import load_graph
from seams_lab.runtime.engine import Engine

USED = f"{START}{USER}{END}"


def chain(node: str, identifier: str = "x") -> str:
    """A process s, node, e."""
    return bpmn(START + node + END, f"s {identifier}; {identifier} e")


def conditional(condition: str) -> str:
    """A process with one condition."""
    nodes = START + '<exclusiveGateway id="g" default="g_f"/>' + END + '<endEvent id="f"/>'
    return bpmn(nodes, f"s g; g e [{condition}]; g f")


REFUSED: list[tuple[str, str, str, str, str]] = [
    # what, BPMN, subject, predicate, words
    ("script", chain("<scriptTask id='x'><script>1</script></scriptTask>"),
     "x", "bpmn:scriptTask", "would run as Python"),
    ("call in a condition", conditional("__import__('os').system('true')"),
     "g_e", "bpmn:conditionExpression", "line 1: "),
    ("empty condition", conditional(" "), "g_e", "bpmn:conditionExpression", "line 1: "),
    ("comment in a condition", conditional("n > 1 AND").replace("AND", "<!-- or more -->"),
     "g_e", "bpmn:conditionExpression", "holds a comment"),
    ("loop condition",
     chain("<userTask id='x'><standardLoopCharacteristics><loopCondition>f()</loopCondition>"
           "</standardLoopCharacteristics></userTask>"), "x", "bpmn:loopCondition", "line 1: "),
    ("cardinality",
     chain("<userTask id='x'><multiInstanceLoopCharacteristics><loopCardinality>len(a)"
           "</loopCardinality></multiInstanceLoopCharacteristics></userTask>"),
     "x", "bpmn:loopCardinality", "line 1: "),
    ("completion condition",
     chain("<userTask id='x'><multiInstanceLoopCharacteristics><loopCardinality>3"
           "</loopCardinality><completionCondition>a.b()</completionCondition>"
           "</multiInstanceLoopCharacteristics></userTask>"),
     "x", "bpmn:completionCondition", "line 1: "),
    ("conditional event",
     chain("<intermediateCatchEvent id='x'><conditionalEventDefinition id='d'>"
           "<condition>exec('1')</condition></conditionalEventDefinition>"
           "</intermediateCatchEvent>"), "x", "bpmn:condition", "line 1: "),
    ("correlation",
     bpmn(USED, "s u; u e", outside="<message id='m' name='m'/><correlationProperty id='c'>"
          "<correlationPropertyRetrievalExpression messageRef='m'><messagePath>f(1)</messagePath>"
          "</correlationPropertyRetrievalExpression></correlationProperty>"),
     "c", "bpmn:messagePath", "line 1: "),
    ("timer out of scope on a service task",
     bpmn(START + "<serviceTask id='u'/>" + END + boundary("t", "timeDuration", "PT1H"),
          "s u; u e; t e"), "t", "bpmn:timerEventDefinition", "out of scope: "),
    ("timer in an event sub-process",
     bpmn(USED + "<subProcess id='x' triggeredByEvent='1'><startEvent id='t'>"
          + timer("timeDuration", "PT1H") + "</startEvent><endEvent id='e2'/>"
          "<sequenceFlow id='f2' sourceRef='t' targetRef='e2'/></subProcess>", "s u; u e"),
     "t", "bpmn:timerEventDefinition", "out of scope: "),
    ("timer that is an expression",
     chain("<intermediateCatchEvent id='x'><timerEventDefinition><timeDuration>delay()"
           "</timeDuration></timerEventDefinition></intermediateCatchEvent>"),
     "x", "bpmn:timeDuration", "not exactly one plain quoted"),
    ("timer by reference",
     bpmn(START + "<intermediateCatchEvent id='x'><eventDefinitionRef>d</eventDefinitionRef>"
          "</intermediateCatchEvent>" + END, "s x; x e"),
     "x", "bpmn:timerEventDefinition", "referenced"),
    ("message by reference",
     bpmn(START + "<intermediateCatchEvent id='x'><eventDefinitionRef>d</eventDefinitionRef>"
          "</intermediateCatchEvent>" + END, "s x; x e",
          outside="<messageEventDefinition id='d'/>"),
     "x", "bpmn:intermediateCatchEvent", "a eventDefinitionRef definition is not run"),
    ("several definitions",
     chain("<intermediateCatchEvent id='x'><messageEventDefinition/><signalEventDefinition/>"
           "</intermediateCatchEvent>"), "x", "bpmn:intermediateCatchEvent", "message, signal"),
    ("link", chain("<intermediateThrowEvent id='x'><linkEventDefinition name='l'/>"
                   "</intermediateThrowEvent>"),
     "x", "bpmn:intermediateThrowEvent", "link definition is not run"),
    ("event sub-process",
     bpmn(USED + "<subProcess id='x' triggeredByEvent='true'><startEvent id='s2'>"
          "<messageEventDefinition/></startEvent><endEvent id='e2'/></subProcess>", "s u; u e"),
     "x", "bpmn:subProcess", "event sub-processes are not run"),
    ("ad-hoc sub-process", chain("<adHocSubProcess id='x'><userTask id='y'/></adHocSubProcess>"),
     "x", "bpmn:adHocSubProcess", "ad-hoc sub-processes are not run"),
    ("condition that nothing would evaluate",
     bpmn(USED, "s u; u e [n > 1]"), "u_e", "bpmn:conditionExpression", "never evaluated"),
    ("event that would not wait",
     bpmn(START + "<exclusiveGateway id='x' default='x_t'/><eventBasedGateway id='g'/>"
          + catch("t", "timeDuration", "PT1H") + catch("v", "timeDuration", "PT2H") + END,
          "s x; x g [n > 1]; x t; g t; g v; t e; v e"),
     "g_t", "bpmn:sequenceFlow", "would not wait"),
    ("complex gateway", chain("<complexGateway id='x'/>"),
     "", "seam:executes", "no support implemented"),
    ("gateway without a condition",
     bpmn(START + "<exclusiveGateway id='g'/>" + END + "<endEvent id='f'/>", "s g; g e; g f"),
     "", "seam:executes", "without condition"),
    ("no start event", bpmn(USER + END, "u e"), "", "seam:executes", "No start event found"),
    ("not executable", bpmn(USED, "s u; u e").replace('id="p"', 'id="p" isExecutable="0"'),
     "", "seam:executes", "not executable"),
    ("loop without a gateway", bpmn(USED + "<userTask id='v'/>", "s u; u v; v u"),
     "p", "seam:executes", "a loop without a gateway: u, v"),
    ("loop after a gateway",
     bpmn(USED + "<userTask id='v'/><exclusiveGateway id='g' default='g_e'/>",
          "s g; g e; g u [n > 1]; u v; v u"),
     "p", "seam:executes", "a loop without a gateway: u, v"),
    ("call of nothing", chain("<callActivity id='x' calledElement='nobody'/>"),
     "x", "bpmn:calledElement", "'nobody' is a process of no file"),
    ("call of a process that only a message starts",
     chain("<callActivity id='x' calledElement='q'/>").replace(
         "</definitions>", "<process id='q'><startEvent id='sq'><messageEventDefinition/>"
         "</startEvent><endEvent id='eq'/><sequenceFlow id='f' sourceRef='sq' targetRef='eq'/>"
         "</process></definitions>"),
     "x", "bpmn:calledElement", "0 none start events"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "subject", "predicate", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_what_cannot_run_as_drawn_is_refused(
    tmp_path: Path, text: str, subject: str, predicate: str, words: str
) -> None:
    with pytest.raises(ResolutionError) as caught:
        engine(tmp_path, text)
    error = caught.value
    assert error.subject == (f"m.bpmn#{subject}" if subject else "p")
    assert error.predicate == predicate
    assert words in error.fact
    assert error.fix
    assert "\n" not in str(error)


def test_what_other_processes_of_a_file_hold_does_not_matter(tmp_path: Path) -> None:
    bad = "<process id='q'><scriptTask id='bad'><script>1</script></scriptTask></process>"
    text = bpmn(USED, "s u; u e").replace("</definitions>", bad + "</definitions>")
    assert engine(tmp_path, text).processes == ("p",)


@pytest.mark.parametrize("process", ["q", "m.bpmn#q", ""])
def test_a_process_that_no_file_holds_is_refused(tmp_path: Path, process: str) -> None:
    with pytest.raises(ResolutionError, match="seam:detailedBy: no bpmn:process"):
        engine(tmp_path, bpmn(USED, "s u; u e"), process)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    graph = load_graph(write(tmp_path, bpmn=None))
    with pytest.raises(UnusableInput, match="no such file"):
        Engine(graph, [f"{BASE}p"])
    graph = load_graph(write(tmp_path))
    assert Engine(graph, [f"{BASE}p"]).processes == (f"{BASE}p",)


def test_loading_leaves_the_checked_tree_as_it_was(tmp_path: Path) -> None:
    text = bpmn(USED + boundary("t", "timeDuration", "PT1H", "1"), "s u; u e; t e",
                outside="<dataStore id='d' name='ledger'/>")  # fmt: skip
    (tmp_path / "m.bpmn").write_text(text, encoding="utf-8")
    graph = load_graph(tmp_path / "m.bpmn")
    before = etree.tostring(graph.payload("m.bpmn").root)
    for _ in range(2):
        made = Engine(graph, ["p", "m.bpmn#p"])
        assert waiting(made, begin(made)) == [("t", NOW + HOUR)]
    assert etree.tostring(graph.payload("m.bpmn").root) == before


@pytest.mark.parametrize("flag", ["1", "true", " true "])
def test_flags_are_booleans(tmp_path: Path, flag: str) -> None:
    text = bpmn(USED, "s u; u e").replace('id="p"', f'id="p" isExecutable="{flag}"')
    assert engine(tmp_path, text).processes == ("p",)


def test_a_receive_task_without_a_message_waits(tmp_path: Path) -> None:
    made = engine(tmp_path, chain("<receiveTask id='x'/>"))
    workflow = begin(made)
    assert not made.is_ended(reopened(made, workflow))


def test_a_chain_as_long_as_files_may_be_is_run(tmp_path: Path) -> None:
    nodes = "".join(f"<serviceTask id='n{i}'/>" for i in range(340))
    flows = ";".join(f"n{i} n{i + 1}" for i in range(339))
    made = engine(tmp_path, bpmn(START + nodes + END, f"s n0;{flows};n339 e"))
    workflow = reopened(made, begin(made))
    assert made.is_ended(workflow)


# ---------------------------------------------------------------- several models

CALLER = """
GRAPH <urn:seams:graph:model:k> { ex:k a seam:Model . ex:q a proc:Process ; seam:inModel ex:k . }
GRAPH <urn:seams:graph:seams> {
  ex:k seam:notation seam:BPMN ; seam:renderPayload <k.bpmn> .
  ex:q seam:detailedBy ex:k .
}
"""


def sub(inside: str, flows: str) -> str:
    """A sub-process with the id sub, in both models."""
    return f"<subProcess id='sub'>{inside}{flow_elements(flows)}</subProcess>"


def with_ids(text: str, mark: str) -> str:
    """Ids of sequence flows differ within a file."""
    return text.replace('<sequenceFlow id="', f'<sequenceFlow id="{mark}')


M = bpmn(
    START + "<serviceTask id='w' name='in m'/>"
    + with_ids(sub('<startEvent id="s1"/><callActivity id="c" calledElement="x:q"/>'
                   '<endEvent id="e1"/>', "s1 c; c e1"), "m") + END,
    "s w; w sub; sub e",
)  # fmt: skip
K = bpmn(
    '<startEvent id="s"/><serviceTask id="w" name="in k"/>'
    + with_ids(sub('<startEvent id="s1"/>' + catch("c", "timeDuration", "PT1H")
                   + '<endEvent id="e1"/>', "s1 c; c e1"), "k") + END,
    "s w; w sub; sub e", identifier="q",
)  # fmt: skip


def test_models_that_use_the_same_ids_call_each_other(tmp_path: Path) -> None:
    graph = load_graph(write(tmp_path, STARTED + CALLER, M, k__bpmn=K))
    calls: list[str] = []
    made = Engine(graph, [f"{BASE}p", f"{BASE}q"], {
        "w": lambda data, context: calls.append(f"{context.element} {context.name}")})  # fmt: skip
    process = f"{BASE}p"
    workflow = made.new_workflow(process, {"n": 1}, NOW)
    assert run(made, workflow) == ["s", "w", "s1", "s", "w", "s1"]
    assert calls == [f"{BASE}m#w in m", f"{BASE}k#w in k"]
    workflow = reopened(made, workflow, process)
    (found,) = made.waiting(workflow)
    assert (found.event, found.due) == (f"{BASE}k#c", NOW + HOUR)
    assert fire(made, workflow, "c", NOW + HOUR) is not None
    workflow = reopened(made, workflow, process)
    assert run(made, workflow) == ["c", "e1", "sub", "e", "c", "e1", "sub", "e"]
    assert made.is_ended(workflow)
    alone = made.new_workflow(f"{BASE}q", {}, NOW)
    assert run(made, alone) == ["s", "w", "s1"]


def test_a_called_process_begins_at_its_plain_start(tmp_path: Path) -> None:
    called = (
        "<process id='q'><startEvent id='t'>" + timer("timeCycle", "R/2026-11-09T08:00:00Z/P1D")
        + "</startEvent><startEvent id='sq'/><serviceTask id='a'/><serviceTask id='b'/>"
        "<endEvent id='eq'/>" + with_ids(flow_elements("t a; a eq; sq b; b eq"), "q") + "</process>"
    )  # fmt: skip
    text = chain("<callActivity id='x' calledElement='q'/>")
    made = engine(tmp_path, text.replace("</definitions>", called + "</definitions>"))
    workflow = made.new_workflow("p", {}, NOW)
    assert run(made, workflow) == ["s", "sq", "b", "eq", "x", "e"]
    assert made.is_ended(workflow)


def test_a_call_that_several_files_could_mean_is_refused(tmp_path: Path) -> None:
    trig = STARTED + CALLER + CALLER.replace("ex:k", "ex:l").replace("k.bpmn", "l.bpmn").replace(
        "model:k", "model:l").replace("ex:q", "ex:r")  # fmt: skip
    graph = load_graph(write(tmp_path, trig, M, k__bpmn=K, l__bpmn=K))
    with pytest.raises(
        ResolutionError, match=r"m#c: bpmn:calledElement: 'q' is a process of .*k, "
    ):
        Engine(graph, [f"{BASE}p"])


def test_what_is_called_is_checked_too(tmp_path: Path) -> None:
    script = '<scriptTask id="w"><script>1</script></scriptTask>'
    bad = change(K, ('<serviceTask id="w" name="in k"/>', script))
    graph = load_graph(write(tmp_path, STARTED + CALLER, M, k__bpmn=bad))
    with pytest.raises(ResolutionError, match="k#w: bpmn:scriptTask"):
        Engine(graph, [f"{BASE}p"])


def test_a_process_may_call_itself(tmp_path: Path) -> None:
    text = bpmn(
        START + USER + '<exclusiveGateway id="g" default="g_e"/>'
        '<callActivity id="c" calledElement="p"/>' + END,
        "s u; u g; g e; g c [again == True]; c e",
    )
    made = engine(tmp_path, text)
    workflow = begin(made)
    answer(made, workflow, {"again": True})
    run(made, workflow)
    workflow = reopened(made, workflow)
    answer(made, workflow, {"again": False})
    ran = run(made, workflow)
    assert ran == ["g", "e", "c", "e"]
    assert made.is_ended(workflow)


def test_the_examples_can_be_run(models: Path) -> None:
    graph = load_graph(models / "expense")
    made = Engine(graph, graph.processes)
    data: dict[str, Any] = {}
    for process in graph.processes:
        workflow = made.new_workflow(process, data, NOW)
        assert made.checkpoint(made.restore(process, made.checkpoint(workflow)))
