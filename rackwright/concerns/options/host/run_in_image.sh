# Run one of Rackwright's programs inside an image: then "$work/answer" has what it printed, and $status says how it ended.
# Parameters: container label (both of remove_helper.sh) limit (seconds) program (base64) run (the docker command).
set -u
work=$(mktemp -d)
ended=no
trap '[ $ended = yes ] || remove_helper; rm -rf "$work"' EXIT
trap 'exit 143' HUP TERM INT
printf %s "$program" | base64 -d >"$work/program"
# In blocks of 512 bytes: an image that prints without end fills no disk.
ask_image() ( ulimit -f 65536; eval "timeout -k 5 $limit $run" <"$work/program" >"$work/answer" 2>"$work/errors" )
alone ask_image
status=$?
# A container that ends is gone; a client that was killed, or could not start it, leaves it there.
case $status in 124 | 125 | 137) ;; *) ended=yes ;; esac

why_not() { # how it ended, when not by the program itself: a sentence that needs no escapes in JSON
  case $status in
    124 | 137) printf '%s\n' "it took more than $limit s" ;;
    *) printf '%s\n' "docker run ended with $status: $(grep -v -e '^$' -e "^See 'docker" "$work/errors" | tail -n 1 | tr -cd '[:alnum:] .,:;/_()=-' | cut -c 1-300)" ;;
  esac
}
