"""Entries that wait for their time: wheels, the fold behind them, and delivery."""
