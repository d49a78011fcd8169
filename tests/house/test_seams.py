"""Handlers that deployments share know no store: what differs stands behind Protocols."""

from pathlib import Path

import pytest
from tests.house.checkout import ROOT, imported_names, parse

KAFKA = Path("gateway/rockgate/gateway/kafka")
SHARED = (
    *("alter_configs", "api_versions", "create_partitions", "create_topics", "delete_groups"),
    *("delete_topics", "describe_cluster", "describe_configs", "describe_groups"),
    *("describe_topic_partitions", "elect_leaders", "find_coordinator", "heartbeat"),
    *("incremental_alter_configs", "join_group", "leave_group", "list_config_resources"),
    *("list_groups", "metadata", "offset_commit", "offset_delete", "offset_fetch", "sync_group"),
    "update_features",
)
SEAMS = (
    *("topics/catalog", "topics/placement", "topics/metadata_cache", "topics/partition_runs"),
    *("configs/alteration", "configs/resources"),
    *("groups/progress", "groups/classic/memory", "request/now", "request/chunked"),
)
MODULES = [*(f"handlers/{name}" for name in SHARED), *SEAMS]


@pytest.mark.parametrize("module", MODULES)
def test_what_deployments_share_knows_no_store(module: str) -> None:
    assert embedded_imports(ROOT / KAFKA / f"{module}.py") == set()


@pytest.mark.parametrize(
    "source",
    [
        "from rockgate.store.api.topics import Topic",
        "def f():\n    import rockgate.store.log.commitlog",
        "from rockgate.gateway.kafka.embedded.catalog import StoreCatalog",
    ],
)
def test_an_import_of_the_store_is_seen(tmp_path: Path, source: str) -> None:
    module = tmp_path / "module.py"
    module.write_text(source)
    assert embedded_imports(module) != set()


def embedded_imports(path: Path) -> set[str]:
    return {
        name
        for name in imported_names(parse(path))
        if f"{name}.".startswith(("rockgate.store.", "rockgate.gateway.kafka.embedded."))
    }
