"""Which chunks this process computes now, said to others that use the same store.

A claim is a hint with an owner and an expiry: it spares others a fit, and no result depends on it. A thread renews the
claims that are held, so that those of a process that died run out; one that died on this host is noticed at once.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

from leakscope.core import temporary
from leakscope.runtime.store import Claim, Store

SECONDS = 60.0  # that a claim holds unless it is renewed
_RENEWALS = 3  # in that time


class Claims:
    """The claims of a process on the chunks of a store.

    Parameters
    ----------
    store : Store
    seconds : float
        How long a claim holds unless it is renewed.

    Examples
    --------
    >>> from leakscope.runtime.claims import Claims
    >>> from leakscope.runtime.store import Store, key
    >>> store = Store("memory://example-of-two-claims")
    >>> with Claims(store) as ours, Claims(store) as theirs:
    ...     ours.take(key(seed=0)), theirs.take(key(seed=0))
    (True, False)
    >>> store.claimed()
    {}
    """

    def __init__(self, store: Store, seconds: float = SECONDS) -> None:
        self._store, self._seconds = store, seconds
        self._owner = temporary.owner()
        self._held: set[str] = set()
        self._seen: dict[str, tuple[Claim | None, float]] = {}  # claims of others, and since when they are unchanged
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Claims:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give up what is held."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)
        for name in sorted(self._held):
            if not self.give_up(name):  # a store that does not answer is not asked for the others
                break

    def take(self, name: str) -> bool:
        """Claim a chunk; False while a claim of somebody else holds.

        Parameters
        ----------
        name : str
            The key of the chunk.
        """
        taken = self._store.claim(name, self._owner, self._seconds) or self._taken_over(name)
        if taken:
            with self._lock:
                self._held.add(name)
            self._start()
        return taken

    def give_up(self, name: str) -> bool:
        """Give up a claim, when the chunk is stored or will not be; False if the store does not answer."""
        with self._lock:
            self._held.discard(name)
        try:
            self._store.release(name, self._owner)
        except OSError:  # the claim runs out by itself
            return False
        return True

    def _taken_over(self, name: str) -> bool:
        """Take the claim of a process of this host that is gone, or one that nobody renews by our own clock."""
        claim = self._store.claim_of(name)
        first, since = self._seen.setdefault(name, (claim, time.monotonic()))
        if first != claim:
            self._seen[name] = (claim, time.monotonic())
            since = time.monotonic()
        is_dead = claim is not None and temporary.is_gone(claim.owner)
        if not is_dead and time.monotonic() - since < 2 * self._seconds:
            return False
        if claim is not None:
            self._store.release(name, claim.owner)
        self._store.claim(name, self._owner, self._seconds)
        return True  # also where the claim cannot be replaced: it is a hint

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._renew, name="leakscope claims", daemon=True)
            self._thread.start()

    def _renew(self) -> None:
        """Renew all that is held, until the end."""
        while not self._ended.wait(self._seconds / _RENEWALS):
            with self._lock:
                held = sorted(self._held)
            for name in held:
                if self._ended.is_set():
                    return
                try:
                    self._store.renew(name, self._owner, self._seconds)
                except OSError:  # the next renewal may work; a claim is a hint
                    break
