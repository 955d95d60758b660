"""Which modules of the standard library are in the embedded corpus, and on which page of the manual a name stands."""

from __future__ import annotations

import inspect
from typing import Any

STDLIB_MODULES: tuple[str, ...] = tuple(
    """
    builtins itertools functools collections collections.abc operator math cmath statistics random decimal fractions
    numbers datetime time calendar zoneinfo string re textwrap difflib unicodedata struct codecs
    heapq bisect array copy pprint reprlib enum graphlib types weakref dataclasses typing abc contextlib contextvars
    os os.path pathlib io shutil tempfile glob fnmatch fileinput filecmp linecache stat
    json csv configparser tomllib pickle shelve sqlite3 base64 binascii html html.parser xml.etree.ElementTree
    zlib gzip bz2 lzma zipfile tarfile
    hashlib hmac secrets uuid
    sys platform signal subprocess threading queue multiprocessing concurrent.futures asyncio sched
    select selectors mmap
    socket socketserver ssl http.client http.server http.cookies urllib.parse urllib.request urllib.error
    email.message smtplib ipaddress mimetypes
    argparse getpass shlex cmd logging logging.handlers logging.config warnings traceback
    inspect ast dis tokenize importlib importlib.metadata importlib.resources pkgutil runpy
    unittest unittest.mock doctest timeit cProfile tracemalloc gc atexit locale gettext
    """.split()
)
"""What people ask about. Left out: what does something when imported (``this``, ``antigravity``), programs
(``idlelib``, ``turtle``), tests, and what is deprecated. Builtins come first, so that a docstring shared with a
subclass is theirs."""

_PAGES = {"xml.etree.ElementTree": "xml.etree.elementtree", "cProfile": "profile"}

# asyncio is one module to import and many pages to read; the pages follow its own submodules.
_ASYNCIO_PAGES = {
    "tasks": "asyncio-task",
    "taskgroups": "asyncio-task",
    "timeouts": "asyncio-task",
    "coroutines": "asyncio-task",
    "threads": "asyncio-task",
    "runners": "asyncio-runner",
    "streams": "asyncio-stream",
    "locks": "asyncio-sync",
    "mixins": "asyncio-sync",
    "subprocess": "asyncio-subprocess",
    "queues": "asyncio-queue",
    "exceptions": "asyncio-exceptions",
    "futures": "asyncio-future",
    "protocols": "asyncio-protocol",
    "transports": "asyncio-protocol",
    "events": "asyncio-eventloop",
    "base_events": "asyncio-eventloop",
    "unix_events": "asyncio-policy",
}


def page(module: str, qualified: str, member: Any) -> str:
    """The page of the manual, without its suffix, for a name of ``module``."""
    if module == "builtins":
        return _builtins_page(qualified, member)
    if module == "asyncio":
        home = str(getattr(member, "__module__", "")).rpartition(".")[2]
        return _ASYNCIO_PAGES.get(home, "asyncio")
    return _PAGES.get(module, module)


def _builtins_page(qualified: str, member: Any) -> str:
    if inspect.isclass(member) and issubclass(member, BaseException):
        return "exceptions"
    return "stdtypes" if "." in qualified else "functions"
