# The marks of a host, and the word of an endpoint, which follows from all of them and from its unit. To write, it needs the
# functions of durable.sh. An operator's drain is a file of its own, as earlier versions have it.
#include mark.sh
word_of_mark() { # file; sets `marked` to its word: one that cannot be read counts as the worst
  marked=down
  while IFS= read -r mark_row || [ -n "$mark_row" ]; do
    case $mark_row in word=up | word=drain | word=down) marked=${mark_row#word=}; return ;; esac
  done <"$1"
}
word_of() { # ENDPOINT; prints its word; the worst counts
  word=up admitted=no
  for mark_of in sick watch trial; do
    [ -f "$marks/$mark_of-$1" ] || continue
    word_of_mark "$marks/$mark_of-$1"
    case $marked in
      down) printf '%s\n' "down #$mark_of"; return ;;
      drain) word=drain ;;
      # A job lets clients in before it commits.
      up) [ "$mark_of" != trial ] || admitted=yes ;;
    esac
  done
  word_home=/var/lib/rackwright/endpoints/$1
  # systemd keeps this link from a unit's start to its end, so that one at rest costs no process.
  if [ ! -L "/run/systemd/units/invocation:rackwright-$1.service" ]; then echo 'down #stopped'; return; fi
  case $(systemctl is-active "rackwright-$1.service" 2>/dev/null) in
    activating) echo 'down #loading'; return ;;
    inactive | failed | deactivating) echo 'down #stopped'; return ;;
  esac
  [ "$admitted" = yes ] || [ "$word_home/current" -ef "$word_home/proven" ] || { echo 'down #trial'; return; }
  [ ! -f /var/lib/rackwright/drained ] || word=drain
  case $word in up) echo 'ready up' ;; *) echo drain ;; esac
}
