"""Client metrics (KIP-714): what clients are asked to push, and what they pushed last."""
