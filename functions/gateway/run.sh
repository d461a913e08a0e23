#!/bin/sh
# What the Lambda Web Adapter starts; it hands requests to the port.
exec python3 -m app
