# Remove packages, and those that came along with them as far as nothing else needs them now.
# Parameters: packages (names), brought (file that lists all that our installation brought).
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
remove() { apt-get -qq -o DPkg::Lock::Timeout=600 remove --yes --allow-change-held-packages "$@" >/dev/null; }
would_go() { apt-get --simulate remove --allow-change-held-packages "$@" 2>/dev/null | sed -n 's/^Remv \([^ ]*\).*/\1/p'; }
# The installation has disabled this service; dpkg would remember that for the next one who installs it.
case " $packages " in *' haproxy '*) systemctl enable --quiet haproxy.service 2>/dev/null ;; esac
needed_by() { # a package; prints those that would go with it and are not ours
  would_go "$1" | while read -r name; do
    case " $packages " in *" $name "*) ;; *) grep -qxF "$name" "$brought" 2>/dev/null || printf '%s ' "$name" ;; esac
  done
}
# Many need Python, and may have come since.
case " $packages " in
  *' python3 '*)
    others=$(needed_by python3)
    if [ -n "$others" ]; then
      printf '%s\n' "python3 stays, which ${others% } needs"
      packages=$(printf '%s ' "$packages" | sed 's/\(^\| \)python3 / /')
    fi
    ;;
esac
#include stale_socket.sh
# shellcheck disable=SC2086 - lists of names
remove $packages || exit 1
# Prints what would go with these packages; nothing where a package of others would go too.
only_ours() {
  goes=$(would_go "$@")
  [ -n "$goes" ] || return 0
  printf '%s\n' "$goes" | grep -qvxFf "$brought" || printf '%s\n' "$goes"
}
# apt takes seconds each time it begins, so all of them are asked at once first, and removed at once in any case.
all=$(cat "$brought" 2>/dev/null)
# shellcheck disable=SC2086 - a list of names
going=$([ -z "$all" ] || only_ours $all)
[ -n "$going" ] || going=$(for name in $all; do only_ours "$name"; done | sort -u)
# shellcheck disable=SC2086 - a list of names
[ -z "$going" ] || remove $going || exit 1
end_stale_socket
rm -f "$brought"
