# shellcheck shell=bash
# Answer one question: the word of an endpoint, or the worst of all. Standard input and output are the asker's connection.
# bash, whose `read` has a limit of time and of letters: two programs less for each question than with sh.
# The name of an endpoint comes as one line, and after a space the name of the gateway that asks; an asker that sends nothing gets
# the answer after half a second. Each asker's last two times are noted, so that a drain can tell who has seen its word.
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
notes=/run/rackwright-word homes=/var/lib/rackwright/endpoints
rank() { # word; sets `rank`, the higher the worse
  case $1 in 'ready up') rank=0 ;; drain) rank=1 ;; *) rank=2 ;; esac
}
worst() { # prints the worst word of the endpoints of this host
  found= highest=-1
  for current in "$homes"/*/current; do
    [ -L "$current" ] && [ ! -f "${current%/current}/replaced-by" ] || continue
    one=${current%/current} one=$(word_of "${one##*/}")
    rank "$one"
    [ $rank -le $highest ] || { highest=$rank found=$one; }
  done
  printf '%s\n' "${found:-down #stopped}"
}
note() { # word; what a drainer reads: a file for each asker, and for each endpoint that it asks for
  asker=${REMOTE_ADDR#::ffff:}
  case $asker in '' | *[!0-9a-fA-F.:]*) return ;; esac
  # A gateway has several addresses, so that it says its name; no address begins as this does.
  asker=${gateway:+gateway-}${gateway:-$asker}
  file=$notes/$asker${asked:+@$asked} previous=
  if [ -f "$file" ]; then
    while read -r row; do case $row in last=*) previous=${row#last=} ;; esac; done <"$file"
  else
    set -- "$1" "$notes"/*
    # An asker with a whole network of addresses must not fill /run.
    [ $# -le 1000 ] || find "$notes" -type f -mmin +10 -delete
    [ $# -le 2000 ] || return
  fi
  read -r now _ </proc/uptime
  # Each note has the same length, and takes the place of the one before by one write: no reader finds half of it.
  printf 'last=%-14s\nprevious=%-14s\nword=%-14s\n' "$now" "$previous" "$1" 1<>"$file"
}
# A busy host's time may be over within a line, or before it is looked at: what has come of it is kept, and the rest is waited for.
# An asker that never ends its line gets its answer before a gateway gives up (4 s), and no endpoint's word.
hear() { # seconds; adds to `asked` what comes in them, and fails while the line has no end
  IFS= read -r -t "$1" -n $((256 - ${#asked})) piece
  status=$?
  asked=$asked$piece
  [ $status -le 128 ]
}
asked=
if ! hear 0.5 && { [ -n "$asked" ] || read -r -t 0; }; then
  until hear 1; do [ $SECONDS -lt 3 ] || { echo 'down #unknown'; exit; }; done
fi
asked=${asked%$'\r'}
known=yes gateway=
# A peer with the same event asks whether this host sends it (notify.j2): pending or sent, and the event's age in seconds.
case $asked in 'sent '*)
  event=${asked#sent } answer=none
  case $event in
    .* | *[!A-Za-z0-9._-]*) ;;
    *)
      if [ -f "/run/rackwright-notify/sent/$event" ]; then
        read -r answer at <"/run/rackwright-notify/sent/$event"
        read -r now _ </proc/uptime
        answer="$answer $((${now%%.*} - at))"
      fi
      ;;
  esac
  printf '%s\n' "$answer"
  exit
  ;;
esac
case $asked in *' '*)
  case ${asked#* } in *[!A-Za-z0-9._:-]*) ;; *) [ ${#asked} -gt 240 ] || gateway=${asked#* } asked=${asked%% *} ;; esac ;;
esac
case $asked in
  '') answer=$(worst) ;;
  *[!a-z0-9_-]*) known=no ;;
  *) if [ -L "$homes/$asked/current" ]; then answer=$(word_of "$asked"); else known=no; fi ;;
esac
# A gateway that has hung up already, since its own time was over, does not get the answer, and is not noted.
[ -z "$gateway" ] || ! read -r -t 0 || known=no
printf '%s\n' "${answer:-down #unknown}"
exec >&- <&- 2>/dev/null
[ $known = no ] || note "$answer"
