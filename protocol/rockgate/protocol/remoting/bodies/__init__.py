"""JSON bodies of requests and responses, by family. `javajson` encodes and decodes them."""
