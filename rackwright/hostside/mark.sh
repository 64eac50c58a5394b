# The marks of a host: a file a writer, so that each removes only its own. Needs the functions of durable.sh.
marks=/var/lib/rackwright/marks
mark_line() { printf %s "$1" | tr -d '\000-\037\177' | cut -c1-300; }
mark() { # NAME WORD WHO REASON [LEASE [JOB]]; JOB: of the host, which writes it
  mkdir -p -m 0755 "$marks" && printf '%s\n' "word=$2" "since=$(date -u '+%F %T')" "who=$(mark_line "$3")" "reason=$(mark_line "$4")" \
    ${5:+"lease=$5"} ${6:+"job=$6"} | durable_file "$marks/$1"
}
unmark() { # NAME
  durably_gone "$marks/$1"
}
