"""SQL92 filters: an expression over message properties, compiled once, evaluated per message.

    expression  = and { OR and }
    and         = not { AND not }
    not         = NOT not | comparison
    comparison  = value [ ( = | <> | < | <= | > | >= ) value
                        | [NOT] BETWEEN value AND value
                        | [NOT] IN ( text, … )
                        | IS [NOT] NULL ]
    value       = text | number | TRUE | FALSE | NULL | property | - number | ( expression )

The grammar and its meaning are RocketMQ's. Logic is three-valued: a missing property, or a string
that is not a number where one is needed, makes a comparison neither true nor false, and a message
matches only if the whole expression is true. Size, depth and number of terms are bounded.
"""

from rockgate.protocol.remoting.sql.parser import Expression, SqlError, compile_expression

__all__ = ["Expression", "SqlError", "compile_expression"]
