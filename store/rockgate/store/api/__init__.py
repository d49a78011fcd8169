"""The store as its users know it: small interfaces, and the values that cross them.

A module a subject: the `store` as a whole, its `topics` and `queues`, the way in (`append`) and the
way out (`read`), the `log` below them, `progress`, what is due later (`delay`, `held`), messages
that are undecided (`half`), what makes a fold (`folds`), and what both sides go by (`clock`,
`problems`). Behaviour is a `Protocol`, which another store could have too; values, formats and the
parts of folds are the store's own.
"""
