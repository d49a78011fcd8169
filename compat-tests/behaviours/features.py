"""The rows of the compatibility page, in order: `@pytest.mark.feature(ROUND_TRIP)`.

A behaviour is marked with its row; a row holds for a client when all of its behaviours do. What
only one client has (its console tools, its own test suite) is marked with a second argument, the
title of its list.
"""

ROUND_TRIP = "produce with every acks and codec, and read back"
IDEMPOTENT = "produce idempotently"
KEYS = "keys: one partition, in order"
SIZES = "the largest batch, and one byte more"
CONTENT = "headers, nulls and empty values, timestamps"
OFFSETS = "offsets: first, last, by time; seek"
WAITING = "long poll; records above every fetch limit"
TOPICS = "topics: create, grow, delete, create again"
REFUSALS = "refusals with Kafka's codes"
CONFIGS = "topic configs: describe, alter, take effect"
TRANSACTIONS = "transactions: commit, abort, and an open one that is taken over"
RECORDS = "delete records"
DELAYS = "a header delays a record, on topics that are for it"
COMMITS = "groups: commit and resume"
SHARING = "groups: members join, share and leave"
DYING = "groups: a member dies, another comes back"
STATIC = "groups: a static member comes back to its partitions"
GROUPS = "groups: list, describe, offsets, delete"
GROUPS_AFTER = "groups continue after a restart and after kill -9"
CONSUMER_PROTOCOL = "groups of the consumer protocol (KIP-848): share, static, patterns, migration"
SHARE_GROUPS = "share groups (KIP-932): acknowledge, lock, renew, limits, isolation, restarts"
LOSSLESS = "nothing acknowledged is lost by a restart or kill -9"
LOGINS = "logins over TLS: PLAIN, SCRAM, certificates; wrong ones; again while it runs"
GRANTS = "grants: what is missing or revoked is refused, and not listed"
SYNC = "with sync flush, all is on disk before the answer"

FEATURES = (
    ROUND_TRIP,
    IDEMPOTENT,
    KEYS,
    SIZES,
    CONTENT,
    TRANSACTIONS,
    OFFSETS,
    WAITING,
    TOPICS,
    REFUSALS,
    CONFIGS,
    RECORDS,
    DELAYS,
    COMMITS,
    SHARING,
    DYING,
    STATIC,
    GROUPS,
    GROUPS_AFTER,
    CONSUMER_PROTOCOL,
    SHARE_GROUPS,
    LOSSLESS,
    SYNC,
    LOGINS,
    GRANTS,
)

TOOLS = "Console tools"
ADMIN = "Calls of the Java Admin"
STREAMS = "Kafka Streams"
CONNECT = "Kafka Connect"
REGISTRY = "A schema registry"
SUITE = "Its own tests"
MODULES = "By module"
BESIDE = "The same requests to the broker and to us, the same answers"
