"""The protocols of other clients: bodies become questions, events become answers.

`chat_completions.py` and `responses.py` are those of OpenAI, `messages.py` is
Anthropic's; none knows which dialect the upstream speaks. What a body contains and byok
cannot pass on is refused, where the client relies on it, or named in
`Question.left_out`.
"""
