"""Chat completions from a model in this process.

    server      OpenAI's JSON in and out; one call, its place in the queue, its deadline
    parameters  a request's body -> what is asked, or a refusal that names the parameter
    chat        messages -> tokens of the model
    grammar     a JSON schema -> which token may come next
    engine      schedule -> run -> postprocess, one token of every stream a step
    schedule    which tokens are computed in the next step, and in which slot        pure
    sequence    one stream: its tokens, what may be shown of them, why it ended       pure
    sampling    logits -> the next token, and how likely it was                       pure
    stops       text without what it ends at                                          pure
    forward     one step of the model over all slots (torch)
    load        a name, a folder or a GGUF file -> model and tokenizer (torch)

Invariant: what is wrong with one request, or with its client, ends that stream alone.
"""
