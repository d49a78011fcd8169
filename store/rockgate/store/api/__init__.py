"""The store as its users know it: small interfaces, and the values that cross them.

One module per subject: the `store` as a whole, its `topics` and `queues`, writing (`append`) and
reading (`read`), the `log` below them, `progress`, delayed entries (`delay`, `held`), undecided
messages (`half`), the parts of a fold (`folds`), and what both sides share (`clock`, `problems`).
Behaviour is a `Protocol`, which another store could implement; values, formats and the parts of
folds belong to this store.
"""
