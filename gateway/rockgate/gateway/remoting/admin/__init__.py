"""Operations for administrators: delayed messages, half messages, dead letters."""
