"""Examples that `--help` shows below a job's flags."""

ARCHIVE_EXAMPLES = """
[bold]Examples[/bold]

rockgate pipeline archive --topic orders --into archive

rockgate pipeline archive --pattern 'shop\\..*' --into s3a://bucket/archive --follow
"""

REPLAY_EXAMPLES = """
[bold]Examples[/bold]

rockgate pipeline replay archive --topic orders --to orders-again

rockgate pipeline replay archive --to 'again.{topic}' --since 2026-11-01 --rate 5000

rockgate pipeline replay archive --to eu --where "string(key) like 'eu-%'"

rockgate pipeline replay archive --topic orders --to orders-later --delay 30m
"""

MIRROR_EXAMPLES = """
[bold]Examples[/bold]

rockgate pipeline mirror --from kafka:9092 --topic orders --checkpoint mirror-orders

rockgate pipeline mirror --from kafka:9092 --pattern '.*' --checkpoint mirror --follow

rockgate pipeline mirror --from kafka:9092 --topic orders --start group:billing --checkpoint mirror
"""

STATS_EXAMPLES = """
[bold]Examples[/bold]

rockgate pipeline stats --topic orders --report orders.html

rockgate pipeline stats --pattern '.*' --window '10 seconds' --follow --to-topic t --checkpoint c
"""

RUN_EXAMPLES = """
[bold]Examples[/bold]

rockgate pipeline run orders:paid --in orders --in payments --out paid --checkpoint paid

The function takes one DataFrame for each --in and returns one with a column `value`.
"""

DEAD_LETTERS_EXAMPLES = """
[bold]Examples[/bold]

rockgate pipeline dead-letters --group mail

rockgate pipeline dead-letters --group mail --where "tries > 3" --into mail-dead

rockgate pipeline dead-letters --group mail --resend --where "topic = 'orders'" --checkpoint sent

rockgate pipeline dead-letters --group mail --resend --delay 10m --checkpoint sent-later
"""
