"""What coding agents use guieval by: a server of its tools over the Model Context Protocol, and skills, which are instructions.

``guieval dev mcp`` serves the tools, ``guieval dev skill`` prints the skills of this version. Nothing here evaluates by itself:
the tools call what the commands call.
"""

OFFERS = {
    "commands": {
        "dev mcp": "guieval.assistants.commands.mcp",
        "dev skill": "guieval.assistants.commands.skill",
    },
}
"""What is found by name (:mod:`guieval.wings`)."""
