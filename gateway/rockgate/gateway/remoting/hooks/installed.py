"""Finding the hooks that the settings name among the entry points that packages install."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from rockgate.gateway.runtime.errors import StartError

GROUP = "rockgate.hooks"


def load_hooks(names: str) -> list[tuple[str, object]]:
    """The hooks of these comma-separated names, in this order; StartError if one is missing.

    An entry point is a hook, or a class or function without parameters that makes one. Without
    names nothing is looked for: reading the metadata of all packages takes a while.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        return []
    found = {each.name: each for each in entry_points(group=GROUP)}
    missing = [name for name in wanted if name not in found]
    if missing:
        installed = ", ".join(sorted(found)) or "none"
        raise StartError(
            f"Hook not found: {', '.join(missing)}. Installed hooks: {installed}. "
            f"Install the package that has it, or correct remoting.hooks."
        )
    return [(name, _made(found[name])) for name in wanted]


def _made(point: EntryPoint) -> object:
    try:
        loaded = point.load()
        return loaded() if callable(loaded) else loaded
    except Exception as error:
        raise StartError(
            f"Hook '{point.name}' ({point.value}) cannot be loaded: {type(error).__name__} {error}."
        ) from error
