"""Hooks: a gate that blocks a call, an audit that only looks, a redirect that changes the input."""

from openagent import Client, HookDecision, Hooks, tool


@tool
def write_file(path: str, text: str) -> str:
    """Write a text to a file."""
    return f"{len(text)} characters written to {path}"  # this example writes nothing


def gate(event):
    """No file outside the sandbox or the temporary folder."""
    if not event.tool_input["path"].startswith(("/sandbox/", "/tmp/")):
        return HookDecision.block("only /sandbox/ and /tmp/ may be written")
    return None


def redirect(event):
    """What is meant for the temporary folder goes to the sandbox."""
    path = event.tool_input["path"].replace("/tmp/", "/sandbox/", 1)
    return HookDecision.modify_input({**event.tool_input, "path": path})


def audit(event):
    """Says what happened; returning nothing changes nothing."""
    print(f"[audit] {event.tool_name} {event.tool_input['path']}: {event.tool_result}")


hooks = Hooks().add_pre_tool_use(gate).add_pre_tool_use(redirect).add_post_tool_use(audit)
client = Client(tools=[write_file], auto_execute_tools=True, hooks=hooks)
print(client.ask("Write 'hello' to /etc/motd and to /tmp/hello.txt."))
