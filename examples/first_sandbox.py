#!/usr/bin/env python3
"""The life of one sandbox over SPACE's HTTP API: create, run a command, stream its output, inspect, delete.

Needs nothing but Python's standard library and a running server (`npm start`). The address and the token come from
SPACE_API_URL and SPACE_API_TOKEN, or from the file that the server wrote for you.
"""

import base64
import json
import os
import sys
import urllib.error
import urllib.request
import uuid


def configuration():
    path = os.path.expanduser(os.environ.get("SPACE_CONFIG", "~/.config/space/config.json"))
    stored = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
    url = os.environ.get("SPACE_API_URL") or stored.get("api_url") or "http://127.0.0.1:7070"
    token = os.environ.get("SPACE_API_TOKEN") or stored.get("token")
    if not token:
        sys.exit("No token: start the server with `npm start`, or set SPACE_API_TOKEN.")
    return url, token


API_URL, TOKEN = configuration()


def call(method, path, body=None, **headers):
    """One call to the API; returns the decoded JSON answer, or ends the program with the server's own message."""
    request = urllib.request.Request(API_URL + path, method=method)
    request.add_header("Authorization", "Bearer " + TOKEN)
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sys.exit(f"{method} {path}: {error.code} {json.load(error)['message']}")


def events(session):
    """Yields (name, data) of a command session's server-sent events; attaching starts the command."""
    request = urllib.request.Request(session["events_url"])
    request.add_header("Authorization", "Bearer " + session["token"])
    with urllib.request.urlopen(request) as stream:
        name, data = None, []
        for raw in stream:
            line = raw.decode().rstrip("\n")
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].strip())
            elif line == "" and name:
                yield name, json.loads("\n".join(data))
                name, data = None, []


def run(sandbox_id, argv, **options):
    """Runs a command, writes its output through, and returns its exit code."""
    created = call("POST", f"/v1/sandboxes/{sandbox_id}/commands", {"argv": argv, **options})
    for name, data in events(created["session"]):
        if name == "stdout":
            sys.stdout.buffer.write(base64.b64decode(data["data"]))
            sys.stdout.buffer.flush()
        elif name == "stderr":
            sys.stderr.buffer.write(base64.b64decode(data["data"]))
            sys.stderr.buffer.flush()
        elif name == "process_exited":
            return data["exit_code"]
    raise ConnectionError("the stream ended before the command did")


def main():
    created = call(
        "POST",
        "/v1/sandboxes",
        {"template": "base", "metadata": {"example": "first_sandbox"}},
        Prefer="wait=60",
        Idempotency_Key=str(uuid.uuid4()),
    )
    sandbox_id = created["sandbox"]["id"]
    print(f"sandbox {sandbox_id}: {created['sandbox']['state']}")
    try:
        code = run(
            sandbox_id,
            ["python3", "-c", "import os, platform; print(os.environ['GREETING'], 'from', platform.release())"],
            env={"GREETING": "hello"},
            cwd="/tmp",
        )
        print(f"exit code {code}")
        print("environment:", call("GET", f"/v1/sandboxes/{sandbox_id}")["environment"]["id"])
        for process in call("GET", f"/v1/sandboxes/{sandbox_id}/processes")["items"]:
            print(f"process {process['id']}: {process['state']}, {process['output']['bytes']} bytes of output")
    finally:
        call("DELETE", f"/v1/sandboxes/{sandbox_id}", Prefer="wait=60")
        print("deleted")


if __name__ == "__main__":
    main()
