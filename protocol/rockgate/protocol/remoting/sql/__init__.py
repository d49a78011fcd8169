"""SQL92 filters: an expression over message properties, compiled once, evaluated per message.

    expression  = and { OR and }
    and         = not { AND not }
    not         = NOT not | comparison
    comparison  = value [ ( = | <> | < | <= | > | >= ) value
                        | [NOT] BETWEEN value AND value
                        | [NOT] IN ( text, … )
                        | IS [NOT] NULL ]
    value       = text | number | TRUE | FALSE | NULL | property | - number | ( expression )

The grammar and its meaning are RocketMQ's. Logic has three values: a property that is missing, or a
text that is no number where a number is wanted, makes a comparison neither true nor false, and a
message is wanted only where the whole is true. Size, depth and number of terms are bounded.
"""

from rockgate.protocol.remoting.sql.parser import Expression, SqlError, compile_expression

__all__ = ["Expression", "SqlError", "compile_expression"]
