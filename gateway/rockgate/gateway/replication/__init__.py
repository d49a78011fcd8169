"""Replication over sockets: a primary feeds its replicas, and a replica follows."""
