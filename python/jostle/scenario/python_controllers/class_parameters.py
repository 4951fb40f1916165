"""Parameters of a controller class, read from its source without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jostle.scenario.python_controllers.source_files import ControllerSource

__all__ = ["CALLBACKS", "SEED", "ClassParameters", "class_parameters", "missing_callbacks"]

CALLBACKS: Final = ("on_ack", "on_congestion_event")
"""Methods that a controller class must have."""
SEED: Final = "seed"
"""Parameter that jostle sets."""
_CONSTRUCTORS: Final = frozenset({"__init__", "__new__"})
_NONE: Final = ast.arguments(
    posonlyargs=[], args=[ast.arg("self")], kwonlyargs=[], kw_defaults=[], defaults=[]
)


@dataclass(frozen=True)
class ClassParameters:
    """Parameters that a scenario can set.

    Attributes
    ----------
    names
        All parameters.
    required
        Parameters without a default.
    """

    names: tuple[str, ...]
    required: tuple[str, ...]


def class_parameters(source: ControllerSource, name: str) -> ClassParameters | None:
    """Return the parameters of a class; None if only executing the module would show them.

    This is so if the class is imported, decorated (a dataclass, for example) or bound again, has a
    metaclass or a base of another module, or accepts any keyword.
    """
    tree = ast.parse(source.modules[source.name].content)
    arguments = _arguments(name, tree)
    if arguments is None or arguments.kwarg or arguments.posonlyargs:
        return None
    positional = [argument.arg for argument in arguments.args[1:]]
    required = positional[: max(len(positional) - len(arguments.defaults), 0)]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    required += [argument.arg for argument, default in pairs if default is None]
    names = positional + [argument.arg for argument in arguments.kwonlyargs]
    return ClassParameters(
        tuple(one for one in names if one != SEED),
        tuple(one for one in required if one != SEED),
    )


def missing_callbacks(source: ControllerSource, name: str) -> tuple[str, ...]:
    """Return the methods that a class lacks; none if only executing the module would show them."""
    tree = ast.parse(source.modules[source.name].content)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    bound = list(_bindings(tree))
    names: set[str] = set()
    for _ in classes:
        found = classes.get(name)
        if found is None or bound.count(name) > 1 or found.decorator_list or found.keywords:
            return ()
        names.update(_bindings(found))
        bases = [base.id if isinstance(base, ast.Name) else "" for base in found.bases]
        if bases in ([], ["object"]):
            return tuple(one for one in CALLBACKS if one not in names)
        if len(bases) > 1:
            return ()
        (name,) = bases
    return ()


def _arguments(name: str, tree: ast.Module) -> ast.arguments | None:
    """Return the arguments of a class's own or inherited `__init__`; None if unknown."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    bound = list(_bindings(tree))
    for _ in classes:
        found = classes.get(name)
        if found is None or bound.count(name) > 1 or found.decorator_list or found.keywords:
            return None
        constructors = [one for one in _bindings(found) if one in _CONSTRUCTORS]
        if constructors:
            functions = [one for one in found.body if isinstance(one, ast.FunctionDef)]
            own = [one for one in functions if one.name == "__init__" and not one.decorator_list]
            return own[0].args if own and len(constructors) == 1 else None
        bases = [base.id if isinstance(base, ast.Name) else "" for base in found.bases]
        if bases in ([], ["object"]):
            return _NONE
        if len(bases) > 1:
            return None
        (name,) = bases
    return None


def _bindings(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module or class binds anywhere."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
