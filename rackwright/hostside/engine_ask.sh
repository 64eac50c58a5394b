# Asks Docker Engine of itself, its containers and its images: `reading_engine` is then the bodies of its API, each followed
# by a line with its status and its URL. It runs in the reading's own shell, behind shared_read.sh.
# Parameters: reading_socket.
engine_ask() { # what stands before the path: nothing, or /vVERSION
  for path in /info '/containers/json?all=1' /images/json; do set -- "$@" "http://docker$1$path"; done
  for name in $reading_containers; do set -- "$@" "http://docker$1/containers/$name/json"; done
  shift
  if have curl; then
    curl -q --silent --noproxy '*' --fail-early --max-time 25 --unix-socket "$reading_socket" \
      --write-out '\nanswer %{http_code} %{url_effective}\n' http://docker/version "$@"
  else
    for url in http://docker/version "$@"; do engine_by_client "$url"; done
  fi
}
engine_by_client() { # the same by Docker's own client, on a host without curl; some ten times the price
  said=$(printf 'GET %s HTTP/1.0\r\nHost: docker\r\n\r\n' "${1#http://docker}" | timeout 25 docker system dial-stdio 2>/dev/null)
  return=$(printf '\r')
  printf '%s\n\nanswer %.3s %s\n' "${said#*"$return
$return
"}" "${said#* }" "$1"
}
reading_engine=
# A request to a stopped dockerd starts it through its socket, and a reading changes nothing.
is_active docker.service && reading_engine=$(engine_ask '')
# Without a version in its path, a request is of the newest that the daemon has. Docker means to end that; then the
# daemon's own word of its version is asked for, which stays without one.
case $reading_engine in *'
answer 200 http://docker/version
'*'
answer 4'??' http://docker/info
'*)
  reading_version=${reading_engine#*'"ApiVersion":"'}
  reading_engine=$(engine_ask "/v${reading_version%%'"'*}") ;;
esac
release_of() { # one of Rackwright's containers; sets `release` to the one that it was started with, empty where none runs
  release= reading_named=
  # shellcheck disable=SC2046 - a list of names and hashes; the shell's own patterns take seconds for a text of this length
  set -- "$1" $(printf '%s\n' "$reading_engine" | grep -o -e '"Names":\["/rackwright-[a-z0-9.-]*"' -e '"rackwright.release":"[0-9a-f]*"' -e '^answer [0-9]* http://docker[^ ]*/images/json$')
  for reading_word in "$@"; do
    case $reading_word in
    answer) break ;; # what follows are containers one by one
    '"Names":["/'*) reading_named=${reading_word#'"Names":["/'} ;;
    '"rackwright.release":"'*) [ "$reading_named" != "$1\"" ] || release=${reading_word#'"rackwright.release":"'} ;;
    esac
  done
  release=${release%'"'}
}
