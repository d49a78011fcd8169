"""What the commands about topics have in common on their command lines."""

from typing import Annotated

import typer

from rockgate.cli.app import completion

Names = Annotated[
    list[str], typer.Argument(metavar="TOPIC", show_default=False, autocompletion=completion.topics)
]
Name = Annotated[
    str, typer.Argument(metavar="TOPIC", show_default=False, autocompletion=completion.topics)
]
Configs = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="NAME=VALUE", help="Topic config; repeatable."),
]
