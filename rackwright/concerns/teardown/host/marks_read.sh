# What on a host carries a mark of Rackwright, whatever its ownership record says; changes nothing.
# Parameters: units state etc run models (folders), written tag names_tag address endpoint_label helper_label (marks), and what the record
# names: places (of models, one a line, maybe ending in *) and images (one a line).
# Prints "KIND NAME [more]" lines, and "end". Names that Rackwright never gives are left out: they might forge a line.
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
have() { command -v "$1" >/dev/null 2>&1; }
plain() { case $1 in *[!A-Za-z0-9:_.@/+~-]*) return 1 ;; esac; }
there() { [ -e "$1" ] || [ -L "$1" ]; }

if [ -f "$state/owned.json" ]; then echo "record yes"; else echo "record no"; fi

for path in "$units"/rackwright.* "$units"/rackwright-*; do
  there "$path" && plain "$path" && [ ! -d "$path" ] || continue
  if grep -qs "$written" "$path"; then printf '%s\n' "unit ${path##*/} ours"; else printf '%s\n' "unit ${path##*/} foreign"; fi
done
for path in "$units"/rackwright*.d/*; do
  [ -f "$path" ] && plain "$path" && grep -q "$written" "$path" && printf '%s\n' "file $path"
done
find "$units" -mindepth 2 -type l \( -name 'rackwright.target' -o -name 'rackwright-*' \) | while read -r path; do
  # The others belong to units that are there, and go with them.
  plain "$path" && [ ! -e "$path" ] && printf '%s\n' "link $path"
done
systemctl list-units --all --plain --no-legend 'rackwright-job-*' 'rackwright-guard-*' 'rackwright-act@*' | while read -r unit _; do
  plain "$unit" && printf '%s\n' "job $unit"
done

for command in iptables ip6tables iptables-legacy ip6tables-legacy iptables-nft ip6tables-nft; do
  have "$command-save" || continue
  # The legacy commands load kernel modules when asked about an unused table.
  case $command in
    ip6*-legacy) grep -qx filter /proc/net/ip6_tables_names 2>/dev/null || continue ;;
    *-legacy) grep -qx filter /proc/net/ip_tables_names 2>/dev/null || continue ;;
    ip6tables | ip6tables-nft) [ -e /proc/net/if_inet6 ] || continue ;;
  esac
  if rules=$("$command-save" -t filter 2>/dev/null); then
    count=$(printf '%s\n' "$rules" | grep -c -- "--comment \"$tag")
    [ "$count" = 0 ] || printf '%s\n' "rules $command $count"
  else
    printf '%s\n' "unseen the rules of $command: $command-save failed"
  fi
  case $("$command-save" -t mangle 2>/dev/null) in *:RACKWRIGHT\ *) printf '%s\n' "rules $command:mangle 1" ;; esac
done

! have nft || ! nft list table inet rackwright >/dev/null 2>&1 || echo "rules nft 1"

for path in /etc/apt/keyrings/rackwright-*.asc /etc/apt/sources.list.d/rackwright-*.list /etc/apt/preferences.d/rackwright-* \
  /etc/apt/apt.conf.d/*rackwright-* /usr/local/share/ca-certificates/rackwright-*.crt "$units"/docker.service.d/rackwright-*.conf; do
  there "$path" && plain "$path" && printf '%s\n' "file $path"
done
{ ! grep -qsF "$names_tag" /etc/hosts && [ ! -e /etc/hosts.rackwright ]; } || echo "names /etc/hosts"
for path in /root/.docker/.rackwright.*; do there "$path" && plain "$path" && printf '%s\n' "scratch $path"; done
# Files that the caller's lease needs are not a sign of a deploy.
[ -z "$(ls -A "$state" 2>/dev/null | grep -vx -e 'fence.*' -e 'run')" ] || printf '%s\n' "folder $state"
[ -z "$(ls -A "$run" 2>/dev/null | grep -vx 'lease.*')" ] || printf '%s\n' "folder $run"
[ ! -d "$etc" ] || printf '%s\n' "folder $etc"
# A first driver's packages are known to the host alone before they are held.
[ ! -f "$state/driver/holds" ] || while read -r name; do
  # shellcheck disable=SC2016 - dpkg-query's own variables
  plain "$name" && [ "$(dpkg-query -W -f '${db:Status-Want}' "$name" 2>/dev/null)" = hold ] && printf '%s\n' "hold $name"
done <"$state/driver/holds"
for path in "$state"/aside/*; do
  case $path in *.state | *.d | *.container) continue ;; esac
  there "$path" && plain "$path" && printf '%s\n' "aside ${path##*/}"
done
for path in "$state"/aside/*.container; do there "$path" && plain "$path" && printf '%s\n' "aside $(basename "$path" .container).service"; done

for path in "$models"/*/.rackwright.json; do [ -f "$path" ] && plain "$path" && printf '%s\n' "manifest ${path%/*}"; done
printf '%s\n' "$places" | while read -r place; do
  for path in $place $place.partial; do [ -d "$path" ] && plain "$path" && printf '%s\n' "model $path $(store_of "$path")"; done
done
if ! have docker; then
  echo "docker absent"
  [ ! -d /var/lib/docker ] || echo "data /var/lib/docker"
# Any docker command would start a stopped dockerd through its socket, and a reading changes nothing.
elif ! systemctl is-active --quiet docker.service || ! timeout 20 docker version >/dev/null 2>&1; then
  echo "docker down"
else
  echo "docker up"
  label="{{if or (.Label \"$endpoint_label\") (.Label \"$helper_label\")}}ours{{else}}foreign{{end}}"
  timeout 60 docker ps --all --format "container {{.ID}} {{.Names}} $label" | grep -E '(^[^ ]+ [^ ]+ rackwright[-.]| ours$)'
  ! timeout 60 docker image ls --format '{{.Repository}}' | grep -q "^$address:" || echo "names Docker"
  printf '%s\n' "$images" | while read -r image; do
    [ -n "$image" ] && timeout 60 docker image inspect "$image" >/dev/null 2>&1 && printf '%s\n' "image $image"
  done
fi
echo end
exit 0
