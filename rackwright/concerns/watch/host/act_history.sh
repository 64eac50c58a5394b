# What the watch did to an endpoint: a row `EPOCH restart|tell|sick|give-up|clear RESULT TEXT` each; and what follows from it.
acts=$state/watch/acts-$endpoint
rows() { cat "$acts" 2>/dev/null; }
add_row() { # kind, result, text; the newest 200 stay
  mkdir -p "${acts%/*}" && { rows | tail -n 199; printf '%s\n' "$(date +%s) $1 $2 $(printf %s "$3" | tr -c '[:print:]' ' ' | cut -c1-300)"; } | durable_file "$acts"
}
end_row() { # result, text: of the act that has begun last
  { rows | sed '${/^[0-9]* restart begun /d}'; printf '%s\n' "$began restart $1 $(printf %s "$2" | tr -c '[:print:]' ' ' | cut -c1-300)"; } | durable_file "$acts"
}
# The last three restarts since a run has proven the endpoint, all within `window` seconds, and the last of them no longer ago.
# A clock that was put back leaves rows of the future: they move into the past together, so the time between them stays.
worn() { # window; fails unless that is the case; sets `tries`, the restarts in a row that each came within a window of the one before
  now=$(date +%s)
  set -- "$1" "$(rows | awk -v now="$now" -v window="$1" '
    $2 == "clear" { n = 0 }
    $2 == "restart" { t[++n] = $1 }
    END {
      later = now
      for (i = n; i; i--) { if (t[i] - back > later) back = t[i] - later; later = t[i] -= back }
      for (i = n; i && (i == n || t[i + 1] - t[i] <= window); i--);
      tries = n - i
      if (!n || now - t[n] > window) tries = 0
      print tries, (tries >= 3 && t[n] - t[n - 2] <= window ? "worn" : "fresh")
    }')"
  tries=${2% *}
  [ "${2#* }" = worn ]
}
last_end() { # seconds since 1970; 0 where a clock that was put back hides it: no pause may wait for that clock
  rows | awk -v now="$(date +%s)" '$2 == "restart" { at = $1 > now ? 0 : $1 } END { print at + 0 }'
}
