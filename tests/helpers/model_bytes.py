"""Model files taken apart and reassembled with a valid checksum: bad files that look good.

Written from docs/model_format.md alone, as another program would read the format.
"""

import hashlib
import json
import zlib

CHUNK = 4 << 20


def checksum(data: bytes) -> bytes:
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    crcs = [zlib.crc32(chunk).to_bytes(4, "little") for chunk in chunks]
    return hashlib.sha256(b"".join(crcs)).digest()


def take_apart(data: bytes) -> tuple[dict, bytes]:
    """The JSON header, and the arrays without the checksum."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length : -32]


def put_together(header: dict, body: bytes) -> bytes:
    """A file with that header, right or wrong, and a checksum that fits."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = len(text).to_bytes(8, "little") + text + body
    return data + checksum(data)


def seal(data: bytes) -> bytes:
    """The same file with a checksum that fits what it has become."""
    return data[:-32] + checksum(data[:-32])


def with_entry(data: bytes, entry: str, change) -> bytes:
    """Change one JSON entry of the metadata, such as "model", by a function of it."""
    header, body = take_apart(data)
    value = json.loads(header["__metadata__"][entry])
    changed = change(value)
    header["__metadata__"][entry] = json.dumps(value if changed is None else changed)
    return put_together(header, body)
