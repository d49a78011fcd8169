"""Compiles the tokens of an expression into a predicate on messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rockgate.protocol.remoting.sql.tokens import SqlError, Token, tokens
from rockgate.protocol.remoting.sql.values import (
    Part,
    between,
    compared,
    conjunction,
    constant,
    disjunction,
    is_null,
    negated,
    one_of,
    truth,
    variable,
)

__all__ = ["DEPTH_MAX", "Expression", "SqlError", "compile_expression"]

DEPTH_MAX: Final = 64
_SIGNS: Final = frozenset(("=", "<>", "<", "<=", ">", ">="))
_NUMBER_MAX: Final = 2**63 - 1


class Expression:
    """A condition on a message's properties. `cost` is the number of tokens to evaluate."""

    __slots__ = ("_part", "cost")

    def __init__(self, part: Part, cost: int) -> None:
        self._part = part
        self.cost = cost

    def __call__(self, properties: Mapping[str, str]) -> bool:
        """Whether a message with these properties matches."""
        return truth(self._part(properties)) is True


def compile_expression(source: str) -> Expression:
    """Compile an expression to a predicate on properties; SqlError if it is invalid."""
    words = tokens(source)
    parser = _Parser(words)
    part = parser.expression(DEPTH_MAX)
    parser.expect("end", "end of expression")
    return Expression(part, len(words))


class _Parser:
    """Parses the tokens once, from left to right."""

    def __init__(self, words: list[Token]) -> None:
        self._words = words
        self._at = 0

    @property
    def _next(self) -> Token:
        return self._words[self._at]

    def _take(self) -> Token:
        token = self._words[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def _takes(self, text: str) -> bool:
        """Consume the next token if it is this keyword or sign."""
        token = self._next
        if token.kind in ("keyword", "sign") and token.text == text:
            self._at += 1
            return True
        return False

    def expect(self, kind: str, text: str) -> Token:
        """Consume the next token, which must be this one, or of this kind if the text is empty."""
        token = self._next
        if token.kind != kind or (text and token.text != text):
            raise SqlError(f"Expected {text or kind}, got {token.text!r}", token.at)
        return self._take()

    def expression(self, depth: int) -> Part:
        """OR of ANDs."""
        if depth == 0:
            raise SqlError(f"Expression is nested deeper than {DEPTH_MAX}", self._next.at)
        parts = [self._and(depth)]
        while self._takes("OR"):
            parts.append(self._and(depth))
        return parts[0] if len(parts) == 1 else disjunction(parts)

    def _and(self, depth: int) -> Part:
        parts = [self._not(depth)]
        while self._takes("AND"):
            parts.append(self._not(depth))
        return parts[0] if len(parts) == 1 else conjunction(parts)

    def _not(self, depth: int) -> Part:
        count = 0
        while self._takes("NOT"):
            count += 1
        part = self._comparison(depth)
        return negated(part) if count % 2 else part

    def _comparison(self, depth: int) -> Part:
        part = self._value(depth)
        token = self._next
        if token.kind == "sign" and token.text in _SIGNS:
            self._take()
            return compared(token.text, part, self._value(depth))
        if self._takes("IS"):
            is_negated = self._takes("NOT")
            self.expect("keyword", "NULL")
            return negated(is_null(part)) if is_negated else is_null(part)
        is_negated = self._takes("NOT")
        if self._takes("BETWEEN"):
            low = self._value(depth)
            self.expect("keyword", "AND")
            found = between(part, low, self._value(depth))
        elif self._takes("IN"):
            found = one_of(part, self._texts())
        elif is_negated:
            raise SqlError(f"Expected BETWEEN or IN, got {self._next.text!r}", self._next.at)
        else:
            return part
        return negated(found) if is_negated else found

    def _texts(self) -> frozenset[str]:
        self.expect("sign", "(")
        texts = {_unquoted(self.expect("text", ""))}
        while self._takes(","):
            texts.add(_unquoted(self.expect("text", "")))
        self.expect("sign", ")")
        return frozenset(texts)

    def _value(self, depth: int) -> Part:
        token = self._take()
        if token.kind == "text":
            return constant(_unquoted(token))
        if token.kind in ("integer", "float"):
            return constant(_number(token))
        if token.kind == "name":
            return variable(token.text)
        if token.kind == "keyword" and token.text in ("TRUE", "FALSE"):
            return constant(token.text == "TRUE")
        if token.kind == "keyword" and token.text == "NULL":
            return constant(None)
        if token.kind == "sign" and token.text == "-":
            number = self._take()
            if number.kind not in ("integer", "float"):
                raise SqlError(f"Expected a number, got {number.text!r}", number.at)
            return constant(-_number(number))
        if token.kind == "sign" and token.text == "(":
            part = self.expression(depth - 1)
            self.expect("sign", ")")
            return part
        raise SqlError(f"Expected a value, got {token.text!r}", token.at)


def _unquoted(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")


def _number(token: Token) -> int | float:
    if token.kind == "float":
        return float(token.text)
    digits = token.text.rstrip("lL")
    if len(digits) > 20 or int(digits) > _NUMBER_MAX:
        raise SqlError(f"Number {digits[:30]} is too large", token.at)
    return int(digits)
