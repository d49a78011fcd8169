"""Generates the Python function that decodes a message in one version.

The function walks the bytes once with a running position. Neighbouring fields of constant size, and
the length that leads the next field, are read by one `struct` call; structs are created without
their constructor. Its input is not trusted:

- every length and count is compared with the bytes left before it is used;
- an array's count is also charged against `room`, the memory the message may still take, so that a
  dense run of tiny elements cannot grow into many times its size;
- strings wider in memory than on the wire are charged for the difference;
- a null where the version has none, a tagged field whose size is wrong, a varint without end: all
  are refused.

Memory is counted in two ways. First an array is charged for the most that its elements can take,
which every ordinary message passes. One that does not is decoded again with `exact`, which charges
the actual size of each value; it is slower, and it accepts a Fetch request of ten thousand topics.

Errors are raised as ValueError, `struct.error` or IndexError; `codec` turns each into a
MalformedMessage that names the field.
"""

from struct import Struct as Packing
from struct import calcsize
from typing import Any

from rockgate.protocol.kafka.schema import reading
from rockgate.protocol.kafka.schema.declare import Declaration, Field
from rockgate.protocol.kafka.schema.kinds import (
    ARRAY_COUNT_MAX,
    STRING_SIZE_MAX,
    TAG_COUNT_MAX,
    ArrayOf,
    Blob,
    Fixed,
    Kind,
    RecordData,
    Struct,
    Text,
)
from rockgate.protocol.kafka.schema.layout import (
    BYTES,
    LIST,
    VIEW,
    Layout,
    element_base,
    element_memory,
    kind_size_min,
    layout_base,
    message_layout,
    resolve,
    struct_layout,
)
from rockgate.protocol.kafka.schema.source import LineMap, Source


def decoder_source(declaration: Declaration, version: int, *, exact: bool = False) -> Source:
    """The source of `decode(data, size, room)`, which returns the value and where it ended."""
    layout = message_layout(declaration, version)
    writer = _DecoderWriter(layout, exact)
    source = writer.source
    with source.block("def decode(data, size, room):"):
        source.add("view = data")
        source.add("pos = 0")
        writer.struct(layout, "v", "")
        source.add("return v, pos")
    return source


def make_decoder(
    declaration: Declaration, version: int, *, exact: bool = False
) -> tuple[Any, LineMap]:
    """Generate and compile the decoder of one version."""
    title = f"rockgate decode {declaration.name} v{version}"
    return decoder_source(declaration, version, exact=exact).compile("decode", title)


class _DecoderWriter:
    """Emits the reading of one message; `run` holds what the next `struct` call will read."""

    def __init__(self, layout: Layout, exact: bool) -> None:
        self.version = layout.version
        self.exact = exact
        self.source = Source()
        self.run: list[tuple[str, str, str]] = []  # struct code, target, path
        self.retained: list[tuple[str, Fixed[Any]]] = []  # targets used after the call
        self.source.names.update(
            new=object.__new__,
            refuse_count=reading.refuse_count,
            refuse_size=reading.refuse_size,
            refuse_null=reading.refuse_null,
            refuse_tag=reading.refuse_tag,
            more=reading.continue_uvarint,
            skip_tags=reading.skip_tags,
            wider=reading.wider,
            many=reading.read_many,
            keep=reading.keep,
            weigh_text=reading.weigh_text,
            weigh_many=reading.weigh_many,
            refuse_memory=reading.refuse_memory,
        )

    # Runs of constant size

    def take(self, code: str, target: str, path: str) -> None:
        """Read one value of constant size into `target` with the next flush."""
        self.run.append((code, target, path))

    def flush(self) -> None:
        """Read the run: a single byte by index, anything else by one precompiled call."""
        if not self.run:
            return
        run, self.run = self.run, []
        retained, self.retained = self.retained, []
        codes = "".join(code for code, _, _ in run)
        if codes == "B":
            self.source.add(f"{run[0][1]} = data[pos]", run[0][2])
            self.source.add("pos += 1")
            return
        packing = Packing(">" + codes)
        unpack = self.source.unique("unpack")
        self.source.names[unpack] = packing.unpack_from
        targets = ", ".join(target for _, target, _ in run)
        # One path for each byte: the place where the bytes end then gives the missing field.
        paths = [path for code, _, path in run for _ in range(calcsize(f">{code}"))]
        self.source.add(f"{targets}, = {unpack}(data, pos)", *paths)
        self.source.add(f"pos += {packing.size}")
        if self.exact and retained:
            self.weigh_fixed(retained)

    # Counting exactly

    def weigh_fixed(self, retained: list[tuple[str, Fixed[Any]]]) -> None:
        """Charge the values of a run: integers by their value, the rest by their kind."""
        rest = 0
        for target, kind in retained:
            if isinstance(kind.zero, int):
                if kind.memory:
                    self.source.add(f"{target}, room = keep({target}, room)")
            else:
                rest += kind.memory
        if rest:
            self.source.add(f"room -= {rest}")

    def charge(self, memory: int | str) -> None:
        """Charge a value of known memory, where the array around it was not charged for it."""
        if self.exact:
            self.source.add(f"room -= {memory}")

    def check_room(self, path: str) -> None:
        """Raise if the charges since the last check exceed the room left."""
        if self.exact:
            with self.source.block("if room < 0:", path):
                self.source.add("raise refuse_memory()", path)

    # Structs

    def struct(self, layout: Layout, var: str, path: str) -> None:
        """Make the struct in `var` and read all of it."""
        add = self.source.add
        add(f"{var} = new({self.source.constant('T', layout.type)})", path)
        for spec in layout.absent:
            add(f"{var}.{spec.name} = {self.default(spec)}")
        for spec in layout.present:
            flexible = layout.flexible and spec.flexible
            self.value(spec.kind, f"{var}.{spec.name}", _join(path, spec.name), flexible)
        if layout.flexible:
            self.tags(layout, var, path)
        self.flush()
        self.check_room(path)

    def default(self, spec: Field) -> str:
        """An expression for a field's default; a new object each time where it can be changed."""
        if spec.default_type is list:
            return "[]"
        if spec.default_type is not None:
            return f"{self.source.constant('T', spec.default_type)}()"
        if spec.default is None or isinstance(spec.default, int | str):
            return repr(spec.default)
        return self.source.constant("D", spec.default)

    def tags(self, layout: Layout, var: str, path: str) -> None:
        """Read the tagged fields; unknown ones are skipped."""
        add, block = self.source.add, self.source.block
        count = self.source.unique("n")
        for spec in layout.tagged:
            add(f"{var}.{spec.name} = {self.default(spec)}")
        self.take("B", count, path)
        self.flush()
        with block(f"if {count}:", path):
            if not layout.tagged:
                add(f"pos = skip_tags(data, pos, size, {count})", path)
                return
            self.uvarint(count, path)
            with block(f"if {count} > {TAG_COUNT_MAX}:", path):
                add(f"raise refuse_tag({count})", path)
            with block(f"for _ in range({count}):", path):
                self.known_tags(layout, var, path)

    def known_tags(self, layout: Layout, var: str, path: str) -> None:
        """One tagged field by its tag; it must end where its size says."""
        add, block = self.source.add, self.source.block
        tag, end = self.source.unique("t"), self.source.unique("e")
        for name in (tag, end):
            add(f"{name} = data[pos]", path)
            add("pos += 1")
            self.uvarint(name, path)
        add(f"{end} += pos")
        with block(f"if {end} > size:", path):
            add(f"raise refuse_size({end} - pos, size - pos)", path)
        word = "if"
        for spec in layout.tagged:
            flexible = layout.flexible and spec.flexible
            inner = _join(path, spec.name)
            with block(f"{word} {tag} == {spec.tag}:", inner):
                self.value(spec.kind, f"{var}.{spec.name}", inner, flexible)
                self.flush()
                with block(f"if pos != {end}:", inner):
                    add(f"raise refuse_tag({end} - pos, {tag})", inner)
            word = "elif"
        with block("else:"):
            add(f"pos = {end}")

    # Values

    def value(self, kind: Kind[Any], target: str, path: str, flexible: bool) -> None:
        """Read a value of any kind into `target`."""
        kind, nullable = resolve(kind, self.version)
        match kind:
            case Fixed():
                self.take(kind.code, target, path)
                self.retained.append((target, kind))
            case Text():
                self.sized("h", kind, target, path, flexible, nullable)
            case Blob() | RecordData():
                self.sized("i", kind, target, path, flexible, nullable)
            case ArrayOf():
                self.array(kind, target, path, flexible, nullable)
            case Struct():
                self.struct_value(kind, target, path, flexible, nullable)
            case _:
                raise TypeError(f"no decoder for {kind!r}")

    def length(self, code: str, path: str, flexible: bool) -> str:
        """Read a length; the variable holds it, or -1 for null."""
        name = self.source.unique("n")
        self.take("B" if flexible else code, name, path)
        self.flush()
        if flexible:
            self.uvarint(name, path)
            self.source.add(f"{name} -= 1")
        return name

    def uvarint(self, name: str, path: str) -> None:
        """Read the rest of a varint whose first byte is in `name`, if there is more."""
        with self.source.block(f"if {name} > 127:"):
            self.source.add(f"{name}, pos = more(data, pos, {name})", path)

    def sized(
        self, code: str, kind: Kind[Any], target: str, path: str, flexible: bool, nullable: bool
    ) -> None:
        """Read a string, bytes or records: a length, then that many bytes."""
        add, block = self.source.add, self.source.block
        name = self.length(code, path, flexible)
        limit = f" or {name} > {STRING_SIZE_MAX}" if isinstance(kind, Text) else ""
        with block(f"if {name} < 0:", path):
            if nullable:
                with block(f"if {name} != -1:"):
                    add(f"raise refuse_null({name})", path)
                add(f"{target} = None")
            else:
                add(f"raise refuse_null({name})", path)
        with block("else:"):
            with block(f"if {name} > size - pos{limit}:", path):
                add(f"raise refuse_size({name}, size - pos)", path)
            add(f"{name} += pos")
            if isinstance(kind, Text):
                self.text(target, name, path)
            elif isinstance(kind, Blob):
                add(f"{target} = bytes(data[pos:{name}])", path)
                self.charge(f"{BYTES} + {name} - pos")
            else:
                add(f"{target} = view[pos:{name}]", path)
                self.charge(VIEW)
            add(f"pos = {name}")

    def text(self, target: str, end: str, path: str) -> None:
        """Read text up to `end`; text that is not ASCII has fewer characters than bytes."""
        add = self.source.add
        add(f"s = {target} = str(data[pos:{end}], 'utf-8')", path)
        if self.exact:
            add("room = weigh_text(s, room)")
        else:
            with self.source.block(f"if len(s) != {end} - pos:", path):
                add(f"room = wider(s, {end} - pos, room)", path)

    def array(
        self, kind: ArrayOf[Any], target: str, path: str, flexible: bool, nullable: bool
    ) -> None:
        """Read a count, reject an impossible one, then read the elements."""
        add, block = self.source.add, self.source.block
        name = self.length("i", path, flexible)
        size_min = kind_size_min(kind.element, self.version, flexible)
        if size_min < 1:
            raise TypeError(f"elements of {path} can be empty, so their count has no bound")
        with block(f"if {name} < 0:", path):
            if nullable:
                with block(f"if {name} != -1:"):
                    add(f"raise refuse_null({name})", path)
                add(f"{target} = None")
            else:
                add(f"raise refuse_null({name})", path)
        with block("else:"):
            self.charge(LIST)
            memory = element_base if self.exact else element_memory
            add(f"room -= {name} * {memory(kind.element, self.version, flexible)}")
            with block(
                f"if {name} > {ARRAY_COUNT_MAX} or {name} * {size_min} > size - pos or room < 0:",
                path,
            ):
                add(f"raise refuse_count({name}, {size_min}, size - pos)", path)
            self.elements(kind.element, name, target, path, flexible)

    def elements(
        self, element: Kind[Any], count: str, target: str, path: str, flexible: bool
    ) -> None:
        """Read `count` elements into a list at `target`."""
        add = self.source.add
        if isinstance(element, Fixed):
            what = f"{element.code!r}, data, pos, {count}"
            if self.exact:
                add(f"{target}, room = weigh_many({what}, room)", path)
            else:
                rows = self.source.constant("rows", reading.rows(element.code))
                few = f"[*{rows}[{count}](data, pos)] if {count} < {reading.ROWS}"
                add(f"{target} = {few} else many({what})", path)
            add(f"pos += {count} * {element.size}")
            return
        items, index = self.source.unique("a"), self.source.unique("i")
        inner = f"{path}[{{{index}}}]"
        add(f"{items} = {target} = [None] * {count}", path)
        with self.source.block(f"for {index} in range({count}):"):
            if isinstance(element, Struct):
                var = self.source.unique("v")
                self.struct(struct_layout(element.type, self.version, flexible), var, inner)
                add(f"{items}[{index}] = {var}")
            else:
                self.value(element, f"{items}[{index}]", inner, flexible)
                self.flush()
                self.check_room(inner)

    def struct_value(
        self, kind: Struct[Any], target: str, path: str, flexible: bool, nullable: bool
    ) -> None:
        """Read a struct that is a field of its own, with its marker where it may be null."""
        add, block = self.source.add, self.source.block
        layout = struct_layout(kind.type, self.version, flexible)
        var = self.source.unique("v")
        self.charge(layout_base(layout))
        if not nullable:
            self.struct(layout, var, path)
            add(f"{target} = {var}")
            return
        marker = self.source.unique("n")
        self.take("b", marker, path)
        self.flush()
        with block(f"if {marker} == -1:"):
            add(f"{target} = None")
        with block(f"elif {marker} == 1:"):
            self.struct(layout, var, path)
            add(f"{target} = {var}")
        with block("else:"):
            add(f"raise refuse_null({marker})", path)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
