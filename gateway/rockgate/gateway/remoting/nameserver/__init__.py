"""The name server: which broker has which topic. All its state comes from broker registrations."""
