"""Delayed entries: timing wheels, the fold behind them, and delivery."""
