"""The health of a worker."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Health:
    """Ages are in seconds; None means never. `healthy`: claims work, or has no free slot, and renews its leases."""

    state: Literal["new", "running", "draining", "stopped"]
    healthy: bool
    worker_id: str
    instance_id: str
    slots: int
    running: int
    ready: int
    unacknowledged: int
    leases: int
    listening: bool
    last_claim_age_s: float | None
    last_renewal_age_s: float | None
    claimed: int
    completed: int
    failed: int
    paused: int
    released: int
    lost: int


__all__ = ["Health"]
