# The askers of this host's word, by their notes (word_main.sh): each must know that an endpoint gets no more requests, or gets them again.
# Variables: notes (their folder) endpoint. Times are hundredths of a second since the boot.
# A gateway of the inventory gives its name, and asks every 2 s. Any other asker is a balancer once it has asked twice within 20 s.
# One that has not asked for three of its intervals is gone, and is not waited for.
asker_clock() { read -r asker_now _ </proc/uptime; asker_time "$asker_now"; asker_now=$asker_at; }
asker_time() { # "123.45"; sets `asker_at`: 0 for anything else
  case $1 in *[!0-9.]* | *.*.* | .*) asker_at=0; return ;; *.??) asker_at=${1%.*}${1#*.} ;; *) asker_at=0; return ;; esac
  while [ "${asker_at#0}" != "$asker_at" ] && [ "$asker_at" != 0 ]; do asker_at=${asker_at#0}; done
  [ ${#asker_at} -le 15 ] && [ -n "$asker_at" ] || asker_at=0
}
asker_read() { # note; sets `asker`, `asker_last`, `asker_word` and `asker_interval`; fails for one that is not a balancer
  asker_last=0 asker_before=0 asker_word=
  while read -r asker_row; do
    case $asker_row in
      last=*) asker_time "${asker_row#last=}"; asker_last=$asker_at ;;
      previous=*) asker_time "${asker_row#previous=}"; asker_before=$asker_at ;;
      word=*) asker_word=${asker_row#word=} ;;
    esac
  done <"$1"
  [ "$asker_last" -gt 0 ] || return 1
  asker=${1##*/} asker=${asker%@*}
  case $asker in gateway-*) asker=${asker#gateway-} asker_interval=200; return 0 ;; esac
  asker_interval=$((asker_last - asker_before))
  [ "$asker_before" -gt 0 ] && [ $asker_interval -le 2000 ] || return 1
  [ $asker_interval -ge 100 ] || asker_interval=100
}
asker_heard() { # since, "out" or "any"; whether the asker that was read has got such a word since then
  [ "$asker_last" -gt "$1" ] || return 1
  case $2=$asker_word in any=* | out=drain | out=down*) return 0 ;; esac
  return 1
}
askers_await() { # since, "out" or "any", seconds at most; sets `askers_gone`, the gateways that were not waited for
  asker_clock
  askers_end=$((asker_now + 100 * $3)) askers_shown=
  while :; do
    askers_gone= askers_wait=
    for asker_note in "$notes"/*; do
      # ADDRESS, or ADDRESS@ENDPOINT where one was asked for, or gateway-NAME@ENDPOINT.
      case ${asker_note##*/} in *@"$endpoint") ;; *@*) continue ;; esac
      [ -f "$asker_note" ] && asker_read "$asker_note" && ! asker_heard "$1" "$2" || continue
      asker_clock
      if [ $((asker_now - asker_last)) -le $((3 * asker_interval)) ]; then askers_wait="$askers_wait $asker"
      else case ${asker_note##*/} in gateway-*) askers_gone="$askers_gone $asker" ;; esac; fi
    done
    asker_clock
    [ -n "$askers_wait" ] && [ "$asker_now" -lt $askers_end ] || break
    case $askers_wait=$2 in
      "$askers_shown="*) ;;
      *=out) event progress "draining: waiting until$askers_wait asks again, and sends nothing new here" ;;
      *) event progress "waiting until$askers_wait asks again, and sends requests here" ;;
    esac
    askers_shown=$askers_wait
    sleep 0.2
  done
  [ -z "$askers_wait" ] || event progress "$askers_wait got another word for $3 s, and is not waited for any longer"
  [ "$2" = any ] || [ -z "$askers_gone" ] || event progress "not waited for, since no question came for 6 s:$askers_gone"
}
