# Let dockerd judge its configuration before it is put in place, where it can. Parameters: daemon_json (path)
# daemon_text (base64). The file $reason, if any, gets what went wrong.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
#include behind.sh
behind "$daemon_json" >/dev/null || exit 1
if [ -n "$daemon_text" ] && timeout 20 dockerd --help 2>/dev/null | grep -q -- --validate; then
  mkdir -p /run/rackwright && printf %s "$daemon_text" | base64 -d >/run/rackwright/daemon.json || exit 1
  if ! said=$(timeout 60 dockerd --validate --config-file=/run/rackwright/daemon.json 2>&1); then
    printf "%s\n" "$said" >&2
    printf "%s\n" "dockerd refuses the merged $daemon_json" >&2
    printf "%s\n" "dockerd refuses the merged $daemon_json: $(printf "%s\n" "$said" | tail -n 1)" >"${reason:-/dev/null}"
    exit 1
  fi
fi
