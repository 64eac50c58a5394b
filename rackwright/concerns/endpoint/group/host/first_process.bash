#!/bin/bash
# The first process of a member's container: the head's runs mpirun, any other waits for what mpirun starts there.
# Arguments: RANK of this host, MEMBERS, ranks a host, first and last port for them, and the server's command line.
set -u
rank=$1 members=$2 slots=$3 from=$4 to=$5 status=0 stopped='' child=''
shift 5
trap 'stopped=143; end' TERM
trap 'stopped=1; end' USR1
end() { [ -z "$child" ] || kill -TERM "$child" 2>/dev/null; }
# mpirun takes a program as its agent, and nothing in a release is one; orted wants it too, and never runs it.
agent=$TMPDIR/ask-host
rm -f "$agent" && cat /config/release/ask-host >"$agent.new" && chmod 0700 "$agent.new" && mv "$agent.new" "$agent" || exit 1
if [ "$rank" = 0 ]; then
  case $(mpirun --version 2>&1) in
    *"(Open MPI) 4."*) ;;
    *) echo "several hosts want Open MPI 4 in the image; its mpirun is: $(mpirun --version 2>&1 | head -n 1)" >&2; exit 1 ;;
  esac
  IFS=, read -r -a places <<<"$members"
  hosts=$TMPDIR/members
  printf "%s slots=$slots\n" "${places[@]}" >"$hosts" || exit 1
  printf -v RACKWRIGHT_SERVER '%q ' "$@"
  export RACKWRIGHT_SERVER
  # By itself it listens on all addresses from port 1024 on; in these the firewall lets members in alone. The first two
  # are its daemon's (which would listen on all that it is given), the others for ranks. It listens by IPv6 even where it
  # does not use it.
  mpirun --allow-run-as-root --noprefix --leave-session-attached --hostfile "$hosts" --map-by "ppr:$slots:node" \
    --bind-to none --mca plm rsh --mca plm_rsh_agent "$agent" --mca plm_rsh_no_tree_spawn 1 \
    --mca oob_tcp_disable_ipv6_family 1 --mca btl_tcp_disable_family 6 --mca oob_tcp_dynamic_ipv6_ports $((from + 1)) \
    --mca btl_tcp_port_min_v6 $((from + 2)) --mca btl_tcp_port_range_v6 $((to - from - 1)) \
    --mca oob_tcp_dynamic_ipv4_ports "$from" \
    --mca btl_tcp_port_min_v4 $((from + 2)) --mca btl_tcp_port_range_v4 $((to - from - 1)) \
    -np $((slots * ${#places[@]})) trtllm-llmapi-launch /bin/bash /config/release/serve-first &
else
  sleep infinity &
fi
child=$!
[ -z "$stopped" ] || end
while :; do
  wait "$child"
  status=$?
  kill -0 "$child" 2>/dev/null || break
done
exit "${stopped:-$status}"
