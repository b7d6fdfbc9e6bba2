"""Ids that are the same in every run of a task."""

import hashlib
from uuid import UUID


def partition(execution_id: str) -> int:
    return int(execution_id[4 : execution_id.index("}")])


def derived(execution_id: str, label: str) -> UUID:
    """An id derived from the execution and the label; it ends in the partition byte of the execution."""
    digest = bytearray(hashlib.sha256(f"{execution_id}/{label}".encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80  # version 8: custom
    digest[8] = digest[8] & 0x3F | 0x80
    digest[15] = partition(execution_id)
    return UUID(bytes=bytes(digest))


def derived_execution(execution_id: str, label: str) -> str:
    return f"{{fp:{partition(execution_id)}}}:{derived(execution_id, label)}"
