# Functions by which a gateway's process takes its maps as they are in their files, without a reload, and at once.
ask() { # socket; commands come by standard input, one a row, and their answers go out
  perl -MIO::Socket::UNIX -e 'alarm 30; while ($command = <STDIN>) { $socket = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "$ARGV[0]: $!\n"; print $socket $command; shutdown $socket, 1; print while <$socket>; }' "$1"
}
holds_map() { # socket, prefix of each command, file: whether the process has the map as it is in its file
  taken=$(printf '%s\n' "$2show map $3" | ask "$1" | awk 'NF == 3 { print $2, $3 }' | LC_ALL=C sort)
  [ "$taken" = "$(LC_ALL=C sort "$3")" ]
}
holds_maps() { # socket, files; one that the configuration does not use is left out
  admin=$1
  shift
  loaded=$(printf '%s\n' "show map" | ask "$admin" 2>/dev/null) || return 1
  for file; do
    case $loaded in *"($file)"*) holds_map "$admin" "" "$file" || return 1 ;; esac
  done
}
take_map() { # socket, prefix of each command, file: a new version of the map that replaces the old one in one step
  version=$(printf '%s\n' "$2prepare map $3" | ask "$1" | sed -n 's/^New version created: \([0-9][0-9]*\)$/\1/p')
  [ -n "$version" ] || return 1
  { sed "s|^|$2add map @$version $3 |" "$3" && printf '%s\n' "$2commit map @$version $3"; } | ask "$1" >/dev/null || return 1
  holds_map "$@"
}
take_maps() { # socket of the process, socket of its master, files
  admin=$1 master=$2
  shift 2
  loaded=$(printf '%s\n' "show map" | ask "$admin") || return 1
  for file; do
    case $loaded in *"($file)"*) take_map "$admin" "" "$file" || return 1 ;; esac
  done
  [ -S "$master" ] || return 0
  # A process from before a reload lives as long as its streams, and a connection that has carried one may ask again.
  old=$(printf '%s\n' "show proc" | ask "$master" | awk '/^#/ { is_old = /^# old workers/; next } is_old && $1 ~ /^[0-9]+$/ { print $1 }')
  for process in $old; do
    for file; do
      case $loaded in *"($file)"*) take_map "$master" "@!$process " "$file" || ! kill -0 "$process" 2>/dev/null || return 1 ;; esac
    done
  done
}
