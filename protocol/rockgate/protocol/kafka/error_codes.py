"""Kafka's error codes: number, whether it is retriable, and description.

The numbers are those on the wire and never change. `retriable` is what Kafka's own clients act on;
the text is for people and goes into logs and error messages.
"""

from enum import IntEnum
from typing import Self

_FINAL, _RETRY = False, True


class ErrorCode(IntEnum):
    """One error code; `retriable` and `meaning` are attributes of each member."""

    _value_: int
    retriable: bool
    meaning: str

    # The defaults are only for type checkers, which treat `ErrorCode(3)` as a call of this.
    def __new__(cls, code: int, retriable: bool = False, meaning: str = "") -> Self:
        """A member with this code and its properties."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.meaning = meaning
        return member

    UNKNOWN_SERVER_ERROR = -1, _FINAL, "unexpected server error"
    NONE = 0, _FINAL, "no error"
    OFFSET_OUT_OF_RANGE = 1, _FINAL, "the offset is out of the partition's range"
    CORRUPT_MESSAGE = 2, _RETRY, "the batch is corrupt"
    UNKNOWN_TOPIC_OR_PARTITION = 3, _RETRY, "the topic or partition does not exist"
    INVALID_FETCH_SIZE = 4, _FINAL, "the fetch size is invalid"
    LEADER_NOT_AVAILABLE = 5, _RETRY, "the partition has no leader at the moment"
    NOT_LEADER_OR_FOLLOWER = 6, _RETRY, "the broker is not the leader or a replica of the partition"
    REQUEST_TIMED_OUT = 7, _RETRY, "the request timed out"
    BROKER_NOT_AVAILABLE = 8, _FINAL, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, _RETRY, "the replica is not available"
    MESSAGE_TOO_LARGE = 10, _FINAL, "the batch exceeds the maximum size of the topic"
    STALE_CONTROLLER_EPOCH = 11, _FINAL, "the controller has moved"
    OFFSET_METADATA_TOO_LARGE = 12, _FINAL, "the offset metadata is too large"
    NETWORK_EXCEPTION = 13, _RETRY, "the connection was closed before a response arrived"
    COORDINATOR_LOAD_IN_PROGRESS = 14, _RETRY, "the coordinator is loading"
    COORDINATOR_NOT_AVAILABLE = 15, _RETRY, "the coordinator is not available"
    NOT_COORDINATOR = 16, _RETRY, "the broker is not the coordinator"
    INVALID_TOPIC_EXCEPTION = 17, _FINAL, "the topic name is invalid or reserved"
    RECORD_LIST_TOO_LARGE = 18, _FINAL, "the batch is larger than a segment"
    NOT_ENOUGH_REPLICAS = 19, _RETRY, "there are fewer in-sync replicas than required"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        _RETRY,
        "the batch was written to fewer in-sync replicas than required",
    )
    INVALID_REQUIRED_ACKS = 21, _FINAL, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, _FINAL, "the generation id is outdated"
    INCONSISTENT_GROUP_PROTOCOL = 23, _FINAL, "the member's protocols do not match the group's"
    INVALID_GROUP_ID = 24, _FINAL, "the group id is invalid"
    UNKNOWN_MEMBER_ID = 25, _FINAL, "the member id is unknown"
    INVALID_SESSION_TIMEOUT = 26, _FINAL, "the session timeout is out of range"
    REBALANCE_IN_PROGRESS = 27, _FINAL, "the group is rebalancing; rejoin"
    INVALID_COMMIT_OFFSET_SIZE = 28, _FINAL, "the commit is too large"
    TOPIC_AUTHORIZATION_FAILED = 29, _FINAL, "not authorized for the topic"
    GROUP_AUTHORIZATION_FAILED = 30, _FINAL, "not authorized for the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, _FINAL, "not authorized for the cluster"
    INVALID_TIMESTAMP = 32, _FINAL, "the timestamp is out of range"
    UNSUPPORTED_SASL_MECHANISM = 33, _FINAL, "the SASL mechanism is not supported"
    ILLEGAL_SASL_STATE = 34, _FINAL, "the request is not valid in the current SASL state"
    UNSUPPORTED_VERSION = 35, _FINAL, "the API version is not supported"
    TOPIC_ALREADY_EXISTS = 36, _FINAL, "the topic already exists"
    INVALID_PARTITIONS = 37, _FINAL, "the partition count is invalid"
    INVALID_REPLICATION_FACTOR = 38, _FINAL, "the replication factor is invalid"
    INVALID_REPLICA_ASSIGNMENT = 39, _FINAL, "the replica assignment is invalid"
    INVALID_CONFIG = 40, _FINAL, "the config is invalid"
    NOT_CONTROLLER = 41, _RETRY, "the broker is not the controller"
    INVALID_REQUEST = 42, _FINAL, "the request is invalid"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, _FINAL, "not supported by the record format"
    POLICY_VIOLATION = 44, _FINAL, "the request violates a policy of the server"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, _FINAL, "the sequence number is out of order"
    DUPLICATE_SEQUENCE_NUMBER = 46, _FINAL, "the sequence number is a duplicate"
    INVALID_PRODUCER_EPOCH = 47, _FINAL, "the producer epoch is outdated"
    INVALID_TXN_STATE = 48, _FINAL, "the transaction is in an invalid state"
    INVALID_PRODUCER_ID_MAPPING = (
        49,
        _FINAL,
        "the producer id does not belong to the transactional id",
    )
    INVALID_TRANSACTION_TIMEOUT = 50, _FINAL, "the transaction timeout exceeds the maximum"
    CONCURRENT_TRANSACTIONS = 51, _RETRY, "another operation on the transaction is in progress"
    TRANSACTION_COORDINATOR_FENCED = 52, _FINAL, "the transaction coordinator is fenced"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, _FINAL, "not authorized for the transactional id"
    SECURITY_DISABLED = 54, _FINAL, "security is disabled"
    OPERATION_NOT_ATTEMPTED = 55, _FINAL, "not attempted, because another operation failed"
    KAFKA_STORAGE_ERROR = 56, _RETRY, "disk error on the log"
    LOG_DIR_NOT_FOUND = 57, _FINAL, "the log directory does not exist"
    SASL_AUTHENTICATION_FAILED = 58, _FINAL, "authentication failed"
    UNKNOWN_PRODUCER_ID = 59, _FINAL, "the producer id is unknown"
    REASSIGNMENT_IN_PROGRESS = 60, _FINAL, "a reassignment is already in progress"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, _FINAL, "delegation tokens are disabled"
    DELEGATION_TOKEN_NOT_FOUND = 62, _FINAL, "the delegation token does not exist"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, _FINAL, "the token belongs to another principal"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, _FINAL, "tokens are not allowed on this connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, _FINAL, "not authorized for the token"
    DELEGATION_TOKEN_EXPIRED = 66, _FINAL, "the token has expired"
    INVALID_PRINCIPAL_TYPE = 67, _FINAL, "the principal type is not supported"
    NON_EMPTY_GROUP = 68, _FINAL, "the group is not empty"
    GROUP_ID_NOT_FOUND = 69, _FINAL, "the group does not exist"
    FETCH_SESSION_ID_NOT_FOUND = 70, _RETRY, "the fetch session does not exist"
    INVALID_FETCH_SESSION_EPOCH = 71, _RETRY, "the fetch session epoch is invalid"
    LISTENER_NOT_FOUND = 72, _RETRY, "the leader has no matching listener"
    TOPIC_DELETION_DISABLED = 73, _FINAL, "topic deletion is disabled"
    FENCED_LEADER_EPOCH = 74, _RETRY, "the client's leader epoch is outdated"
    UNKNOWN_LEADER_EPOCH = 75, _RETRY, "the client's leader epoch is newer than the broker's"
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        _FINAL,
        "the compression type is not supported by the client's version",
    )
    STALE_BROKER_EPOCH = 77, _FINAL, "the broker epoch is outdated"
    OFFSET_NOT_AVAILABLE = 78, _RETRY, "the offset is not available yet"
    MEMBER_ID_REQUIRED = 79, _FINAL, "rejoin with the assigned member id"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, _RETRY, "the preferred leader is not available"
    GROUP_MAX_SIZE_REACHED = 81, _FINAL, "the group has reached its maximum size"
    FENCED_INSTANCE_ID = 82, _FINAL, "another member uses this instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, _RETRY, "no eligible leader is available"
    ELECTION_NOT_NEEDED = 84, _RETRY, "no election is needed"
    NO_REASSIGNMENT_IN_PROGRESS = 85, _FINAL, "no reassignment is in progress"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, _FINAL, "the group is subscribed to the topic"
    INVALID_RECORD = 87, _FINAL, "the record is invalid"
    UNSTABLE_OFFSET_COMMIT = 88, _RETRY, "there are unstable offsets to be committed"
    THROTTLING_QUOTA_EXCEEDED = 89, _RETRY, "the quota is exceeded"
    PRODUCER_FENCED = 90, _FINAL, "a newer producer uses this transactional id"
    RESOURCE_NOT_FOUND = 91, _FINAL, "the resource does not exist"
    DUPLICATE_RESOURCE = 92, _FINAL, "the resource appears more than once"
    UNACCEPTABLE_CREDENTIAL = 93, _FINAL, "the credential is unacceptable"
    INCONSISTENT_VOTER_SET = 94, _FINAL, "the voter set is inconsistent"
    INVALID_UPDATE_VERSION = 95, _FINAL, "the feature version is invalid"
    FEATURE_UPDATE_FAILED = 96, _FINAL, "the feature update failed"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, _FINAL, "the forwarded principal cannot be deserialized"
    SNAPSHOT_NOT_FOUND = 98, _FINAL, "the snapshot does not exist"
    POSITION_OUT_OF_RANGE = 99, _FINAL, "the position is out of the snapshot's range"
    UNKNOWN_TOPIC_ID = 100, _RETRY, "the topic id does not exist"
    DUPLICATE_BROKER_REGISTRATION = 101, _FINAL, "the broker id is already registered"
    BROKER_ID_NOT_REGISTERED = 102, _FINAL, "the broker id is not registered"
    INCONSISTENT_TOPIC_ID = 103, _RETRY, "the topic id does not match"
    INCONSISTENT_CLUSTER_ID = 104, _FINAL, "the cluster id does not match"
    TRANSACTIONAL_ID_NOT_FOUND = 105, _FINAL, "the transactional id does not exist"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, _RETRY, "the fetch session mixes topic names and ids"
    INELIGIBLE_REPLICA = 107, _FINAL, "the replica is not eligible for the ISR"
    NEW_LEADER_ELECTED = 108, _FINAL, "the leader has changed"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, _FINAL, "the offset is in tiered storage only"
    FENCED_MEMBER_EPOCH = (
        110,
        _FINAL,
        "the member epoch is fenced; release all partitions and rejoin",
    )
    UNRELEASED_INSTANCE_ID = 111, _FINAL, "another member with this instance id is active"
    UNSUPPORTED_ASSIGNOR = 112, _FINAL, "the assignor is not supported"
    STALE_MEMBER_EPOCH = 113, _FINAL, "the member epoch is outdated; send a heartbeat"
    MISMATCHED_ENDPOINT_TYPE = 114, _FINAL, "the request was sent to the wrong endpoint type"
    UNSUPPORTED_ENDPOINT_TYPE = 115, _FINAL, "the endpoint type is not supported"
    UNKNOWN_CONTROLLER_ID = 116, _FINAL, "the controller id does not exist"
    UNKNOWN_SUBSCRIPTION_ID = 117, _FINAL, "the subscription id is outdated"
    TELEMETRY_TOO_LARGE = 118, _FINAL, "the telemetry payload is too large"
    INVALID_REGISTRATION = 119, _FINAL, "the registration is invalid"
    TRANSACTION_ABORTABLE = 120, _FINAL, "abort the transaction and continue with the next one"
    INVALID_RECORD_STATE = 121, _FINAL, "the record state is invalid for this acknowledgement"
    SHARE_SESSION_NOT_FOUND = 122, _RETRY, "the share session does not exist"
    INVALID_SHARE_SESSION_EPOCH = 123, _RETRY, "the share session epoch is invalid"
    FENCED_STATE_EPOCH = 124, _FINAL, "the state epoch is fenced"
    INVALID_VOTER_KEY = 125, _FINAL, "the voter key does not match"
    DUPLICATE_VOTER = 126, _FINAL, "the voter already exists"
    VOTER_NOT_FOUND = 127, _FINAL, "the voter does not exist"
    INVALID_REGULAR_EXPRESSION = 128, _FINAL, "the regular expression is invalid"
    REBOOTSTRAP_REQUIRED = 129, _FINAL, "the client must rebootstrap"
    STREAMS_INVALID_TOPOLOGY = 130, _FINAL, "the topology is invalid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, _FINAL, "the topology epoch is invalid"
    STREAMS_TOPOLOGY_FENCED = 132, _FINAL, "the topology epoch is outdated"
    SHARE_SESSION_LIMIT_REACHED = (
        133,
        _RETRY,
        "the maximum number of share sessions has been reached",
    )
