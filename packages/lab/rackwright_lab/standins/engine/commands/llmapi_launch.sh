#!/bin/bash
# Stand-in of trtllm-llmapi-launch: one process of mpirun runs it on each rank. The first rank runs the command beside
# the leader, without MPI's variables; the others are workers until the leader says so.
# As the real one (tensorrt_llm/llmapi/trtllm-llmapi-launch, v1.1 to v1.2): the command is split at spaces again, and
# the leader gets no message when it has ended.
set -e
command="${*:1}"
rank=${OMPI_COMM_WORLD_RANK:-0}
echo "mpi_rank: $rank" >&2
export TLLM_SPAWN_PROXY_PROCESS=1 tllm_mpi_size=${OMPI_COMM_WORLD_SIZE:-1}
port=$(python3 -c 'import itertools, socket
for port in itertools.count(10012):
    try: socket.socket().bind(("", port))
    except OSError: continue
    print(port); break')
export TLLM_SPAWN_PROXY_PROCESS_IPC_ADDR="tcp://127.0.0.1:$port"
TLLM_SPAWN_PROXY_PROCESS_IPC_HMAC_KEY=$(python3 -c 'import secrets; print(secrets.token_hex(32))')
export TLLM_SPAWN_PROXY_PROCESS_IPC_HMAC_KEY
if [ "$rank" = 0 ]; then
  echo "rank0 run $command in background" >&2
  (
    for name in $(compgen -e); do
      case $name in OMPI_* | PMIX_* | PMI_* | MPI_* | UCX_*) unset "$name" ;; esac
    done
    $command
  ) &
  exec python3 -m tensorrt_llm.llmapi.mgmn_leader_node
fi
echo "rank$rank run mgmn worker node with mpi_world_size: $tllm_mpi_size ..." >&2
exec python3 -m tensorrt_llm.llmapi.mgmn_worker_node
