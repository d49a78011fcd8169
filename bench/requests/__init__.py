"""How long does a second client wait while another one sends the largest legal request?"""
