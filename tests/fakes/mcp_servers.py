"""Tools of public MCP servers, by what their documents and issues tell.

Names and structure are facts; what they are for is told in our own words. Chosen are
servers whose schemas some vendor refused for all of an agent's requests.
"""

from typing import Any, TypeAlias

Tools: TypeAlias = dict[str, dict[str, Any]]
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}


def closed(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    """Write a schema as zod's converter does for draft 7."""
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
        "$schema": DRAFT_7,
    }


def listed(items: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **fields}


FILESYSTEM: Tools = {
    "read_text_file": closed(
        ["path"],
        path=TEXT,
        head={"type": "number", "description": "Only the first lines."},
        tail={"type": "number", "description": "Only the last lines."},
    ),
    "read_multiple_files": closed(["paths"], paths=listed(TEXT, minItems=1)),
    "write_file": closed(["path", "content"], path=TEXT, content=TEXT),
    "edit_file": closed(
        ["path", "edits"],
        path=TEXT,
        edits=listed(closed(["oldText", "newText"], oldText=TEXT, newText=TEXT)),
        dryRun={"type": "boolean", "default": False},
    ),
    "list_directory_with_sizes": closed(
        ["path"], path=TEXT, sortBy={"type": "string", "enum": ["name", "size"]}
    ),
    "list_allowed_directories": {"type": "object", "properties": {}, "required": []},
}
MEMORY: Tools = {
    "create_entities": closed(
        ["entities"],
        entities=listed(
            closed(
                ["name", "entityType", "observations"],
                name=TEXT,
                entityType=TEXT,
                observations=listed(TEXT),
            )
        ),
    ),
    "read_graph": {"type": "object", "properties": {}},
    "open_nodes": closed(["names"], names=listed(TEXT)),
}
# One of three sets of keys, beside a type: refused by OpenAI, Anthropic and Moonshot.
NOTION: Tools = {
    "notion-create-attachment": {
        "type": "object",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "description": "One of the ways to hand in a file.",
        "anyOf": [
            {
                "type": "object",
                "properties": {"filename": TEXT, "content": TEXT},
                "required": ["filename", "content"],
            },
            {
                "type": "object",
                "properties": {"filename": TEXT, "source_url": TEXT},
                "required": ["filename", "source_url"],
            },
            {
                "type": "object",
                "properties": {"filename": TEXT, "upload_id": TEXT},
                "required": ["upload_id"],
            },
        ],
    },
    "API-post-page": {
        "type": "object",
        "$defs": {
            "parentRequest": {
                "anyOf": [
                    {"$ref": "#/$defs/pageIdParentRequest"},
                    {"$ref": "#/$defs/databaseParentRequest"},
                ]
            },
            "pageIdParentRequest": {
                "type": "object",
                "properties": {"page_id": {"type": "string", "format": "uuid"}},
                "required": ["page_id"],
                "additionalProperties": False,
            },
            "databaseParentRequest": {
                "type": "object",
                "properties": {"type": {"const": "database_id"}, "database_id": TEXT},
                "required": ["database_id"],
            },
        },
        "properties": {
            "parent": {"$ref": "#/$defs/parentRequest", "description": "Where."},
            "children": listed(TEXT, maxItems=100),
            "icon": {"type": "string", "format": "json"},
        },
        "required": ["parent"],
    },
}
# Arrays of nothing in particular: "array schema missing items".
DIGITALOCEAN: Tools = {
    "droplet-create": {
        "type": "object",
        "properties": {
            "Name": TEXT,
            "ImageID": NUMBER,
            "SSHKeys": {"type": "array", "description": "Ids or fingerprints."},
            "Tags": {"type": "array"},
            "Backup": {"type": "boolean", "default": False},
        },
        "required": ["Name", "ImageID"],
    },
    "firewall-create": {
        "type": "object",
        "properties": {
            "InboundRules": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"Protocol": TEXT, "Sources": {"type": "array"}},
                },
            }
        },
    },
}
# Keys with dots, and keys of a web API as they are.
TWILIO: Tools = {
    "TwilioApiV2010--ListMessage": {
        "type": "object",
        "properties": {
            "PathAccountSid": {"type": "string", "pattern": "^AC[0-9a-fA-F]{32}$"},
            "DateSent": {"type": "string", "format": "date-time"},
            "DateSent<": {"type": "string", "format": "date-time"},
            "DateSent>": {"type": "string", "format": "date-time"},
            "projects.any": TEXT,
            "issue_types[]": listed(TEXT),
        },
        "required": ["PathAccountSid"],
        "additionalProperties": False,
    }
}
# Bounds of draft 4, which Mistral refuses.
PDF_READER: Tools = {
    "read_pdf": {
        "type": "object",
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {
            "sources": listed(
                {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "minLength": 1},
                        "pages": {
                            "anyOf": [
                                listed(
                                    {
                                        "type": "integer",
                                        "exclusiveMinimum": True,
                                        "minimum": 0,
                                    },
                                    minItems=1,
                                ),
                                {"type": "string", "minLength": 1},
                            ],
                        },
                    },
                    "additionalProperties": False,
                },
                minItems=1,
            )
        },
        "required": ["sources"],
        "additionalProperties": False,
    }
}
# A type beside choices that have none of their own, deep inside.
APOLLO: Tools = {
    "apollo_tasks_bulk_create": {
        "type": "object",
        "properties": {
            "tasks_attributes": listed(
                {
                    "type": "object",
                    "properties": {
                        "contact_id": TEXT,
                        "account_id": TEXT,
                        "note": TEXT,
                    },
                    "anyOf": [
                        {"required": ["contact_id"]},
                        {"required": ["account_id"]},
                    ],
                }
            ),
            "priority": {"type": "string", "enum": ["high", "low", None]},
        },
        "required": ["tasks_attributes"],
    }
}
# What pydantic writes: words beside a reference, null or a list without items.
PAGERDUTY: Tools = {
    "list_schedules": {
        "type": "object",
        "$defs": {
            "ScheduleQuery": {
                "type": "object",
                "title": "ScheduleQuery",
                "description": "What to look for.",
                "properties": {
                    "query": {"type": "string", "default": None},
                    "team_ids": {"type": "array", "default": None},
                    "limit": {
                        "anyOf": [
                            {"type": "integer", "maximum": 100},
                            {"type": "null"},
                        ],
                        "default": 20,
                    },
                },
            }
        },
        "properties": {
            "query_model": {
                "$ref": "#/$defs/ScheduleQuery",
                "description": "Only these.",
            }
        },
        "required": ["query_model"],
    },
    "list_oncalls": {"$ref": "#/$defs/Query", "$defs": {"Query": closed(id=TEXT)}},
}
AZURE_DEVOPS: Tools = {
    "wit_query": {
        "type": "object",
        "properties": {
            "expand": {"type": "number", "enum": [0, 1, 2, 3]},
            "range": {"type": "array", "items": [NUMBER, NUMBER], "maxItems": 2},
            "filter": {"type": "object", "required": ["status"]},
            "depth": {"$ref": "#/properties/expand"},
            "value": {"description": "Anything."},
        },
        "required": ["project", "project"],
    },
    "core_list": {
        "type": "object",
        "oneOf": [{"required": ["project"]}, {"required": ["team"]}],
        "properties": {"project": TEXT, "team": TEXT},
    },
    "get-lists": {},
}

SERVERS: dict[str, Tools] = {
    "filesystem": FILESYSTEM,
    "memory": MEMORY,
    "notion": NOTION,
    "digitalocean": DIGITALOCEAN,
    "twilio": TWILIO,
    "pdf-reader": PDF_READER,
    "apollo": APOLLO,
    "pagerduty": PAGERDUTY,
    "azure-devops": AZURE_DEVOPS,
}
