#!/bin/sh
# What the Lambda Web Adapter starts; it hands requests to the port. The layer's packages come before the runtime's own, whose
# boto3 is an older one: only the runtime's own start adds them by itself.
PYTHONPATH="/opt/python${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
exec python3 -m app
