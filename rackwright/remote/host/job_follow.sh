# Print a job's state, its log and its events, each from a byte on; wait up to `patience` tenths of a second for news.
# The end ends the wait, and an event that is acted on. What is only shown waits `gather` tenths for more of it, since
# each answer costs a command over SSH.
# What the shell itself can do, no program does: following a job must not slow it down.
# Parameters: unit folder nonce (the job's) log and events (the bytes) patience gather shown (words of events, in spaces).
waited=0 since= news=no running=yes seen=
# Another run may have begun another job of the same name since: that one's bytes are not this one's.
[ ! -r "$folder/nonce" ] || read -r seen <"$folder/nonce"
[ -z "$seen" ] || [ "$seen" = "$nonce" ] || { echo other=yes; exit 0; }
word_of() { seen= && { [ ! -r "$folder/$1" ] || read -r seen <"$folder/$1"; }; printf '%s=%s\n' "$1" "$seen"; }
sizes() { stat -c %s "$folder/log" "$folder/events" 2>/dev/null; }
from() { # name, bytes that are there, the byte to begin at, the most that is printed
  new=$(($2 - $3))
  [ $new -le "$4" ] || { new=$4 running=yes; }
  printf '%s=' "$1"
  [ $new -le 0 ] || tail -c +$(($3 + 1)) "$folder/$1" | head -c $new | base64 -w0
  echo
}
pause() { sleep "0.$1"; waited=$((waited + $1)); }
hear() { # what has been written since the last time
  [ -n "$since" ] || { size=$(stat -c %s "$folder/log") && [ "$size" -gt "$log" ] && since=$waited; }
  while first= word= && read -r first _ word _ <&4 || [ -n "$first" ]; do
    case $shown in *" $word "*) since=${since:-$waited} ;; *) news=yes ;; esac
  done
  [ -z "$since" ] || [ $((waited - since)) -lt "$gather" ] || news=yes
}
gone=yes
# Both are there from the start on.
if [ -r "$folder/log" ] && [ -r "$folder/events" ]; then
  gone=no
  exec 4<"$folder/events"
  # This moves the place from which the shell reads; nothing is copied.
  [ "$events" = 0 ] || dd bs=1 count=0 skip="$events" <&4 2>/dev/null
fi
while :; do
  [ $gone = yes ] || hear
  # The last thing that a job does is to leave the file `over`: only then, or when it is silent, is systemd asked.
  if [ -e "$folder/over" ] || { [ -z "$since" ] && [ $waited -ge "$patience" ]; } || [ $gone = yes ]; then
    case "$(systemctl is-active "$unit")" in
      active | activating | deactivating | reloading) running=yes ;;
      *) running=no ;;
    esac
  fi
  if [ $running = no ] || [ $waited -ge "$patience" ]; then break; fi
  # One that has ended says so in a moment: then it need not be asked once more.
  if [ -e "$folder/status" ] || [ -e "$folder/ended" ]; then pause 1; continue; fi
  [ $news = no ] || break
  if [ $waited -lt 10 ]; then pause 2; else pause 5; fi
done
# What it has said by now; after its end, everything.
# shellcheck disable=SC2046 - two numbers
set -- $(sizes)
word_of status
word_of ended
# The log first, and no more of it than when the events were counted: an event has its place in it, and must not come
# after what was printed later.
from log "${1:-0}" "$log" 65536
from events "${2:-0}" "$events" 1048576
# When not everything fitted, the job counts as running, so that it is looked at again.
echo running=$running
