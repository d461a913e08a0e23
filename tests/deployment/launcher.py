"""Starts MiniStack with what a SAM template of a streaming API needs and MiniStack 1.5.33 has not.

Run as a program, in an environment with ``ministack[full]`` and ``awslambdaric``. Each patch stands beside its reason; they reach into
MiniStack's internals, so the version is pinned and ``NAMES`` is what a test checks first.

- OpenAPI import: any-method, integration time-outs and transfer mode are lost, and ``/`` in a media type stays escaped.
- The URI of a streaming integration is not known.
- Python functions run in a loader of MiniStack's own: here they run on AWS's (awslambdaric) over a Runtime API, so that an exec wrapper and
  several layers work, and the pieces of a streamed answer reach the client as they are posted.
- A function's error is told to the caller: AWS answers 502 without a word.
- To who invokes a function that streams, its answer came as text in JSON: here as the bytes that it posted.
- An email of SNS is sent to nobody: here it is a line of JSON in ``mail.jsonl``, for whoever wants to read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import hashlib
import io
import json
import os
import queue
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

import ministack.core.lambda_runtime as runtime
import ministack.services.apigateway_v1 as api
from ministack.app import main
from ministack.core.responses import StreamingResponse
from ministack.services import lambda_svc as functions
from ministack.services import sns
from ministack.services.cloudformation import provisioners

NAMES: Final = (
    (api, "_import_path_item"), (api, "_import_operation"), (api, "_import_rest_api"), (api, "_resources"),
    (api, "_extract_lambda_ref_from_integration_uri"), (api, "_lambda_proxy_response"), (api, "_invoke_lambda_proxy_v1"),
    (api, "_build_lambda_event_v1"), (functions, "_provided_runtime_code_dir"), (functions, "_provided_worker_env"),
    (functions, "_resolve_layer_zip"), (functions, "_split_stream_prelude"), (functions, "_execute_function_warm"), (functions, "_invoke"),
    (functions, "_execute_function_provided_warm"), (runtime, "ProvidedWorker"), (runtime, "_worker_class_for"),
    (provisioners, "_RESOURCE_HANDLERS"), (sns, "_fanout"), (sns, "_topic_by_arn_any_scope"),
    (sns, "_resolve_message_for_protocol"), (sns, "_matches_filter_policy"),
)  # fmt: skip

_LOST: Final = ("timeoutInMillis", "responseTransferMode", "credentials")
_PRELUDE_END: Final = b"\0" * 8
_BOOTSTRAP: Final = """#!/bin/sh
if [ -n "$AWS_LAMBDA_EXEC_WRAPPER" ]; then exec "$AWS_LAMBDA_EXEC_WRAPPER" python3 -m awslambdaric "$_HANDLER"; fi
exec python3 -m awslambdaric "$_HANDLER"
"""


def patch_import() -> None:
    """Let the import of a REST API keep what it drops."""
    path_item, operation, rest_api = api._import_path_item, api._import_operation, api._import_rest_api
    reference = api._extract_lambda_ref_from_integration_uri

    def import_path_item(api_id: str, path: str, item: dict[str, Any], *more: Any) -> None:
        path_item(api_id, path, item, *more)
        any_method = item.get("x-amazon-apigateway-any-method")
        if any_method is not None:
            found = next(key for key, one in api._resources.get(api_id, {}).items() if one.get("path") == path)
            api._import_operation(api_id, found, "ANY", any_method, *more)

    def import_operation(api_id: str, resource: str, method: str, described: dict[str, Any], *more: Any) -> None:
        operation(api_id, resource, method, described, *more)
        given = (described or {}).get("x-amazon-apigateway-integration") or {}
        made = (api._resources[api_id][resource]["resourceMethods"].get(method) or {}).get("methodIntegration")
        if made is not None:
            made.update({name: given[name] for name in _LOST if name in given})

    def import_rest_api(spec: dict[str, Any], base: dict[str, Any] | None = None) -> Any:
        base = dict(base or {})
        types = base.get("binaryMediaTypes") or spec.get("x-amazon-apigateway-binary-media-types") or []
        base["binaryMediaTypes"] = [one.replace("~1", "/") for one in types]
        return rest_api(spec, base)

    api._import_path_item, api._import_operation, api._import_rest_api = (
        import_path_item,
        import_operation,
        import_rest_api,
    )
    api._extract_lambda_ref_from_integration_uri = lambda uri: reference(
        (uri or "").replace("/response-streaming-invocations", "/invocations")
    )


def patch_answers() -> None:
    """Read a streamed answer that was collected whole, and say nothing of a function's error."""
    answer = api._lambda_proxy_response

    def lambda_proxy_response(result: dict[str, Any]) -> Any:
        body = result.get("body")
        raw = body.encode("utf-8", "surrogateescape") if isinstance(body, str) else body
        if isinstance(raw, bytes) and not result.get("error") and _PRELUDE_END in raw:
            prelude, rest = functions._split_stream_prelude(raw)
            if prelude is not None:
                return {**prelude, "body": rest.decode("utf-8", "replace")}, None
        is_proxy = isinstance(body, dict) and "statusCode" in body
        if not result.get("throttle") and (result.get("error") or not is_proxy):
            return None, "Internal server error"
        return answer(result)

    api._lambda_proxy_response = lambda_proxy_response


def patch_runtime() -> None:
    """Run Python functions on awslambdaric, with their layers merged under one /opt and their wrapper."""
    code_dir, worker_env = functions._provided_runtime_code_dir, functions._provided_worker_env
    warm = functions._execute_function_warm

    def provided_runtime_code_dir(code_zip: bytes) -> str:
        folder: str = code_dir(code_zip)
        bootstrap = Path(folder) / "bootstrap"
        if not bootstrap.exists():
            part = bootstrap.with_suffix(f".{os.getpid()}")
            part.write_text(_BOOTSTRAP)
            part.chmod(0o755)
            part.replace(bootstrap)
        return folder

    def provided_worker_env(config: dict[str, Any], folder: str, port: int) -> dict[str, str]:
        env: dict[str, str] = worker_env(config, folder, port)
        opt = _opt(config, Path(folder).parent)
        wrapper = env.get("AWS_LAMBDA_EXEC_WRAPPER", "")
        if wrapper.startswith("/opt/"):
            env["AWS_LAMBDA_EXEC_WRAPPER"] = str(opt) + wrapper.removeprefix("/opt")
        elif wrapper.startswith("/var/task/"):
            env["AWS_LAMBDA_EXEC_WRAPPER"] = folder + wrapper.removeprefix("/var/task")
        env["PYTHONPATH"] = os.pathsep.join((folder, str(opt / "python")))
        env["PATH"] = str(Path(sys.executable).parent) + os.pathsep + env.get("PATH", "")
        env["AWS_LAMBDA_LOG_GROUP_NAME"] = "/aws/lambda/" + config.get("FunctionName", "")
        env["AWS_EXECUTION_ENV"] = "AWS_Lambda_" + config.get("Runtime", "")
        env.setdefault("AWS_ENDPOINT_URL", f"http://127.0.0.1:{os.environ.get('GATEWAY_PORT', '4566')}")
        if not env.get("AWS_SESSION_TOKEN"):
            env.pop("AWS_SESSION_TOKEN", None)
        return env

    def execute_function_warm(func: dict[str, Any], event: Any, request_id: str) -> Any:
        name = str((func.get("config") or func).get("Runtime", ""))
        run = functions._execute_function_provided_warm if name.startswith("python") else warm
        return run(func, event, request_id)

    functions._provided_runtime_code_dir, functions._provided_worker_env = (
        provided_runtime_code_dir,
        provided_worker_env,
    )
    functions._execute_function_warm = execute_function_warm
    runtime._worker_class_for = lambda config: (
        runtime.ProvidedWorker if str(config.get("Runtime", "")).startswith(("provided", "python")) else runtime.Worker
    )


def _opt(config: dict[str, Any], beside: Path) -> Path:
    """Return a folder with the layers of a function, later ones over earlier ones, with the modes of their files."""
    zips = [found for one in config.get("Layers", []) if (found := functions._resolve_layer_zip(one))]
    folder = beside / f"opt-{hashlib.sha256(b''.join(hashlib.sha256(one).digest() for one in zips)).hexdigest()[:32]}"
    if not folder.is_dir():
        part = folder.with_suffix(f".{os.getpid()}-{id(config)}")
        for one in zips:
            with zipfile.ZipFile(io.BytesIO(one)) as archive:
                for member in archive.infolist():
                    made = Path(archive.extract(member, part))
                    if made.is_file() and (mode := member.external_attr >> 16 & 0o777):
                        made.chmod(mode)
        # Another worker may have been first, with the same files.
        with contextlib.suppress(OSError):
            part.rename(folder)
    return folder


# The queue of the request that is being answered, and by request id where its pieces go.
_queue: contextvars.ContextVar[queue.Queue[tuple[str, Any]] | None] = contextvars.ContextVar("queue", default=None)
_live: dict[str, queue.Queue[tuple[str, Any]]] = {}


def patch_streaming() -> None:  # noqa: C901 - closures over what they replace
    """Pass the pieces of a streamed answer to the HTTP client as the function posts them."""
    invoke, build_handler = runtime.ProvidedWorker.invoke, runtime.ProvidedWorker._build_handler_class
    proxy, build_event = api._invoke_lambda_proxy_v1, api._build_lambda_event_v1

    def invoke_live(self: Any, event: Any, request_id: str, **more: Any) -> Any:
        asked = event.get("requestContext", {}).get("requestId") if isinstance(event, dict) else None
        self.live = None if asked is None else _live.pop(asked, None)
        return invoke(self, event, request_id, **more)

    def build_handler_class(self: Any, generation: Any, pending: Any) -> type:
        worker, base = self, build_handler(self, generation, pending)

        class Handler(base):  # type: ignore[misc, valid-type]
            # Otherwise every invocation waits 40 ms for a delayed acknowledgement.
            disable_nagle_algorithm = True

            def _read_body(self) -> bytes:
                live = getattr(worker, "live", None)
                if live is None or self.headers.get("Lambda-Runtime-Function-Response-Mode") != "streaming":
                    return super()._read_body()  # type: ignore[no-any-return]
                return _read_pieces(self.rfile, live)

        return Handler

    def build_lambda_event_v1(*args: Any, **more: Any) -> dict[str, Any]:
        event: dict[str, Any] = build_event(*args, **more)
        if (found := _queue.get()) is not None:
            _live[event["requestContext"]["requestId"]] = found
        return event

    async def invoke_lambda_proxy_v1(integration: dict[str, Any], *args: Any, **more: Any) -> Any:
        if integration.get("responseTransferMode") != "STREAM":
            return await proxy(integration, *args, **more)
        found: queue.Queue[tuple[str, Any]] = queue.Queue()
        _queue.set(found)
        task = asyncio.ensure_future(proxy(integration, *args, **more))
        kind, prelude = await _next_piece(found, task)
        if kind != "prelude":
            return await task

        async def stream(send: Any, receive: Any) -> None:
            while True:
                kind, piece = await _next_piece(found, task)
                if kind == "piece":
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    continue
                if kind == "end":
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                # A broken one is cut off, as on AWS.
                return

        headers = dict(prelude.get("headers") or {})
        if prelude.get("cookies"):
            headers["Set-Cookie"] = list(prelude["cookies"])
        headers.update(prelude.get("multiValueHeaders") or {})
        return prelude.get("statusCode", 200), headers, StreamingResponse(stream)

    runtime.ProvidedWorker.invoke, runtime.ProvidedWorker._build_handler_class = invoke_live, build_handler_class
    api._build_lambda_event_v1, api._invoke_lambda_proxy_v1 = build_lambda_event_v1, invoke_lambda_proxy_v1


def _read_pieces(source: Any, live: queue.Queue[tuple[str, Any]]) -> bytes:
    """Read a chunked body; its prelude, pieces and end go to the queue as they come."""
    pieces: list[bytes] = []
    head, begun, broken = b"", False, False
    while size := int(source.readline().split(b";")[0].strip() or b"0", 16):
        piece = source.read(size)
        source.readline()
        pieces.append(piece)
        if begun:
            live.put(("piece", piece))
            continue
        head += piece
        end = head.find(_PRELUDE_END)
        if end >= 0:
            begun = True
            live.put(("prelude", json.loads(head[:end])))
            if rest := head[end + len(_PRELUDE_END) :]:
                live.put(("piece", rest))
    while source.readline().strip():
        broken = True
    live.put(("broken" if broken else "end", None))
    return b"".join(pieces)


async def _next_piece(found: queue.Queue[tuple[str, Any]], task: asyncio.Future[Any]) -> tuple[str, Any]:
    while True:
        try:
            return found.get_nowait()
        except queue.Empty:
            if task.done():
                return "end", None
            await asyncio.sleep(0.002)


def patch_secrets() -> None:
    """Let Ref of a secret be its ARN, as on AWS."""
    handler = provisioners._RESOURCE_HANDLERS["AWS::SecretsManager::Secret"]
    make = handler["create"]

    def create(logical_id: str, properties: Any, stack: str, *more: Any, **named: Any) -> Any:
        made = make(logical_id, properties, stack, *more, **named)
        return (made[1].get("Arn") or made[0], *made[1:]) if isinstance(made[1], dict) else made

    handler["create"] = create


def patch_invocations() -> None:
    """Hand the bytes that a function streamed to who invoked it."""
    invoke = functions._invoke

    async def invoked(*args: Any, **more: Any) -> Any:
        status, headers, body = await invoke(*args, **more)
        if body and body.startswith(b'"') and _PRELUDE_END in (text := json.loads(body)).encode("utf-8", "replace"):
            body = text.encode("utf-8", "surrogateescape")
        return status, headers, body

    functions._invoke = invoked


def patch_mail() -> None:
    """Write down what subscribers would get by email."""
    fan_out, mailbox = sns._fanout, Path(os.environ["STATE_DIR"]) / "mail.jsonl"

    def fanout(
        topic: str,
        message_id: str,
        message: str,
        subject: str,
        structure: str = "",
        attributes: Any = None,
        **more: Any,
    ) -> None:
        text = sns._resolve_message_for_protocol(message, structure, "email")
        with mailbox.open("a", encoding="utf-8") as mail:
            for one in (sns._topic_by_arn_any_scope(topic) or {"subscriptions": []})["subscriptions"]:
                if one.get("protocol") == "email" and sns._matches_filter_policy(one, attributes or {}, text):
                    sent = {"to": one["endpoint"], "topic": topic, "subject": subject, "text": text}
                    mail.write(json.dumps(sent) + "\n")
        fan_out(topic, message_id, message, subject, structure, attributes, **more)

    sns._fanout = fanout


if __name__ == "__main__":
    patch_import()
    patch_answers()
    patch_runtime()
    patch_streaming()
    patch_secrets()
    patch_mail()
    patch_invocations()
    main()
