"""What a file is that holds no lines of JSON, and how to make lines of it."""

from pathlib import Path

from reward_profiling.errors import ConfigError
from reward_profiling.files.json_lines import open_to_read

_BEGINNINGS = (
    (b"\x1f\x8b", "is compressed with gzip; unpack it: gunzip -k {path}"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd; unpack it: unzstd {path}"),
    (b"\xfd7zXZ\x00", "is compressed with xz; unpack it: unxz -k {path}"),
    (b"BZh", "is compressed with bzip2; unpack it: bunzip2 -k {path}"),
    (b"PK\x03\x04", "is a zip archive; unpack it: unzip {path}"),
    (
        b"PAR1",
        (
            "is a Parquet file; write its rows as lines of JSON, such as with"
            " pandas.read_parquet(…).to_json(…, orient='records', lines=True)"
        ),
    ),
    (b"\xff\xfe", "is in UTF-16; write it in UTF-8: iconv -f UTF-16 -t UTF-8 {path}"),
    (b"\xfe\xff", "is in UTF-16; write it in UTF-8: iconv -f UTF-16 -t UTF-8 {path}"),
)
_BOM = b"\xef\xbb\xbf"
_LOOKED_AT = 4096


def refuse_other_kinds(path: Path) -> None:
    """Refuse a file that is known to hold something else than lines of JSON.

    Raises:
        ConfigError: says what it is, and how to make lines of it; or it cannot be read.
    """
    with open_to_read(path) as file:
        beginning = file.read(_LOOKED_AT)
    for mark, said in _BEGINNINGS:
        if beginning.startswith(mark):
            raise ConfigError(f"{path} {said.format(path=path)}")
    text = beginning.removeprefix(_BOM).lstrip()
    if text.startswith(b"[") and text[1:].lstrip()[:1] in {b"{", b"", b"]"}:
        raise ConfigError(
            f"{path} is one JSON array; write one object a line: jq -c '.[]' {path}"
        )
