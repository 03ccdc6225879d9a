"""The protocols of other clients: bodies become questions, events become answers.

`chat_completions/` and `responses/` are those of OpenAI, `messages/` is Anthropic's.
Each has a `request.py` and a `reply.py`; neither knows which dialect the upstream
speaks. What a body contains and byok cannot pass on is refused, where the client relies
on it, or named in `Question.left_out`.
"""
