"""The docstrings of the standard library as passages: one for each documented module, class, function and method."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from serving.answer.types import Passage
from serving.retrieval.chunking import passage, pieces
from serving.retrieval.documents import Document
from serving.retrieval.stdlib_modules import STDLIB_MODULES, page

SOURCE = "python-stdlib"
MIN_CHARACTERS = 12
"""Docstrings below this only repeat the name."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_UNDERLINE = re.compile(r"(?m)^([=~^-])\1{2,}[ \t]*\n?")
_ONLY_SIGNATURE = re.compile(r"[\w.]+\([^()]*\)")


def stdlib_documents(modules: Sequence[str] = STDLIB_MODULES) -> Iterator[Document]:
    """Each of ``modules`` in order, as passages: its own docstring, then its public names, classes with methods.

    A docstring is taken once, where it is met first. A passage begins with the signature where Python knows it.
    Raises ``ModuleNotFoundError`` for a module that does not exist.
    """
    seen: set[str] = set()
    for name in modules:
        module = importlib.import_module(name)
        ready: list[Passage] = []
        for qualified, member in _members(name, module):
            docstring = _docstring(member)
            if len(docstring) < MIN_CHARACTERS or docstring in seen or _ONLY_SIGNATURE.fullmatch(docstring):
                continue
            seen.add(docstring)
            ready += _passages(name, qualified, member, docstring)
        url = _url(name, name, module)
        yield Document(text="", title=name, source=SOURCE, source_path=name, url=url, ready=tuple(ready))


def _passages(module: str, qualified: str, member: Any, docstring: str) -> Iterator[Passage]:
    document = Document(text="", title=qualified, source=SOURCE, url=_url(module, qualified, member))
    heading_path = (module,) if qualified == module else (module, qualified)
    for piece in pieces(_with_signature(qualified, member, docstring)):
        yield passage(document, heading_path, piece)


def _members(name: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The module, then its public members with their qualified names; functions before classes.

    A module's function may be a method of a hidden object (``random.shuffle``): as a function it is better known.
    """
    yield name, module
    prefix = "" if name == "builtins" else f"{name}."
    public = [(member_name, member) for member_name, member in _public(module) if _documentable(member)]
    # Of names that share a docstring the one people mean comes first: no alias (IOError), and the short one (set before
    # frozenset).
    public.sort(key=lambda entry: (inspect.isclass(entry[1]), entry[0] != _name(entry[1]), len(entry[0])))
    for member_name, member in public:
        qualified = f"{prefix}{member_name}"
        yield qualified, member
        if inspect.isclass(member):
            for method_name, method in vars(member).items():
                if not method_name.startswith("_") and _is_method(method):
                    yield f"{qualified}.{method_name}", method


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    # Every builtin is public, and some of them say they come from elsewhere (open, from io).
    listed = sorted(vars(module)) if module.__name__ == "builtins" else getattr(module, "__all__", None)
    for name in listed if listed is not None else sorted(vars(module)):
        member = getattr(module, name, None)
        if name.startswith("_") or member is None or inspect.ismodule(member):
            continue
        # Without a list of public names, what a module only imported is not its own.
        origin = getattr(member, "__module__", None) or module.__name__
        if listed is not None or origin.lstrip("_").split(".")[0] == module.__name__.split(".")[0]:
            yield name, member


def _documentable(member: Any) -> bool:
    if inspect.isclass(member) or inspect.isroutine(member):
        return True
    # An object that can be called and has words of its own (``typing.Optional``), not those of its class.
    return callable(member) and member.__doc__ != type(member).__doc__


def _name(member: Any) -> str:
    return str(getattr(member, "__name__", ""))


def _is_method(member: Any) -> bool:
    return (
        inspect.isroutine(member) or inspect.isdatadescriptor(member) or isinstance(member, (classmethod, staticmethod))
    )


def _docstring(member: Any) -> str:
    """The member's own docstring: one inherited belongs to the base, under the base's name."""
    inherited = inspect.isclass(member) and "__doc__" not in vars(member)
    own = None if inherited else getattr(member, "__doc__", None)
    # Lines under headings are no prose, and one of tildes would open a code block.
    return _UNDERLINE.sub("", inspect.cleandoc(own)).strip() if isinstance(own, str) else ""


def _with_signature(qualified: str, member: Any, docstring: str) -> str:
    short = qualified.rpartition(".")[2]
    if inspect.ismodule(member) or docstring.startswith((f"{short}(", f"{qualified}(")):
        return docstring
    if isinstance(member, (classmethod, staticmethod)):
        member = member.__func__
    try:
        signature = str(inspect.signature(member))
    except (TypeError, ValueError):
        return docstring
    # A default without a name shows its address, which is another one in every process.
    return f"{qualified}{_ADDRESS.sub('', signature)}\n\n{docstring}"


def _url(module: str, qualified: str, member: Any) -> str:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    anchor = f"module-{module}" if qualified == module else qualified
    return f"https://docs.python.org/{version}/library/{page(module, qualified, member)}.html#{anchor}"
