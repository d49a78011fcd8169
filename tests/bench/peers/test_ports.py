import socket

from bench.peers.ports import HOST, free_port_with, free_ports


def test_free_ports_differ_and_can_be_bound() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        with socket.socket() as each:
            each.bind((HOST, port))


def test_a_port_comes_with_the_neighbours_it_needs() -> None:
    port = free_port_with((-2, 1))
    for each in (port - 2, port, port + 1):
        with socket.socket() as bound:
            bound.bind((HOST, each))
