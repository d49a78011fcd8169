"""How a message is declared: a typed class, one line per field.

    @struct
    class FetchPartition:
        partition: int = field(Int32)
        current_leader_epoch: int = field(Int32, "9+", default=-1)

    @message(key=ApiKey.FETCH, versions="4-18", flexible="12+")
    class FetchRequest:
        max_wait_ms: int = field(Int32)
        topics: list[FetchTopic] = field(Array(FetchTopic))

The class is slotted and takes keyword arguments, every one of them optional, so a value is built
from what matters and a type checker knows its fields. One class serves all versions: a field that a
version lacks reads as its default and is not written. This holds for requests too, where Kafka's
own client would refuse a value that the version cannot carry: the version is what the peers agreed
on, and a handler fills in one shape for all of them.

It looks like a dataclass but is not one: three hundred of those added 0.2 s to every start of a
server, mostly to compile functions that are never called. Here a class is created without compiling
anything, and its `__init__` is compiled on first use.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema.kinds import (
    ArrayOf,
    Blob,
    Fixed,
    Kind,
    OrNull,
    RecordData,
    Struct,
    Text,
    kind_of,
)
from rockgate.protocol.kafka.versions import NO_VERSIONS, Versions

T = TypeVar("T")

_UNSET: Any = object()
_ATTRIBUTE = "__declaration__"


@dataclass(frozen=True, slots=True)
class Field:
    """One field as declared; `default` is never a mutable value, `default_type` makes those."""

    name: str
    kind: Kind[Any]
    versions: Versions
    default: Any
    default_type: type[Any] | None
    tag: int | None
    flexible: bool

    def make_default(self) -> Any:
        """The default value of this field: a new one if it is mutable."""
        return self.default if self.default_type is None else self.default_type()


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a decorated class declares; `key` and `versions` are a message's, not a struct's."""

    type: type[Any]
    fields: tuple[Field, ...]
    key: ApiKey | None = None
    versions: Versions = NO_VERSIONS
    flexible: Versions = NO_VERSIONS

    @property
    def name(self) -> str:
        """The class's name, the same as in Kafka."""
        return self.type.__name__


@dataclass(frozen=True, slots=True)
class _Draft:
    """The placeholder that `field` leaves in the class body for the decorator."""

    kind: Kind[Any]
    versions: Versions
    default: Any
    tag: int | None
    flexible: bool


def field(
    kind: Kind[T] | type[T],
    versions: str = "0+",
    *,
    default: T = _UNSET,
    tag: int | None = None,
    flexible: bool = True,
) -> T:
    """Declare a field of `kind`, present in `versions` of its message.

    Without `default` it is the kind's zero: 0, "", an empty list, a struct of defaults. `tag` makes
    it a tagged field, written only when it differs from its default. `flexible=False` keeps the
    older encoding in flexible versions.
    """
    draft = _Draft(kind_of(kind), Versions.parse(versions), default, tag, flexible)
    return cast(T, draft)


@dataclass_transform(kw_only_default=True)
def struct(cls: type[T]) -> type[T]:
    """Make a declared struct of a class whose fields are all given by `field`."""
    made, fields = _make(cls)
    setattr(made, _ATTRIBUTE, Declaration(made, fields))
    return made


@dataclass_transform(kw_only_default=True)
def message(
    *, versions: str, flexible: str, key: ApiKey | None = None
) -> Callable[[type[T]], type[T]]:
    """Make a declared message: a struct with an API key and the versions it exists in."""

    def decorate(cls: type[T]) -> type[T]:
        made, fields = _make(cls)
        declaration = Declaration(
            made, fields, key, Versions.parse(versions), Versions.parse(flexible)
        )
        setattr(made, _ATTRIBUTE, declaration)
        return made

    return decorate


def declaration_of(cls: type[Any]) -> Declaration:
    """What `cls` declares; TypeError if it is neither a struct nor a message."""
    declaration = cls.__dict__.get(_ATTRIBUTE)
    if not isinstance(declaration, Declaration):
        raise TypeError(f"{cls.__name__} is not a declared struct or message")
    return declaration


def _make(cls: type[T]) -> tuple[type[T], tuple[Field, ...]]:
    namespace = dict(cls.__dict__)
    fields = []
    for name in cls.__annotations__:
        draft = namespace.pop(name, None)
        if not isinstance(draft, _Draft):
            raise TypeError(f"{cls.__name__}.{name} is not given by field()")
        fields.append(_settle(name, draft))
    tags = sorted(spec.tag for spec in fields if spec.tag is not None)
    if tags != list(range(len(tags))):
        raise TypeError(f"{cls.__name__} has tags {tags}, not 0 to {len(tags) - 1}")
    # Slots cannot be added to a class, so it is created again without the old `__dict__`.
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    names = tuple(spec.name for spec in fields)
    namespace.update(
        __slots__=names,
        __repr__=_repr,
        __eq__=_equality(names),
        __hash__=None,
        __match_args__=(),
    )
    made: Any = type(cls.__name__, cls.__bases__, namespace)
    made.__init__ = _first_init(made, fields)
    return cast(type[T], made), tuple(fields)


def _first_init(made: Any, fields: list[Field]) -> Callable[..., None]:
    """An `__init__` that compiles the real one on its first call, and is replaced by it."""

    def __init__(self: Any, **values: Any) -> None:
        made.__init__ = init = _compile_init(made, fields)
        init(self, **values)

    return __init__


def _compile_init(made: type[Any], fields: list[Field]) -> Callable[..., None]:
    known: dict[str, Any] = {"unset": _UNSET}
    parameters, lines = [], []
    for spec in fields:
        name = spec.name
        if spec.default_type is None:
            known[f"default_{name}"] = spec.default
            parameters.append(f"{name}=default_{name}")
            lines.append(f"    self.{name} = {name}")
        else:
            known[f"make_{name}"] = spec.default_type
            parameters.append(f"{name}=unset")
            lines.append(f"    self.{name} = make_{name}() if {name} is unset else {name}")
    signature = ", ".join(["self", "*", *parameters] if parameters else ["self"])
    source = "\n".join([f"def __init__({signature}):", *(lines or ["    pass"])])
    exec(source, known)
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _equality(names: tuple[str, ...]) -> Callable[[Any, Any], Any]:
    """Equal when of the same class with equal fields."""
    held = attrgetter(*names) if names else type

    def equal(value: Any, other: Any) -> Any:
        return held(value) == held(other) if type(other) is type(value) else NotImplemented

    return equal


def _settle(name: str, draft: _Draft) -> Field:
    default, default_type = draft.default, None
    if default is _UNSET:
        default, default_type = _zero(draft.kind)
    return Field(name, draft.kind, draft.versions, default, default_type, draft.tag, draft.flexible)


def _zero(kind: Kind[Any]) -> tuple[Any, type[Any] | None]:
    """A kind's own default: the value, and the type to create it from if it is mutable."""
    match kind:
        case Fixed():
            return kind.zero, None
        case Text():
            return "", None
        case Blob() | RecordData():
            # Empty records where Kafka's schema has null: librdkafka breaks on null (KAFKA-18646).
            return b"", None
        case ArrayOf():
            return None, list
        case Struct():
            return None, kind.type
        case OrNull():
            return _zero(kind.kind)
    raise TypeError(f"no default for {kind!r}")


def _repr(value: Any) -> str:
    """The fields that differ from their defaults; views by their size, as they can be large."""
    parts = []
    for spec in declaration_of(type(value)).fields:
        held = getattr(value, spec.name)
        if isinstance(held, memoryview):
            parts.append(f"{spec.name}=<{held.nbytes} bytes>")
        elif held != spec.make_default():
            parts.append(f"{spec.name}={held!r}")
    return f"{type(value).__name__}({', '.join(parts)})"
