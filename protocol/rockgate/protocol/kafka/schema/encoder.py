"""Generates the Python function that encodes a message in one version.

Neighbouring fields of constant size, the arrays of numbers between them and the length that leads
the next field are written by one `struct` call; the pieces are joined once at the end. Values come
from our own code, so only errors that would otherwise pass silently are checked: the length of an
id or a string, and a null that the version does not allow.
"""

from typing import Any

from rockgate.protocol.kafka.fields import uvarint
from rockgate.protocol.kafka.schema.declare import Declaration, Field
from rockgate.protocol.kafka.schema.encoded import Encoded, element_count
from rockgate.protocol.kafka.schema.kinds import (
    STRING_SIZE_MAX,
    ArrayOf,
    Blob,
    Fixed,
    Kind,
    RecordData,
    Struct,
    Text,
)
from rockgate.protocol.kafka.schema.layout import (
    Layout,
    message_layout,
    resolve,
    struct_layout,
)
from rockgate.protocol.kafka.schema.source import LineMap, Source
from rockgate.protocol.kafka.schema.writing import Run, Shapes, pack_array


def encoder_source(declaration: Declaration, version: int, part: type[Any]) -> Source:
    """The source of `encode(v)`: the pieces of the message, or of one of its structs, `part`."""
    flexible = message_layout(declaration, version).flexible
    layout = struct_layout(part, version, flexible)
    writer = _EncoderWriter(layout)
    source = writer.source
    with source.block("def encode(v):"):
        source.add("out = []")
        source.add("w = out.append")
        writer.struct(layout, "v", "")
        source.add("return out")
    return source


def make_encoder(
    declaration: Declaration, version: int, part: type[Any] | None = None
) -> tuple[Any, LineMap]:
    """Generate and compile the encoder of one version, of the message or of one of its structs."""
    title = f"rockgate encode {declaration.name} v{version}"
    source = encoder_source(declaration, version, part or declaration.type)
    return source.compile("encode", title)


class _EncoderWriter:
    """Emits the writing of one message; `run` holds the values that the next call will pack."""

    def __init__(self, layout: Layout) -> None:
        self.version = layout.version
        self.source = Source()
        self.append = "w"
        # Code, expression and path; for an array the code is a pair and the expression its name.
        self.run: list[tuple[str | tuple[str, str], str, str]] = []
        self.source.names.update(
            join=b"".join,
            uvarint=uvarint,
            Encoded=Encoded,
            element_count=element_count,
            pack_array=pack_array,
        )

    # Runs

    def put(self, code: str | tuple[str, str], expression: str, path: str) -> None:
        """Write one value, or an array of numbers, with the next flush."""
        self.run.append((code, expression, path))

    def flush(self) -> None:
        """Write the run by one call."""
        if not self.run:
            return
        run, self.run = self.run, []
        paths = [path for _, _, path in run if path]
        if all(code == "B" and value == "0" for code, value, _ in run):
            self.source.add(f"{self.append}({bytes(len(run))!r})", *paths)
        elif any(isinstance(code, tuple) for code, _, _ in run):
            self.flush_shapes(run, paths)
        else:
            self.flush_plain(run, paths)

    def flush_plain(
        self, run: list[tuple[str | tuple[str, str], str, str]], paths: list[str]
    ) -> None:
        """A run of single values, optionally ended by a varint."""
        packed = Run([str(code) for code, _, _ in run])
        pack = self.source.unique("pack")
        self.source.names[pack] = packed.pack
        values = ", ".join(value for _, value, _ in run)
        last, last_value, _ = run[-1]
        if last == "U":
            long = self.source.unique("long")
            self.source.names[long] = packed.pack_long
            call = f"({pack} if {last_value} < 128 else {long})({values})"
        else:
            call = f"{pack}({values})"
        self.source.add(f"{self.append}({call})", *paths)

    def flush_shapes(
        self, run: list[tuple[str | tuple[str, str], str, str]], paths: list[str]
    ) -> None:
        """A run with arrays in it; a varint at its end is written separately."""
        after = run.pop()[1] if run[-1][0] == "U" else None
        shapes = Shapes([code for code, _, _ in run])
        get, make = self.source.unique("get"), self.source.unique("make")
        self.source.names.update({get: shapes.get, make: shapes.make})
        counts: list[str] = []
        values: list[str] = []
        key = self.source.unique("k")
        for code, value, _ in run:
            if isinstance(code, tuple):
                plus = " + 1" if code[0] == "U" else ""
                values.append(f"{key}[{len(counts)}]{plus}, *{value}")
                counts.append(f"len({value})")
            else:
                values.append(value)
        self.source.add(f"{key} = ({', '.join(counts)},)", *paths)
        call = f"({get}({key}) or {make}({key}))({', '.join(values)})"
        self.source.add(f"{self.append}({call})", *paths)
        if after is not None:
            self.source.add(f"{self.append}(uvarint({after}))", *paths)

    # Structs

    def struct(self, layout: Layout, var: str, path: str) -> None:
        """Write every field of the struct in `var`."""
        for spec in layout.present:
            flexible = layout.flexible and spec.flexible
            self.value(spec.kind, f"{var}.{spec.name}", _join(path, spec.name), flexible)
        if layout.tagged:
            self.tags(layout, var, path)
        elif layout.flexible:
            self.put("B", "0", path)
        self.flush()

    def tags(self, layout: Layout, var: str, path: str) -> None:
        """Write the number of tagged fields that differ from their defaults, then those."""
        add, block = self.source.add, self.source.block
        self.flush()
        outer = self.append
        parts, count = self.source.unique("p"), self.source.unique("c")
        add(f"{parts} = []")
        add(f"{count} = 0")
        for spec in layout.tagged:
            inner = _join(path, spec.name)
            with block(f"if {var}.{spec.name} != {self.default(spec)}:", inner):
                field = self.source.unique("p")
                self.append = f"{field}.append"
                add(f"{field} = []")
                flexible = layout.flexible and spec.flexible
                self.value(spec.kind, f"{var}.{spec.name}", inner, flexible)
                self.flush()
                add(f"{field} = join({field})")
                add(f"{parts} += {uvarint(spec.tag or 0)!r}, uvarint(len({field})), {field}")
                add(f"{count} += 1")
        self.append = outer
        add(f"{outer}(uvarint({count}))")
        with block(f"if {parts}:"):
            add(f"{outer}(join({parts}))")

    def default(self, spec: Field) -> str:
        """An expression to compare a field with; one shared object is enough."""
        default = spec.make_default()
        if default is None or isinstance(default, int | str | list):
            return repr(default)
        return self.source.constant("D", default)

    # Values

    def value(self, kind: Kind[Any], value: str, path: str, flexible: bool) -> None:
        """Write a value of any kind, given as an expression."""
        kind, nullable = resolve(kind, self.version)
        match kind:
            case Fixed():
                self.fixed(kind, value, path)
            case Text() | Blob() | RecordData():
                self.sized(kind, value, path, flexible, nullable)
            case ArrayOf():
                self.array(kind, value, path, flexible, nullable)
            case Struct():
                self.struct_value(kind, value, path, flexible, nullable)
            case _:
                raise TypeError(f"no encoder for {kind!r}")

    def fixed(self, kind: Fixed[Any], value: str, path: str) -> None:
        """Write a value of constant size; an id of another size would be padded silently."""
        if kind.name == "uuid":
            with self.source.block(f"if len({value}) != 16:", path):
                self.source.add("raise ValueError('an id is 16 bytes')", path)
        self.put(kind.code, value, path)

    def sized(self, kind: Kind[Any], value: str, path: str, flexible: bool, nullable: bool) -> None:
        """Write a string, bytes or records: the length with the run, then the bytes as they are."""
        add, block = self.source.add, self.source.block
        data, size = self.source.unique("s"), self.source.unique("n")
        plus = " + 1" if flexible else ""
        text = ".encode()" if isinstance(kind, Text) else ""
        add(f"{data} = {value}{'' if nullable else text}", path)
        if nullable:
            with block(f"if {data} is None:"):
                add(f"{data} = b''")
                add(f"{size} = {0 if flexible else -1}")
            with block("else:"):
                if text:
                    add(f"{data} = {data}{text}", path)
                add(f"{size} = len({data}){plus}", path)
        else:
            add(f"{size} = len({data}){plus}", path)
        if text:
            with block(f"if {size} > {STRING_SIZE_MAX + flexible}:", path):
                add("raise ValueError(f'text of {len(" + data + ")} bytes')", path)
        legacy = "h" if text else "i"
        self.put("U" if flexible else legacy, size, path)
        self.flush()
        add(f"{self.append}({data})", path)

    def array(
        self, kind: ArrayOf[Any], value: str, path: str, flexible: bool, nullable: bool
    ) -> None:
        """Write an array: of numbers within the run, of anything else by a loop."""
        add, block = self.source.add, self.source.block
        head = "U" if flexible else "i"
        element = kind.element
        items = self.source.unique("a")
        add(f"{items} = {value}", path)
        if isinstance(element, Fixed):
            if nullable:
                self.flush()
                add(f"{self.append}(pack_array({head!r}, {element.code!r}, {items}))", path)
            else:
                self.put((head, element.code), items, path)
            return
        count = self.source.unique("n")
        plus = " + 1" if flexible else ""
        length = "element_count" if kind.takes_encoded else "len"
        if nullable:
            with block(f"if {items} is None:"):
                add(f"{items} = ()")
                add(f"{count} = {0 if flexible else -1}")
            with block("else:"):
                add(f"{count} = {length}({items}){plus}", path)
        else:
            add(f"{count} = {length}({items}){plus}", path)
        self.put(head, count, path)
        self.flush()
        item, inner = self.source.unique("v"), f"{path}[]"
        with block(f"for {item} in {items}:", path):
            if kind.takes_encoded and isinstance(element, Struct):
                struct = self.source.constant("T", element.type)
                with block(f"if {item}.__class__ is Encoded:", inner):
                    add(f"{self.append}({item}.bytes_for({struct}, {self.version}))", inner)
                    add("continue")
            if isinstance(element, Struct):
                self.struct(struct_layout(element.type, self.version, flexible), item, inner)
            else:
                self.value(element, item, inner, flexible)
                self.flush()

    def struct_value(
        self, kind: Struct[Any], value: str, path: str, flexible: bool, nullable: bool
    ) -> None:
        """Write a struct that is a field of its own, with its marker where it may be null."""
        add, block = self.source.add, self.source.block
        layout = struct_layout(kind.type, self.version, flexible)
        var = self.source.unique("v")
        add(f"{var} = {value}", path)
        if not nullable:
            self.struct(layout, var, path)
            return
        self.flush()
        with block(f"if {var} is None:"):
            add(f"{self.append}(b'\\xff')")
        with block("else:"):
            add(f"{self.append}(b'\\x01')")
            self.struct(layout, var, path)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
