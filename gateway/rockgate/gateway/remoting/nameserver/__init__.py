"""The name server: who has which topic. It knows nothing that brokers do not tell it again."""
