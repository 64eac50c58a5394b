# Take the host's lease under the next number, unless another one lives; then wait for what the writer before still does.
# Parameters: lease fence seen displace run ttl patience user machine purpose place pid started.
# seen: the number that the reading saw. displace: the id of a lease that is known to be dead, or to be taken away.
# Prints "lease taken ID fresh|stale", or "lease held" before what a reading prints.
umask 077
mkdir -p -m 0755 "${fence%/*}" && mkdir -p -m 0700 "${lease%/*}" || exit 1
busy() { printf '%s\n' "$1 is held by another command for too long; a stopped run's last command keeps running to its end; next: the same command again, later; see by whom: fuser -v $1" >&2; exit 1; }
# A teardown may take a lock file away while another process waits for it.
until exec 9>>"$lease.lock" && { flock --timeout 30 9 || busy "$lease.lock"; } && [ /proc/self/fd/9 -ef "$lease.lock" ]; do :; done
value() { sed -n "s/^$1=//p" "$lease" 2>/dev/null | head -n 1 | tr -cd '0-9a-f.'; }
read -r now _ </proc/uptime
now=${now%%.*}
last=$(head -n 1 "$fence" 2>/dev/null | tr -cd 0-9)
last=${last:-0} state=stale id=$(value id) taken=$(value taken) expires=$(value expires)
if [ "${taken:-0}" -le "$now" ] && [ "$now" -lt "${expires:-0}" ] && [ "$id" != "$displace" ]; then
  echo "lease held"
  printf 'fence=%s\nlease=%s\nuptime=%s\n' "$last" "$(base64 -w0 <"$lease")" "$now"
  exit 0
fi
# A lease that was given back has let its commands end first; one that is still there has not.
[ "$last" = "$seen" ] && ! [ -e "$lease" ] && state=fresh
number=$((last + 1)) id=$((last + 1)).$run
printf '%s\n' "$number" >"$fence.new" && sync -d "$fence.new" && mv -f "$fence.new" "$fence" || exit 1
printf '%s\n' "id=$id" "user=$user" "machine=$machine" "purpose=$purpose" "place=$place" "pid=$pid" "started=$started" \
  "taken=$now" "expires=$((now + ttl))" >"$lease.new" && mv -f "$lease.new" "$lease" || exit 1
exec 9>&-
exec 8>>"$lease.writers"
if ! flock --nonblock 8; then
  state=stale
  flock --timeout "$patience" 8 || { rm -f "$lease"; busy "$lease.writers"; }
fi
printf '%s\n' "lease taken $id $state"
