"""The gateway's function: Starlette under uvicorn, behind the AWS Lambda Web Adapter (or in any container)."""

import os
from dataclasses import replace

import uvicorn

from spendgate.asgi import create_app
from spendgate.observability import JsonLog
from spendgate.settings import read
from spendgate.wiring import wire

# The Web Adapter writes this header itself, over whatever a caller sent.
CONTEXT_HEADER = "x-amzn-lambda-context"

log = JsonLog()
settings = read(os.environ)
if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    settings = replace(settings, deadline_header=CONTEXT_HEADER)
app = create_app(wire(settings, environ=os.environ, log=log).gateway, settings=settings, log=log)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8080")), access_log=False, log_config=None)
