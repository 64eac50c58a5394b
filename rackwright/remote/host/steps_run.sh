# Simple steps as one command: each in a shell of its own, and the first that fails ends them all.
# A step whose input arrived only in part must not run: it would put half a file in the place of the whole one.
rackwright_step() { # its number, bytes of its input, its script
  rackwright_input=
  [ "$2" = 0 ] || rackwright_input=$(head -c "$2")
  case $2:$rackwright_input in
  0: | *"$whole") ;;
  *) echo "the connection was cut while a step's input arrived, so it was not taken" >&2; rackwright_failed "$1" 1 ;;
  esac
  # No list with || or &&: within one, a step's own `set -e` would mean nothing.
  printf %s "${rackwright_input%"$whole"}" | (eval "$3")
  set -- "$1" "$?"
  [ "$2" = 0 ] || rackwright_failed "$1" "$2"
}
rackwright_failed() { printf '%s %s\n' "$mark" "$1" >&2; exit "$2"; }
