# Put the checked files in place, let HAProxy take them over, and put the old ones back where it does not answer with them.
# Parameters: folder new surplus unit units servers url revision admin (socket) look (the unit that looks at the certificate)
# maps (names) program (keys_change.awk) journal (changes of keys) seen (the last one when this deploy has read the host).
#include take_maps.sh
#include key_rows.sh
trap '' HUP PIPE
old=$folder/previous
rm -rf "$old" && mkdir -m 0700 "$old" "$old/certificates" || exit 1
names() { (cd "$1" && find . -maxdepth 2 -type f ! -path './next/*' ! -path './previous/*' ! -name revoked); }
one_at_a_time
later() { awk -v seen="$seen" '$1 + 0 > seen + 0' "$journal" 2>/dev/null; }
# What was added, rotated or revoked while this deploy ran holds: its copy of the site's file is older.
for number in $(later | awk '!known[$1]++ { print $1 }'); do
  for map in $maps; do
    [ -f "$new/$map.map" ] || continue
    later | sed -n "s/^$number //p" | in_map "$map" "$new/$map.map" | LC_ALL=C sort >"$new/$map.new" &&
      chmod 0600 "$new/$map.new" && mv -f "$new/$map.new" "$new/$map.map" || exit 1
  done
done
# What was revoked here stays revoked, also for an older copy of that file on another machine.
if [ -s "$folder/revoked" ] && [ -f "$new/keys.map" ]; then
  awk 'NR == FNR { revoked[$1]; next } !($1 in revoked)' "$folder/revoked" "$new/keys.map" >"$new/keys.new" &&
    chmod 0600 "$new/keys.new" && mv -f "$new/keys.new" "$new/keys.map" || exit 1
fi
names "$folder" | while read -r name; do cp -p "$folder/$name" "$old/$name" || exit 1; done || exit 1
was=stopped
! systemctl is-active --quiet "$unit" || was=running

place() { # all files of a folder take the place of those in use
  names "$1" | while read -r name; do mv -f "$1/$name" "$folder/$name" || exit 1; done
}
take_over() {
  # A reload of systemd may detach the GPUs of an endpoint on this host, so a new configuration alone needs none.
  if ! systemctl is-enabled --quiet "$unit" || [ "$(systemctl show --property=NeedDaemonReload --value "$unit")" = yes ]; then
    systemctl enable --quiet --no-reload "$unit" && systemctl daemon-reload
  fi
  if systemctl is-active --quiet "$unit"; then systemctl reload "$unit"
  else systemctl reset-failed "$unit" 2>/dev/null; systemctl start "$unit"; fi
}
answers() { # revision, tenths of a second
  tenths=0
  while [ "$tenths" -lt "$2" ]; do
    found=$(curl --silent --insecure --noproxy '*' --max-time 2 --output /dev/null --dump-header - "$url" 2>/dev/null |
      tr -d '\r' | sed -n 's/^x-gateway-revision: *//Ip')
    # The clients' keys are no part of the revision: they change without a reload, too.
    [ "$found" != "$1" ] || ! holds_maps "$admin" "$folder"/*.map || return 0
    sleep 0.2
    tenths=$((tenths + 2))
  done
  return 1
}
why() { journalctl --quiet --output=cat --lines=40 --unit="$unit" --since=-60s 2>/dev/null | grep -F '[ALERT]' | tail -n 5; }

has_host() { # within 4 s: HAProxy asks each host for its word every 2 s
  for _ in 1 2 3 4; do
    curl --fail --silent --insecure --noproxy '*' --max-time 2 --output /dev/null "$url" && return
    sleep 1
  done
}

place "$new" && rm -f $surplus && take_over && answers "$revision" 100 && {
  has_host
  rm -rf "$old" "$new"
  [ -z "$look" ] || [ ! -e "$units/$look" ] || systemctl start --no-block "$look"
  exit 0
}
why >&2
echo "no answer of revision $revision at $url within 10 s" >&2
names "$folder" | while read -r name; do [ -e "$old/$name" ] || rm -f "$folder/$name"; done
place "$old"
rm -rf "$old" "$new"
if [ "$was" = running ]; then systemctl reload "$unit"; else systemctl disable --quiet --now "$unit"; fi
exit 1
