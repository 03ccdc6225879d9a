"""The protocols of other clients: bodies become questions, events become answers.

`chat_completions.py` and `responses.py` are OpenAI's protocols, `messages.py` is
Anthropic's; none depends on the dialect of the upstream. Features that byok cannot pass
on are refused if the client relies on them, else named in `Question.left_out`.
"""
