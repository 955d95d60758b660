"""Git as far as reading a repository needs it: its own executable, read-only, and told to run nothing else."""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from serving.retrieval.documents import SkipReason
from serving.retrieval.sources.decoding import SkipError
from serving.retrieval.sources.options import SourceError

# What a repository's own configuration may make git run or print.
_SAFE = ("-c", "log.showSignature=false", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "--no-pager")

# Set by git for what it runs, such as a hook; here they would name another repository than the one that was given.
_REPOSITORY_VARIABLES = (
    "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR "
    "GIT_NAMESPACE GIT_PREFIX GIT_CEILING_DIRECTORIES"
).split()

_SCP_ADDRESS = re.compile(r"(?:[^@/:]+@)?([^/:@]+):(?!//)(.+)")
_COMMIT = re.compile(r"\x01([0-9a-f]{40,64}) (\d{1,11})")
_URL = re.compile(r"(?:https?|ssh|git)://(?:[^/]*@)?([^/:@]+)(?::\d+)?/([^?#]+).*")


class Entry(NamedTuple):
    """A file of a tree: its path in the repository, the object that holds it, its size in bytes where git has it."""

    path: str
    oid: str
    size: int | None


class Touched(NamedTuple):
    """The commit that gave a file the text it has, and the time of that commit."""

    sha: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository, opened at one commit.

    ``remote`` is where it comes from, None when it comes from nowhere; ``prefix`` is the folder (with a slash at its
    end) or file in it that was asked for, or empty.
    """

    folder: Path
    remote: str | None
    commit: str
    prefix: str

    @property
    def name(self) -> str:
        """What people call it: ``github.com/owner/name``, or its folder's name when it has no remote."""
        return self.remote or self.folder.resolve().name.removesuffix(".git")

    @property
    def place(self) -> str:
        """What tells it from every other: clones of one remote are one repository wherever they lie."""
        return f"git:{self.remote or self.folder.resolve()}"

    def entries(self) -> Iterator[Entry]:
        """The tracked files at the commit, under the prefix, by path. Links and other repositories are none."""
        under = ["--", self.prefix] if self.prefix else []
        listing = _git(self.folder, "ls-tree", "-r", "-z", "-l", "--full-tree", self.commit, *under)
        for line in filter(None, listing.split("\0")):
            about, _, path = line.partition("\t")
            mode, kind, oid, size = about.split()
            if kind == "blob" and mode != "120000":
                yield Entry(path, oid, int(size) if size.isdecimal() else None)

    def touched(self, paths: set[str]) -> dict[str, Touched]:
        """For each path, the last commit that changed it along the first parents, and when.

        A merge counts as the change it brought, so that the text at the commit is the text that is cited. A path that
        no commit is found for, in a history cut short, is missing.
        """
        left, found = set(paths), dict[str, Touched]()
        process = _start(
            self.folder,
            *("log", "--first-parent", "-m", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv"),
            *("--format=%x01%H %ct", self.commit, "--", *([self.prefix] if self.prefix else [])),
        )
        with _stopped(process):
            commit: Touched | None = None
            for word in _words(_piped(process)):
                if match := _COMMIT.fullmatch(word):
                    commit = Touched(match[1], datetime.fromtimestamp(int(match[2]), UTC))
                elif commit and word in left:
                    left.discard(word)
                    found[word] = commit
                    if not left:
                        break
        return found

    @contextmanager
    def blobs(self) -> Iterator[Blobs]:
        """The contents of objects, read from one process."""
        process = _start(self.folder, "cat-file", "--batch", stdin=subprocess.PIPE)
        with _stopped(process):
            yield Blobs(process)


class Blobs:
    """Reads one object at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._in, self._out = process.stdin, _piped(process)

    @contextmanager
    def open(self, oid: str) -> Iterator[BinaryIO]:
        """The bytes of an object. Raises :class:`SkipError` when the repository does not have it."""
        assert self._in is not None  # noqa: S101  # it was asked for as a pipe
        self._in.write(oid.encode() + b"\n")
        self._in.flush()
        header = self._out.readline().split()
        if len(header) != 3:
            raise SkipError(
                SkipReason.UNREADABLE, "git does not have the object; run `git fetch --refetch`, or clone it"
            )
        part = _Part(self._out, int(header[2]))
        try:
            yield io.BufferedReader(part)
        finally:
            part.drain()
            self._out.read(1)  # the newline after it


class _Part(io.RawIOBase):
    """The next ``size`` bytes of a stream."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        super().__init__()
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # what BufferedReader gives
        read = self._stream.read(min(len(buffer), self._left))
        buffer[: len(read)] = read
        self._left -= len(read)
        return len(read)

    def drain(self) -> None:
        while self._left and (read := self._stream.read(min(self._left, 1 << 20))):
            self._left -= len(read)


def is_top(folder: Path) -> bool:
    """Whether ``folder`` is the top of a work tree, or a bare repository. Does not ask git."""
    return (folder / ".git").exists() or (
        (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()
    )


def open_repository(path: Path, rev: str | None) -> Repository:
    """The repository that ``path`` is or lies in, at ``rev`` (``HEAD`` when None).

    Raises :class:`SourceError` when git is missing, when ``path`` is in no repository, and for an unknown ``rev``.
    """
    if rev is not None and (rev.startswith("-") or not rev.strip()):
        raise SourceError(f"--rev {rev!r} names no commit; name one, or a branch or tag, such as main")
    inside = path if path.is_dir() else path.parent
    try:
        prefix = _git(inside, "rev-parse", "--show-prefix").rstrip("\n")
    except SourceError as error:
        raise SourceError(
            f"{path} cannot be read as part of a git repository ({error}); name one, or use --no-git"
        ) from error
    commit = _commit(inside, rev, path)
    prefix += "" if path.is_dir() else path.name
    bare = _git(inside, "rev-parse", "--is-bare-repository").strip() == "true"
    top = inside if bare else Path(_git(inside, "rev-parse", "--show-toplevel").rstrip("\n"))
    return Repository(top, _remote(top), commit, "" if bare else prefix)


def _commit(folder: Path, rev: str | None, path: Path) -> str:
    try:
        return _git(
            folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev or 'HEAD'}^{{commit}}"
        ).strip()
    except SourceError as error:
        if rev is None:
            raise SourceError(
                f"{path} has no commit yet; commit its files, or read them as they are with --no-git"
            ) from error
        raise SourceError(
            f"{path} has no commit, branch or tag {rev}; see `git -C {path} log --oneline --all`"
        ) from error


def _remote(top: Path) -> str | None:
    try:
        return remote_name(_git(top, "config", "--get", "remote.origin.url").strip())
    except SourceError:
        return None  # git says nothing, and fails, when there is no such key


def remote_name(url: str) -> str | None:
    """``github.com/owner/name`` of a remote's address, without user, password or port; None for one on this machine."""
    match = _URL.fullmatch(url) or (None if "://" in url else _SCP_ADDRESS.fullmatch(url))
    return f"{match[1]}/{match[2].strip('/').removesuffix('.git')}" if match else None


def _git(folder: Path, *arguments: str) -> str:
    """What git prints, names as the file system has them. Raises :class:`SourceError` with what it says."""
    process = _start(folder, *arguments, stderr=subprocess.PIPE)
    out, err = process.communicate()
    if process.returncode:
        said = err.decode("utf-8", "replace").strip().removeprefix("fatal: ")
        raise SourceError(said or f"git {arguments[0]} failed")
    return os.fsdecode(out)


def _start(
    folder: Path, *arguments: str, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _REPOSITORY_VARIABLES}
    environment |= {
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    }
    try:
        return subprocess.Popen(  # noqa: S603  # no shell, and nothing that is given can be an option
            ["git", *_SAFE, "-C", os.fspath(folder), *arguments],  # noqa: S607  # the git that the user has
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
        )
    except FileNotFoundError as error:
        raise SourceError(
            "git is not installed: install it (apt-get install git), or read folders as they are with --no-git"
        ) from error


def _piped(process: subprocess.Popen[bytes]) -> BinaryIO:
    assert process.stdout is not None  # noqa: S101  # it was asked for as a pipe
    return process.stdout  # type: ignore[return-value]  # buffered, so readers get all they ask for


@contextmanager
def _stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """The process ends with the block, also when it has more to say."""
    try:
        yield
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                _close(pipe)
        process.wait()


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        return


def _words(stream: BinaryIO) -> Iterator[str]:
    """What stands between zero bytes, without the newline that git puts before the first name of a commit."""
    held = b""
    while block := stream.read1(1 << 16):  # type: ignore[attr-defined]  # a buffered reader has it
        *words, held = (held + block).split(b"\0")
        for word in words:
            yield os.fsdecode(word.removeprefix(b"\n"))
    if held:
        yield os.fsdecode(held.removeprefix(b"\n"))
