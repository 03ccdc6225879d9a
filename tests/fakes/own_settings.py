"""Settings files of byok as people have them."""

from byok.settings import example

TEXTS = {
    "empty": "",
    "one comment without an end": "# only this",
    "the example": example(),
    "the example with its own settings": example().replace(
        "#[chat]\n", "[chat]\ntemperature = 0.3  # mine\n"
    ),
    "comments everywhere": """# My settings, with care.

[server]   # where
port = 9000  # mine

  # indented, about the next table
[chat]
temperature   =    0.5
# between two keys
'system_prompt' = '''no "escape" \\ here'''   # literal

# about the next table
[tools]

# at the end
""",
    "dotted keys": """chat.temperature = 1 # a
routing.models.commit = "byok:a:b"

# of caps
caps . usd_per_day = 5
""",
    "inline tables": """upstreams = { a = { base_url = "https://a.example/v1" } } # all
chat = {temperature = 1, max_tokens=5}
""",
    "tables in any order": """[routing.models]
commit = "byok:a:b"
[upstreams.a]
base_url = "https://a.example/v1"
# of b
[upstreams.b]
base_url = "https://b.example/v1"
[routing]
default = "byok:a:c"
[upstreams.a.facts."x/y"]
window = 1000
""",
    "long values": '''[routing.fallback]
chat = [
  "byok:a:b", # first
  # then
  "byok:a:c",
]
[chat]
system_prompt = """
Be brief. # no comment
[no] = "table"
\\"""quoted\\"""
"""
''',
    "no last line end": "[chat]\ntemperature = 1",
    "CRLF": "# a\r\n[chat]\r\ntemperature = 1 # b\r\n\r\n# c\r\n[tools]\r\n",
    "both line ends": "# a\r\n[chat]\ntemperature = 1 # b\r\n# c\n",
    "list of tables": "[[upstreams.a.x]]\ny = 1\n[chat]\n",
    "hostile": '[chat]\nsystem_prompt = "\\u202e\\u0000<b>"\n["<img>"]\n"a\\nb" = 1\n',
}
