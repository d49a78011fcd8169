"""Delegation tokens: credentials that act for a principal and expire."""
