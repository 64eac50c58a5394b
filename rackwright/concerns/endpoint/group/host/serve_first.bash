#!/bin/bash
# What the first rank runs: the server, whose end is the end of all ranks. trtllm-llmapi-launch waits for its other ranks
# for good when the server has failed, and it splits words at spaces: so they come by RACKWRIGHT_SERVER.
eval "set -- $RACKWRIGHT_SERVER"
"$@"
echo "$1 ended with status $?" >&2
kill -USR1 1
