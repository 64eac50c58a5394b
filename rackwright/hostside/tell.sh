# Functions that note an event of this host for the receivers of the settings' `notify` (rackwright-notify.service sends it).
# The caller never fails by them: what a full disk has no room for waits in memory. The text must not hold a secret.
# KIND is hang, dead, restart, would-restart, sick, gpu, firewall-repair, dockerd-repair, drift or quarantine. KEY is the kind and the endpoint,
# as hang-llm: the same on each host that has the same event, so that one of them sends for all.
tell() { event_note firing "$@"; } # KIND KEY TEXT
tell_resolved() { event_note resolved "$@"; } # KIND KEY TEXT
event_word() { printf "%s" "$1" | tr -c "A-Za-z0-9._-" "-" | cut -c 1-120; }
event_line() { # one printable line: UTF-8, or ASCII where the host has no iconv
  printf "%s" "$1" | tr "\n\t" "; " | tr -d "\000-\037\177" | cut -b 1-1000 |
    if command -v iconv >/dev/null; then iconv -c -f UTF-8 -t UTF-8; else tr -cd "\040-\176"; fi
}
event_note() ( # STATE KIND KEY TEXT
  export LC_ALL=C
  umask 077
  exec 2>/dev/null
  time=$(date +%s) number=1 new=
  for folder in /var/lib/rackwright/events /run/rackwright/events; do
    mkdir -p "$folder" && cd "$folder" && new=$(mktemp .new.XXXXXX) || continue
    printf "kind=%s\nkey=%s\nstate=%s\ntime=%s\ntext=%s\n" \
      "$(event_word "$2")" "$(event_word "$3")" "$1" "$time" "$(event_line "$4")" >"$new" && break
    rm -f "$new"
    new=
  done
  [ -n "$new" ] || exit 0
  # Two events of one second get a name each, also from two writers.
  until ln "$new" "$time.$$.$number" || [ "$number" -ge 50 ]; do number=$((number + 1)); done
  rm -f "$new"
  # Where nothing sends them, the newest 100 stay.
  find . -maxdepth 1 -name "[0-9]*" | sort -t / -k 2n | head -n -100 | xargs -r rm -f
  find . -maxdepth 1 -name ".new.*" -mmin +5 -delete
  exit 0
)
