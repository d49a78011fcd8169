"""The fold of delegation tokens (docs/internals/security.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from rockgate.gateway.security.delegation.token import Token
from rockgate.gateway.security.errors import TooManyRecords
from rockgate.store.api.folds import Fold, Journal, KeyedFold

TOPIC: Final = b"rmq_sys_rockgate_tokens"
TOKENS_MAX: Final = 100_000
OF_OWNER_MAX: Final = 10_000
"""Tokens of one owner: any client may create its own."""
_NONE: Final[Mapping[str, None]] = {}


class StoredTokens:
    """All tokens by id, and where those of an owner or with a digest are."""

    def __init__(self, journal: Journal) -> None:
        self._fold: KeyedFold[str, Token] = KeyedFold(
            journal, name="tokens", topic=TOPIC, key=str, value=Token, follower=self
        )
        self._fold.on_changed.append(self._notify)
        # Owner and digest by id: a notice of a removal comes without them.
        self._known: dict[str, tuple[str, bytes]] = {}
        self._digests: dict[bytes, str] = {}
        self._by_owner: dict[str, dict[str, None]] = {}
        self._removed: set[str] = set()
        self.on_removed: list[Callable[[AbstractSet[str]], None]] = []
        """Called with the ids of tokens that were removed, after they were."""

    @property
    def fold(self) -> Fold:
        """What the store feeds."""
        return self._fold

    # Reading

    def __len__(self) -> int:
        return len(self._fold)

    def find(self, token_id: str) -> Token | None:
        """Return a token, expired or not; None if there is none."""
        return self._fold.find(token_id)

    def id_of(self, digest: bytes) -> str | None:
        """The id of the token whose HMAC has this SHA-256."""
        return self._digests.get(digest)

    def ids(self) -> Iterator[str]:
        """The ids of all tokens; valid until the next change."""
        return iter(self._known)

    def ids_of(self, owner: str) -> Iterable[str]:
        """The ids of an owner's tokens; valid until the next change."""
        return self._by_owner.get(owner, _NONE)

    # Changing

    def put(self, token_id: str, token: Token) -> None:
        """Add a token, or change one."""
        if not self._fold.has(token_id):
            if len(self._fold) >= TOKENS_MAX:
                raise TooManyRecords(TOKENS_MAX, "delegation tokens")
            if len(self._by_owner.get(token.owner, _NONE)) >= OF_OWNER_MAX:
                raise TooManyRecords(OF_OWNER_MAX, "delegation tokens of an owner")
        self._fold.put({token_id: token})

    def remove(self, ids: Iterable[str]) -> None:
        """Remove tokens, all or none; those that do not exist are left out."""
        self._fold.put({each: None for each in ids if self._fold.has(each)})

    # Notices of the fold

    def was_set(self, token_id: str, token: Token, /) -> None:
        """Index a token; its owner and its digest never change."""
        self._known[token_id] = token.owner, token.digest
        self._digests[token.digest] = token_id
        self._by_owner.setdefault(token.owner, {})[token_id] = None

    def was_removed(self, token_id: str, /) -> None:
        """Forget a token, and note it to notify of."""
        owner, digest = self._known.pop(token_id)
        del self._digests[digest]
        of_owner = self._by_owner[owner]
        del of_owner[token_id]
        if not of_owner:
            del self._by_owner[owner]
        self._removed.add(token_id)

    def was_cleared(self) -> None:
        """Forget all; it happens only while the store is opened."""
        self._known.clear()
        self._digests.clear()
        self._by_owner.clear()

    def _notify(self) -> None:
        removed, self._removed = self._removed, set()
        if removed:
            for listener in self.on_removed:
                listener(removed)
