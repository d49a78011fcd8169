"""How long does a second client wait while another sends the largest request there may be?"""
