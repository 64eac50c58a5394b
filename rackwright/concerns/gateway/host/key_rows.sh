# Functions of a change of clients' keys. Variables: program (keys_change.awk), journal (changes since the host's boot: `NUMBER ROW`).
in_map() { # map, its file; rows come by standard input, and the map goes out as they want it
  LC_ALL=C awk -v map="$1" "$program" - "$2"
}
one_at_a_time() { # changes of keys, and the deploy that puts maps in place
  mkdir -p -m 0700 "${journal%/*}" && exec 8>>"$journal.lock" && flock -w 30 8 || { echo "another change of keys does not end here" >&2; exit 1; }
}
