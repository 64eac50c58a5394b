# Before anything is stopped: is every member in line, and has the release whole? Nothing is asked where nothing runs.
# Parameters: here unit release members (their names, in the order of their ranks) seconds.
[ -d "$here" ] && [ "$(systemctl is-active "$unit")" = active ] || exit 0
printf '%s\n' "$release" >"$here/asked.new" && mv -f "$here/asked.new" "$here/asked" || exit 1
left=$seconds
while :; do
  rank=0 lacking=
  for member in $members; do
    if [ $rank -gt 0 ] && ! { read -r _ _ _ _ has _ <"$here/rank-$rank"; } 2>/dev/null; then lacking="$member is not in line with its head"
    elif [ $rank -gt 0 ] && [ "$has" != "$release:yes" ]; then lacking="$member does not have release $release whole"; fi
    rank=$((rank + 1))
  done
  [ -n "$lacking" ] || exit 0
  left=$((left - 1))
  [ "$left" -gt 0 ] || break
  sleep 1
done
printf '%s\n' "$lacking" | tee "$reason"
exit 1
