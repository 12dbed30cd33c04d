"""The public functions and classes with their signatures, for docs/api.md and so for `docs.tables`.

The page is the record of the public API, too: `make check` fails when a signature changes and the
page does not, so no public name changes unseen.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, ForwardRef

WIDTH = 88
"""Characters of a line; a longer signature has one parameter in each."""


def api(name: str) -> str:
    """Return what a module offers, in Markdown.

    Args:
        name: of a module with `__all__`.
    """
    module = import_module(name)
    return "\n".join("\n".join(_entry(module, each)) for each in _names(module))


def _names(module: ModuleType) -> list[str]:
    """Return the public names; an async version comes with the sync one."""
    names = sorted(module.__all__, key=lambda name: (not name[0].isupper(), name.lower()))
    return [name for name in names if not _is_async_version(module, name)]


def _is_async_version(module: ModuleType, name: str) -> bool:
    return name[0] == "a" and name[1:] in module.__all__


def _entry(module: ModuleType, name: str) -> Iterator[str]:
    value = getattr(module, name)
    yield f"### {name}"
    yield ""
    yield "```python"
    yield _signature(name, value)
    if f"a{name}" in module.__all__:
        yield _async_signature(name, value, getattr(module, f"a{name}"))
    yield "```"
    yield ""
    yield " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    yield ""


def _async_signature(name: str, value: Any, asynchronous: Any) -> str:
    """Return the signature of an async version; "..." if it is that of the sync one."""
    if inspect.signature(value) == inspect.signature(asynchronous):
        return f"await a{name}(...)"
    return _signature(f"await a{name}", asynchronous)


def _signature(name: str, value: Any) -> str:
    """Return a signature as it stands in code; a class without one is its name and bases."""
    if inspect.isclass(value) and issubclass(value, BaseException):
        return f"class {name}({', '.join(base.__name__ for base in value.__bases__)})"
    kind = "class " if inspect.isclass(value) else ""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return f"{kind}{name}"
    returns = "" if kind else _annotation(" -> ", signature.return_annotation)
    names = {} if name.startswith("await ") else getattr(value, "__globals__", {})
    parameters = list(_parameters(signature, names))
    text = f"{kind}{name}({', '.join(parameters)}){returns}"
    if len(text) <= WIDTH:
        return text
    return f"{kind}{name}(\n" + "".join(f"    {each},\n" for each in parameters) + f"){returns}"


def _parameters(signature: inspect.Signature, names: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parameters; the keywords of a `TypedDict` among `names` are spelt out."""
    before: object = None
    for parameter in signature.parameters.values():
        kind = parameter.kind
        if before is parameter.POSITIONAL_ONLY and kind is not before:
            yield "/"
        if kind is parameter.KEYWORD_ONLY and before not in (kind, parameter.VAR_POSITIONAL):
            yield "*"
        before = kind
        annotation = _annotation(": ", parameter.annotation)
        options = names.get(annotation.removeprefix(": Unpack[").removesuffix("]"))
        if options is not None and kind is parameter.VAR_KEYWORD:
            yield "*"
            for option, hint in options.__annotations__.items():
                yield f"{option}{_annotation(': ', hint)} = ..."
            continue
        default = "" if parameter.default is parameter.empty else repr(parameter.default)
        equals = f" = {default}" if annotation else f"={default}"
        stars = "*" * (kind is parameter.VAR_POSITIONAL) + "**" * (kind is parameter.VAR_KEYWORD)
        yield f"{stars}{parameter.name}{annotation}{equals if default else ''}"
    if before is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _annotation(before: str, annotation: Any) -> str:
    """Return an annotation as it is in the source: modules here do not evaluate them."""
    if annotation is inspect.Signature.empty:
        return ""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    return before + (
        annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    )
