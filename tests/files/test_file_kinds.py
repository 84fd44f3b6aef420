"""Files that hold something else than lines of JSON are called what they are."""

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from reward_profiling.errors import ConfigError
from reward_profiling.files.file_kinds import refuse_other_kinds

ROW = b'{"responses_create_params":{"input":"2 + 2"},"agent_ref":{"name":"a"}}\n'


def zipped(content: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("tasks.jsonl", content)
    return archive.getvalue()


KINDS = [
    (gzip.compress(ROW), "gzip; unpack it: gunzip -k"),
    (bz2.compress(ROW), "bzip2; unpack it: bunzip2 -k"),
    (lzma.compress(ROW), "xz; unpack it: unxz -k"),
    (zipped(ROW), "a zip archive"),
    (b"PAR1" + bytes(100), "a Parquet file"),
    (ROW.decode().encode("utf-16"), "UTF-16; write it in UTF-8: iconv"),
    (b"\xfe\xff" + ROW.decode().encode("utf-16-be"), "UTF-16"),
    (b"[" + ROW + b"]", "one JSON array; write one object a line: jq -c"),
    (b"\xef\xbb\xbf[\n  " + ROW, "one JSON array"),
    (b"[]", "one JSON array"),
]


@pytest.mark.parametrize(("content", "said"), KINDS, ids=[said for _, said in KINDS])
def test_another_kind_is_named_with_a_remedy(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(content)

    with pytest.raises(ConfigError) as caught:
        refuse_other_kinds(path)

    assert str(caught.value).startswith(f"{path} is ")
    assert said in str(caught.value)


@pytest.mark.parametrize("content", [ROW, b"\xef\xbb\xbf" + ROW, b"", b"[1]\n", b"x"])
def test_lines_are_left_to_their_reader(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(content)

    refuse_other_kinds(path)


@pytest.mark.parametrize(
    "content",
    [gzip.compress(ROW), ROW.decode().encode("utf-16")],
    ids=["gzip", "UTF-16"],
)
def test_no_raw_bytes_reach_the_terminal(
    command: Callable[..., CompletedProcess[str]], tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "tasks.jsonl").write_bytes(content)

    done = command("materialize", "--input", "tasks.jsonl", "--output", "r.jsonl")

    assert done.returncode == 2
    assert done.stderr.isascii()
    assert len(done.stderr.splitlines()) == 1
