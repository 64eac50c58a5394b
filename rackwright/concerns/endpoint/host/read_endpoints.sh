# Print the state of every endpoint that is wanted or there, and of the units that start them at boot.
# Parameters: units home marks groups (what runs of endpoints of several hosts) urls ("NAME URL" lines of the wanted endpoints) own_folders.
show "$units/rackwright.target"
show "$units/rackwright-boot.service"
show "$units/rackwright-restore.service"
# A server that is busy with a long prompt may answer late, and must not be restarted for that.
ask() { curl --silent --noproxy '*' --max-time "$1" --output /dev/null --write-out '%{http_code}' "$2"; }
# What others than root may write to: folders and files of Rackwright, and not what engines and downloads keep below them.
# The engine's file with its key is the container user's.
find $own_folders -maxdepth 5 \( -name caches -o -name models -o -path '/run/rackwright/?*' \) -prune -o ! -type l \
  \( ! -user root ! -path '*/keyed/*' -o -perm /022 \) -printf 'open %m:%u %p\n' 2>/dev/null
carried() { [ ! -f "$2" ] || carry "$1" "$2"; }
pointer() { # which one; sets `release`; `cd -P` reads a link without a process of its own, and fails for a dangling one
  release=
  [ ! -L "$own/$1" ] || release=$(cd -P "$own/$1" 2>/dev/null && printf %s "${PWD##*/}" || readlink "$own/$1")
  release=${release##*/}
}
for mark in "$home"/*/replaced-by; do
  [ ! -f "$mark" ] || { own=${mark%/*}; carry "replaced ${own##*/}" "$mark"; }
done
for path in $reading_dropins; do carried "dropin $path" "$path"; done
names=
while read -r name url; do
  [ -z "$name" ] || names="$names$name "
done <<END
$urls
END
for own in "$home"/*/; do
  own=${own%/}
  [ ! -d "$own" ] || case " $names" in *" ${own##*/} "*) ;; *) names="$names${own##*/} " ;; esac
done
for name in $names; do
  unit="rackwright-$name.service" own="$home/$name"
  [ -f "$own/replaced-by" ] && continue
  printf '%s\n' "endpoint $name"
  pointer current; current=$release
  pointer proven
  printf '%s\n' "value current=$current" "value proven=$release"
  [ -e "/run/systemd/system/$unit.d/rackwright-held.conf" ] && echo "value held=yes"
  [ -e "$own/not-admitted" ] && echo "value admitted=no"
  [ -e "$marks/sick-$name" ] && echo "value sick=yes"
  [ -f "$own/proofs/$release" ] && echo "value questions=yes"
  [ ! -e "$own/caches" ] || printf '%s\n' "value caches=$(stat -c %a:%U "$own/caches")"
  [ ! -f "$own/last-switch" ] || first_lines 4 "value last_" "$own/last-switch"
  carried unit "$units/$unit"
  carried current_unit "$own/current/$unit"
  case " $reading_whole" in *" $own/releases/$current/ "*) echo "value files=whole" ;; esac
  carried binding "$own/binding"
  carried proven_binding "$own/proven-binding"
  carried spec "$own/current/spec.json"
  [ "$own/proven" -ef "$own/current" ] || carried proven_spec "$own/proven/spec.json"
  is_active "$unit" || continue
  # The `docker run` that systemd has started says what runs, whatever the unit says by now.
  case $reading_started in *" $unit="*)
    started=${reading_started#*" $unit="} started=${started%% *}
    [ ! -r "/proc/$started/cmdline" ] || quote started "$(tr '\000' '\n' <"/proc/$started/cmdline")" ;;
  esac
  # A member that is not the head answers no requests; its unit is active while its head says that all serve.
  if [ -f "$groups/$name/ready" ] && [ ! -f "$groups/$name/state" ]; then echo "value health=200"; continue; fi
  have curl || continue
  # What runs may listen elsewhere than what is wanted.
  release_of "rackwright-$name"
  url=
  if [ -n "$release" ] && [ -f "$own/releases/$release/health-url" ]; then read -r url <"$own/releases/$release/health-url"
  else while read -r one there; do [ "$one" != "$name" ] || url=$there; done <<END
$urls
END
  fi
  [ -n "$url" ] || continue
  health=$(ask 3 "$url")
  [ "$health" = 000 ] && health=$(ask 15 "$url")
  printf '%s\n' "value health=$health"
done
exit 0
