#!/bin/bash
# What the head's key may do on a member: start orted in this endpoint's container, so that it calls the head back.
# Argument: the head's address. SSH_ORIGINAL_COMMAND is what mpirun on the head asks for.
set -uf
. "${0%/*}/group"
refuse() { printf '%s\n' "refused: $1" >&2; exit 1; }
asked=${SSH_ORIGINAL_COMMAND:-}
shape='^orted( +--?[a-z-]+( +"?[][A-Za-z0-9_.,:;/@^()+-]+"?)*)+$'
[[ $asked =~ $shape ]] || refuse "it is not orted with plain options"
back=" orte_hnp_uri [0-9]+[.][0-9]+;tcp://([0-9.]+,)*${1//./[.]}(,[0-9.]+)*:[0-9]+ "
read -r -a words <<<"${asked//\"/}"
[[ " ${words[*]} " =~ $back ]] || refuse "it does not call $1 back"
# Whatever would read other files or run other programs than OpenMPI's own.
[[ " ${words[*]} " != *" mca_"* ]] || refuse "it names files of its own"
docker=(/usr/bin/docker --host "$docker_host")
for ((second = 0; second < 60; second++)); do
  [ "$("${docker[@]}" inspect --format '{{.State.Running}}' "$container" 2>/dev/null)" = true ] && break
  sleep 1
done
# By a shell, as its first process was: the image's own settings of shells hold for both. The first makes the agent.
# shellcheck disable=SC2016 - the container's shell expands it
made='until [ -x "$TMPDIR/ask-host" ]; do sleep 0.1; done; exec "$@"'
exec "${docker[@]}" exec "$container" bash -c "$made" bash "${words[@]}"
