"""Bad, hostile and unusual-but-legal input: every answer is a sentence, and nothing goes that must not."""
