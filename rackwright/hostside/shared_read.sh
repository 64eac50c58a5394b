# What several sections of a reading decide by, asked once: the state of all units, and which releases are whole.
# It runs in the reading's own shell, so every name that it sets begins with `reading_`.
# Parameters: reading_asked (units, docker.service first), reading_home (of the endpoints).
reading_units=$reading_asked reading_whole= reading_containers=
for reading_own in "$reading_home"/*/; do
  [ -d "$reading_own" ] || continue
  reading_own=${reading_own%/} reading_unit=rackwright-${reading_own##*/}.service
  case " $reading_units " in *" $reading_unit "*) ;; *) reading_units="$reading_units $reading_unit" ;; esac
  reading_containers="$reading_containers ${reading_unit%.service}"
  for reading_release in "$reading_own"/releases/*/; do
    [ -f "${reading_release}SHA256SUMS" ] || continue
    (cd "$reading_release" && sha256sum --check --strict --status SHA256SUMS 2>/dev/null) &&
      reading_whole="$reading_whole$reading_release "
  done
done
# To say whether a unit is enabled systemd opens its drop-ins, and process 1 waits for a pipe's writer without a limit.
reading_pipe=$(find /etc/systemd/system /run/systemd/system /usr/local/lib/systemd/system -maxdepth 2 -type p -print -quit 2>/dev/null)
reading_states= reading_told=1
# shellcheck disable=SC2086 - a list of units
[ -n "$reading_pipe" ] || {
  reading_states=$(systemctl show --property=LoadState,ActiveState,SubState,Result,NeedDaemonReload,UnitFileState,MainPID,FragmentPath,DropInPaths \
    $reading_units 2>/dev/null); reading_told=$?
}
# Without systemd there is nothing to ask; where it is and does not answer, nothing is known.
[ -d /run/systemd/system ] || reading_told=0

# Of all that, this is what a script needs: dockerd's process, which units are up, Rackwright's processes, and drop-ins of
# ours that are not Rackwright's.
reading_daemon=0 reading_active= reading_started= reading_dropins=
set -f
# shellcheck disable=SC2086 - a list of units
set -- $reading_units
while IFS= read -r reading_line; do
  case $reading_line in
  ActiveState=active | ActiveState=reloading | ActiveState=refreshing) reading_active="$reading_active$1 " ;;
  MainPID=*)
    case $1 in
    docker.service) reading_daemon=${reading_line#*=} ;;
    rackwright-*) reading_started="$reading_started $1=${reading_line#*=} " ;;
    esac ;;
  DropInPaths=*rackwright* | DropInPaths=*/service.d/*)
    for reading_word in ${reading_line#*=}; do
      case "$1 $reading_word" in
      *' /usr/lib/'*/service.d/* | *' /lib/'*/service.d/*) ;;
      rackwright-*/service.d/*.conf)
        case " $reading_dropins" in *" $reading_word "*) ;; *) reading_dropins="$reading_dropins$reading_word " ;; esac ;;
      */rackwright*.d/rackwright-firewall.conf | */rackwright*.d/rackwright-held.conf) ;;
      */rackwright*.d/*.conf) reading_dropins="$reading_dropins$reading_word " ;;
      esac
    done ;;
  '') shift ;;
  esac
done <<END
$reading_states
END
set +f
is_active() { case " $reading_active" in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
first_lines() { # how many lines, what to put before each, a file; the last line may lack its end
  reading_left=$1
  while [ "$reading_left" -gt 0 ] && { IFS= read -r reading_line || [ -n "$reading_line" ]; }; do
    printf '%s\n' "$2$reading_line"; reading_left=$((reading_left - 1))
  done <"$3"
}
