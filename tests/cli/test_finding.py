"""Finding the gateway, and failing clearly where there is none."""

import http.server
import json
import socket
import threading

import pytest

from tests.cli.conftest import TOKEN, CommandLine, write_local_file


def a_closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_without_a_gateway_a_command_says_how_to_start_one(nowhere: CommandLine) -> None:
    result = nowhere("status")

    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr.startswith("error: no gateway found: start one with `spendgate local`")


def test_a_gateway_that_is_gone_is_unreachable(nowhere: CommandLine) -> None:
    write_local_file(nowhere.folder, f"http://127.0.0.1:{a_closed_port()}")

    result = nowhere("keys", "list")

    assert result.exit_code == 3
    assert "no gateway answers at http://127.0.0.1:" in result.stderr


def test_a_local_file_that_cannot_be_read_is_told(nowhere: CommandLine) -> None:
    (nowhere.folder / ".spendgate").mkdir()
    for text in ("", "{", "[]", "{}", '{"url": "http://127.0.0.1:1"}'):
        (nowhere.folder / ".spendgate" / "local.json").write_text(text, encoding="utf-8")
        result = nowhere("audit")
        assert (result.exit_code, "cannot be read" in result.stderr) == (3, True), text


def test_what_is_no_gateway_is_told(nowhere: CommandLine) -> None:
    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        result = nowhere("status", "--url", f"http://127.0.0.1:{server.server_port}", "--token", "x")
        thread.join(timeout=10)

    assert result.exit_code == 3
    assert "is not a Spendgate gateway" in result.stderr


def test_url_and_token_go_together_and_a_url_is_one(nowhere: CommandLine) -> None:
    for arguments in (["--url", "http://127.0.0.1:1"], ["--token", "x"], ["--url", "localhost:1", "--token", "x"]):
        result = nowhere("status", *arguments)
        assert result.exit_code == 2, arguments
        assert result.stderr.startswith("error: "), arguments


def test_the_environment_names_a_gateway_before_the_local_one(
    applied: CommandLine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_local_file(applied.folder, f"http://127.0.0.1:{a_closed_port()}")
    monkeypatch.setenv("SPENDGATE_URL", f"{url}/")
    monkeypatch.setenv("SPENDGATE_ADMIN_TOKEN", TOKEN)
    # A proxy in the environment is for the web, not for this.
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{a_closed_port()}")

    assert applied("status").exit_code == 0


def test_another_state_folder_is_named_by_the_environment(
    applied: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (applied.folder / ".spendgate").rename(applied.folder / "elsewhere")
    assert applied("status").exit_code == 3

    monkeypatch.setenv("SPENDGATE_STATE", "elsewhere")

    assert applied("status").exit_code == 0


def test_a_wrong_token_is_refused_by_the_gateway_and_not_repeated(run: CommandLine, url: str) -> None:
    result = run("status", "--url", url, "--token", "not-the-token")

    assert result.exit_code == 4
    assert result.stderr == "error: the admin token is missing or wrong\n"


def test_mistakes_on_the_command_line_are_usage_errors_in_text_and_in_json(nowhere: CommandLine) -> None:
    for arguments in (
        ["stauts"],
        ["stop", "acme"],
        ["keys", "create", "ci"],
        ["reservations", "list", "--state", "done"],
        ["reservations", "list", "--limit", "0"],
        ["reconcile", "settle", "X", "--evidence", "bill"],
        ["apply", "-f", "nothing.yaml"],
        ["local", "--port", "70000"],
    ):
        text, as_json = nowhere(*arguments), nowhere(*arguments, "--json")
        assert (text.exit_code, as_json.exit_code) == (2, 2), arguments
        assert text.stderr.startswith("error: "), arguments
        assert json.loads(as_json.stderr)["error"]["code"] == "usage", arguments
        assert (text.stdout, as_json.stdout) == ("", ""), arguments


def test_no_command_at_all_shows_the_help(nowhere: CommandLine) -> None:
    result = nowhere()

    assert result.exit_code == 2
    assert "Start here:" in result.output
    assert nowhere("--version").stdout.startswith("spendgate, version ")
