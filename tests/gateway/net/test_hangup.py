import socket

from rockgate.gateway.net.hangup import has_hung_up


def test_one_that_hung_up_is_noticed_behind_what_it_has_sent() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        assert not has_hung_up(ours)
        theirs.sendall(b"unread")
        assert not has_hung_up(ours)
        theirs.close()
        assert has_hung_up(ours)
        assert ours.recv(10) == b"unread"


def test_without_a_socket_no_one_is_gone() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    assert not has_hung_up(None) and not has_hung_up(ours)
