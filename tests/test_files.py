"""Files survive kills and full disks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host.files import append_line, write_atomically, write_or_say
from torchcompile_suite.host.places import cache_folder

line = st.binary(max_size=50).filter(lambda data: b"\n" not in data)


def test_write_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "file"
    write_atomically(file, b"one")
    write_atomically(file, b"two", sync=False)
    assert file.read_bytes() == b"two"
    assert list(file.parent.iterdir()) == [file]


def test_a_link_stays_and_a_pipe_gets_the_data(tmp_path: Path) -> None:
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    file.write_bytes(b"old")
    link.symlink_to(file)
    write_or_say(link, b"new")
    assert (link.is_symlink(), file.read_bytes()) == (True, b"new")
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_or_say(pipe, b"new")
    reader.join(10)
    assert (pipe.is_fifo(), read) == (True, [b"new"])


def test_a_user_without_a_home_folder_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with pytest.raises(SuiteError, match="no home folder; name a folder with XDG_CACHE_HOME"):
        cache_folder()
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_folder() == Path("/elsewhere/torchcompile-suite")


def test_a_failed_write_keeps_the_old_contents(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_atomically(file, b"old")
    with pytest.raises(TypeError):
        write_atomically(file, "not bytes")  # type: ignore[arg-type]
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


@given(st.lists(line, min_size=1, max_size=10), line)
def test_a_torn_line_spoils_only_itself(lines: list[bytes], torn: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        file.write_bytes(torn)
        for one in lines:
            append_line(file, one)
        head = torn + b"\n" if torn else b""
        assert file.read_bytes() == head + b"".join(one + b"\n" for one in lines)


def test_a_full_disk_adds_nothing(tmp_path: Path) -> None:
    """A file size limit of the kernel stands for the full disk: the write ends half-way."""
    file = tmp_path / "file"
    append_line(file, b"whole")
    code = """
import resource, signal, sys
from pathlib import Path
from torchcompile_suite.host.files import append_line
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
try:
    append_line(Path(sys.argv[1]), b"x" * 100)
except OSError as error:
    print("refused", error.errno)
"""
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True)
    assert done.stdout.startswith("refused"), done.stderr
    assert file.read_bytes() == b"whole\n"
