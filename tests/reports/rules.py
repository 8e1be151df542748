"""What a document may be made of: gaps, `for` over rows, `if` on one name, `include`, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from jinja2 import nodes

from leakbound.reports.render.gaps import environment


def is_name(node: nodes.Node) -> bool:
    """A name, or a field of it: ``row.value``. What a loop knows of itself is none."""
    while isinstance(node, nodes.Getattr):
        node = node.node
    return isinstance(node, nodes.Name) and node.name != "loop"


def offences(document: str, text: str) -> list[str]:
    """Each line of a document that breaks a rule, with what does."""
    return [f"{document}, line {line}: {what}" for line, what in _offences(environment().parse(text))]


def _offences(node: nodes.Node) -> Iterator[tuple[int, str]]:
    match node:
        case nodes.Output():
            parts = [part for part in node.nodes if not isinstance(part, nodes.TemplateData)]
            yield from [(part.lineno, type(part).__name__) for part in parts if not is_name(part)]
            return
        case nodes.For():
            is_kept = is_name(node.iter) and is_name(node.target) and not (node.test or node.else_ or node.recursive)
            inner = node.body
        case nodes.If():
            is_kept = is_name(node.test)
            inner = [*node.body, *node.elif_, *node.else_]
        case nodes.Include():
            is_kept = isinstance(node.template, nodes.Const) or is_name(node.template)
            inner = []
        case _:
            is_kept = isinstance(node, nodes.Template)
            inner = getattr(node, "body", []) if is_kept else []
    if not is_kept:
        yield node.lineno, type(node).__name__
    for child in inner:
        yield from _offences(child)
