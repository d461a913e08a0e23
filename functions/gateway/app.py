"""The gateway's function: Starlette under uvicorn, behind the AWS Lambda Web Adapter (or in any container)."""

import gc

# What the imports make stays: to search it for garbage again and again took an eighth of the start.
gc.disable()

import os
import sys
from dataclasses import replace

import uvicorn

from spendgate.asgi import create_app
from spendgate.calls import NO_METRICS
from spendgate.errands import errand_routes
from spendgate.observability import JsonLog, metrics_of
from spendgate.settings import read
from spendgate.wiring import utc_now, wire

BEHIND_ADAPTER = "AWS_LAMBDA_FUNCTION_NAME" in os.environ
# The Web Adapter writes this header itself, over whatever a caller sent.
CONTEXT_HEADER = "x-amzn-lambda-context"

log = JsonLog()
metrics = metrics_of(os.environ, stream=sys.stdout, now=utc_now) or NO_METRICS
settings = read(os.environ)
if BEHIND_ADAPTER:
    settings = replace(settings, deadline_header=CONTEXT_HEADER)
wired = wire(settings, environ=os.environ, log=log, metrics=metrics)
routes = errand_routes(wired.ledger.reservation, wired.config.provider, wired.recover, log) if BEHIND_ADAPTER else ()
app = create_app(wired.gateway, settings=settings, log=log, metrics=metrics, routes=routes)

# From here on garbage is looked for as usual, in what calls make.
gc.freeze()
gc.enable()

if __name__ == "__main__":
    uvicorn.run(
        app, host="127.0.0.1", port=int(os.environ.get("PORT", "8080")), ws="none", access_log=False, log_config=None
    )
