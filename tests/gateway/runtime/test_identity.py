import base64
from pathlib import Path

import pytest

from rockgate.gateway.runtime.errors import IdentityError
from rockgate.gateway.runtime.identity import FILE_NAME, identify


def test_a_new_directory_gets_an_identity_that_stays(tmp_path: Path) -> None:
    made = identify(tmp_path, None)
    assert made.node_id == 1
    assert len(base64.urlsafe_b64decode(made.cluster_id + "==")) == 16
    assert identify(tmp_path, None) == made
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_two_directories_have_two_cluster_ids(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert identify(tmp_path / "a", None).cluster_id != identify(tmp_path / "b", None).cluster_id


def test_the_node_id_of_the_settings_is_kept(tmp_path: Path) -> None:
    made = identify(tmp_path, 7)
    assert made.node_id == 7
    assert identify(tmp_path, None) == made
    assert identify(tmp_path, 7) == made


def test_another_node_id_for_the_same_directory_is_refused(tmp_path: Path) -> None:
    identify(tmp_path, 7)
    with pytest.raises(IdentityError, match=r"node id is 7, but server\.node_id is 8"):
        identify(tmp_path, 8)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "\x00\xff",
        '{"format": 1, "node_id": 1}',
        '{"format": 1, "node_id": true, "cluster_id": "abc"}',
        '{"format": 1, "node_id": -1, "cluster_id": "abc"}',
        '{"format": 1, "node_id": 4294967296, "cluster_id": "abc"}',
        '{"format": 1, "node_id": 1, "cluster_id": "a b"}',
        '{"format": 2, "node_id": 1, "cluster_id": "abc"}',
    ],
)
def test_an_unreadable_identity_stops_the_start_and_is_not_replaced(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / FILE_NAME
    path.write_text(text, "latin-1")
    with pytest.raises(IdentityError, match=FILE_NAME):
        identify(tmp_path, None)
    assert path.read_text("latin-1") == text


def test_a_write_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "identity.new").write_text("half an id")
    made = identify(tmp_path, None)
    assert identify(tmp_path, None) == made
