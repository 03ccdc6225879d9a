"""What tests use together: stand-ins for the world outside, and inputs to try.

Upstreams and services
    upstream         an OpenAI-compatible server that plays a script
    embedding_server an embedding model that computes by words, and fails on demand
    trial_server     a server that speaks the protocol of trial_dialect/, strictly
    strict           an upstream that enforces OpenAI's rules for chat/completions
    strict_gemini    a judge of Gemini requests, and a server that signs calls
    strict_vendors   what each vendor refuses in a chat body, and servers that do
    prefix_cache     an upstream that caches the beginnings of prompts
    chat_templates   servers whose chat templates refuse some conversations
    ollama_server    Ollama's rules, and an Ollama that loads models, and cuts prompts
    responses_server OpenAI's rules for Responses, and a server with models that reason
    loops            a server of all vendors' protocols, which calls a tool
    window           a strict upstream with a context window, and a long conversation
    scripted         upstreams in memory: by a function, by a list; canned HTTP
    model_lists      public lists of models, in the forms of those who publish them
    replay           the server that replays recorded streams
    printed_forms    tool calls as models print them, and what they mean
    prose_about_calls   answers that show tool calls without making one
    literal_agent    a model that does what its system message says, word by word
    llama            what the model of a real llama-server answers
    official         the official service, which refuses what a test does not expect
    qdrant_server    a server of vectors that can misbehave, and a judge of requests
    qdrant_members   members of a team on such a server, and what each has stored
    probed           a model that a probe tries out, with whims of its own
    asker            an HttpUpstream that never sleeps, and a source of keys

byok itself
    daemon           a daemon in the test or in a thread, and an editor that asks it
    feature_supplies where a feature stands, and what it is configured with
    dashboard        the page of the dashboard, signed in, as far as HTTP goes
    second_user      another user of the machine, who wants the first one's secrets
    program          byok as processes: a command, `byok serve`, an installed wheel
    commands         how a command ended that ran inside the test
    terminal         byok at a terminal of its own, with somebody who types
    doctors          what `byok doctor` looks at, in the home of the test
    launches         what services run, and the programs of a system
    service_manager  systemd for one user: its units really run; sockets, READY
    settings_files   settings files of clients and of byok, as people have them
    jobs             the pure part of a text endpoint
    rows             a process that looks like the daemon; states of an index

Clients
    bodies           the parts of a client's body
    conversations    random conversations as clients send them
    occasions        a request of each client for each kind of model
    clients          an agent, the SDK, and what a client uploads
    raw              an HTTP client that sends any bytes

Conversations and tools inside byok
    histories        random conversations as dialects get them
    messages_api     the Messages API: requests, pieces of answers, a judge, a server
    sdk_types        bodies judged by the request types of the vendors' SDKs
    schemas          JSON Schemas of tools, and what vendors refuse in them
    mcp_servers      tools of public MCP servers

Index
    engines          a context engine without worker processes, and what is around it
    stores           stores, uploads and outcomes; and indexes that are damaged
    vectors          blobs to be given vectors, vectors of a text, embedders
    vector_kills     a filling that is killed again and again
    project          a small project to index, repositories made with git
    storm            a workspace in a storm of changes
    nasty_worker     worker processes that misbehave
    language_samples a text in each language, and its definitions
    kills            a store that is killed again and again
    version_1        a data folder as byok 0.1 left it

Journal
    journal_entries  entries of the journal, and what is written in one

Dashboard
    furnished        a home in which byok has worked for two weeks
    pages            pages of the dashboard in Chromium, watched for faults

Machine
    clock            a clock that a test moves, and a check that time is linear
    collector        a collector of OpenTelemetry, which reads what SDKs send
    certificates     names and TLS certificates of a domain of the test's own
    egress           notes of whom a process connects to, and what it starts
    disk             a disk that a test can fill; what a power cut leaves
    ring             a keyring that misbehaves on request

Inputs and checks
    prompts          prompts of one line, or none; folders that cannot be used
    values           JSON values, ways to cut an input, forms of a secret
    cases            parameters for the cases of tests/cases.toml
    patience         how long a test waits for what has to happen
"""
