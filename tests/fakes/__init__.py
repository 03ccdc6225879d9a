"""What tests use together: stand-ins for the world outside, and inputs to try.

Upstreams and services
    upstream         an OpenAI-compatible server that plays a script
    embedding_server an embedding model that computes by words, and fails on demand
    trial_server     a server that speaks the protocol of trial_dialect/, strictly
    strict           an upstream that enforces OpenAI's rules for chat/completions
    strict_gemini    a judge of Gemini requests, and a server that signs calls
    strict_vendors   what each vendor refuses in a chat/completions body
    reasoning_upstream   a vendor's rules, and its own reasoning wanted back
    strict_anthropic what the reference of Anthropic's Messages API does not allow
    strict_schemas   what each vendor refuses in the JSON Schemas of tools
    prefix_cache     an upstream that caches the beginnings of prompts
    strict_ollama    what the server of Ollama's own API would not read
    chat_templates   servers whose chat templates refuse some conversations
    ollama_server    an Ollama that loads models, and cuts prompts
    strict_responses OpenAI's rules for bodies of Responses
    responses_server a server that speaks Responses strictly, with models that reason
    loops            a server of all vendors' protocols, which calls a tool
    plain_upstreams  upstreams that take less than others; agents of other dialects
    anthropic_agent  a server of the Messages API that thinks, signs and calls tools
    window           a strict upstream with a context window, and a long conversation
    scripted         an upstream in memory that answers by a function
    lister           an upstream that only lists models; canned HTTP answers
    model_lists      public lists of models, in the forms of those who publish them
    replay           the server that replays recorded streams
    printed_forms    tool calls as models print them, and what they mean
    prose_about_calls   answers that show tool calls without making one
    literal_agent    a model that does what its system message says, word by word
    llama            what the model of a real llama-server answers
    official         the official service, which refuses what a test does not expect
    qdrant_server    a server of vectors that keeps, searches and can misbehave
    qdrant_members   members of a team on such a server, and what they embed
    machines         members of a team: a store of vectors beside an index
    qdrant_contract  a judge of what is asked of Qdrant, and of its answers
    probed           a model that a probe tries out, with whims of its own
    asker            an HttpUpstream that never sleeps, and a source of keys

byok itself
    daemon           a daemon inside the test, and an editor that asks it
    own_settings     settings files of byok as people have them
    settings_daemon  a daemon that takes its settings from a file
    feature_supplies where a feature stands, and what it is configured with
    dashboard        the page of the dashboard, signed in, as far as HTTP goes
    second_user      another user of the machine, who wants the first one's secrets
    owner            what byok's own commands send to a daemon
    daemon_thread    a daemon in a thread, for commands that ask one
    process          `byok serve` as a process
    program          byok's command line as a process
    commands         how a command ended that ran inside the test
    answers          a person who gives scripted answers to questions
    terminal         byok at a terminal of its own, with somebody who types
    doctors          what `byok doctor` looks at, in the home of the test
    launches         what services run, with paths that are hard to write down
    systemctl        systemd for one user: its units really run
    systemctl_program   what its programs do
    ran              the programs of a system, as a script of their answers
    service_manager  what systemd does: it passes sockets, and hears READY
    settings_files   settings files of clients, as people have them
    wheel            byok installed from its wheel
    jobs             the pure part of a text endpoint
    build_states     a daemon that reports the states of an index
    rows             a process that looks like the daemon and notes what it got

Clients
    bodies           the parts of a client's body
    conversations    random conversations as clients send them
    occasions        a request of each client for each kind of model
    blobs            what a client uploads
    raw              an HTTP client that sends any bytes
    sdk              the client of auggie-sdk
    agent_client     an agent that keeps, drops or reorders the nodes of answers

Conversations and tools inside byok
    histories        random conversations as dialects get them
    messages_api     requests to Anthropic's Messages API, and pieces of its answers
    openai_bodies    bodies of chat/completions requests
    sdk_types        bodies judged by the request types of the vendors' SDKs
    schemas          JSON Schemas of tools, and arguments for them
    mcp_servers      tools of public MCP servers
    lossless         an oracle of what repair may do to a value

Index
    engines          a context engine without worker processes
    stores           stores, uploads and outcomes, and what must always hold
    memory_index     a second lexical index, in memory
    old_index        an index of a version before chunks had marks
    inner_model      an embedding model inside the test
    vectors          blobs to be given vectors, vectors that follow from a text
    vector_kills     a filling that is killed again and again
    vector_search    what is near to any question, as a test says
    segments         an index on disk, and ways to damage its files
    project          a small project to index
    storm            a workspace in a storm of changes
    watching         file watches whose events a test gives
    nasty_worker     worker processes that misbehave
    language_samples a text in each language, and its definitions
    ignore_files     ignore files and paths to try them on
    repository       repositories made with git
    commits          a history of commits, written down
    kills            a store that is killed again and again
    migration_kills  a migration that is killed again and again
    version_1        a data folder as byok 0.1 left it

Journal
    journal_entries  entries of the journal, and what is written in one

Dashboard
    chromium         the system's Chromium, driven by Playwright
    furnished        a home in which byok has worked for two weeks
    pages            pages of the dashboard, watched for all that may go wrong
    settings_panel   the settings panel: its fields, and the button that saves them

Machine
    clock            a clock that a test moves
    collector        a collector of OpenTelemetry, which reads what SDKs send
    certificates     names and TLS certificates of a domain of the test's own
    egress           notes of whom a process connects to, and what it starts
    disk             a disk so small that a test can fill it
    power            what a power cut leaves of a folder
    ring             a keyring that misbehaves on request

Inputs and checks
    slices           ways to cut an input into pieces
    parsed           notes in which threads questions are parsed
    prompts          prompts of one line, or none
    broken_prompts   folders of own prompts that cannot be used
    values           any JSON values
    secret_forms     the ways a secret may be written
    linear           a check that work takes linear time
    cases            parameters for the cases of tests/cases.toml
    patience         how long a test waits for what has to happen
"""
