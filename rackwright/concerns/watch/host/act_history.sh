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
# A clock that was put back leaves rows of the future: they count as of now.
worn() { # window; fails unless that is the case; sets `tries`, the restarts in a row that each came within a window of the one before
  now=$(date +%s)
  set -- "$1" "$(rows | awk -v now="$now" -v window="$1" '
    $2 == "clear" { n = 0 }
    $2 == "restart" { at = $1 > now ? now : $1; n = n && at - last > window ? 1 : n + 1; t[n] = last = at }
    END { if (n && now - last > window) n = 0; print n + 0, (n >= 3 && t[n] - t[n - 2] <= window ? "worn" : "fresh") }')"
  tries=${2% *}
  [ "${2#* }" = worn ]
}
last_end() { rows | awk '$2 == "restart" { at = $1 } END { print at + 0 }'; }
