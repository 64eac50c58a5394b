# Functions by which only an endpoint's own container is taken for it. They come after those of holders.sh.
# Parameters: listener_home (the endpoint's folder).
# A container with a network of its own is asked in there, where no other process of the host can listen. On the host's own
# network the kernel must say that the port is the container's alone.
listener_name=rackwright-${listener_home##*/}
listener_port() { # sets `port`: where the current release listens
  port=
  [ ! -r "$listener_home/current/health-url" ] || read -r port <"$listener_home/current/health-url"
  port=${port##*:} port=${port%%/*}
}
listener_others() { # the container's identifier, and `own` where it has a network of its own: prints who else listens
  holders "$port" | while read -r _ pid name inside _ user address; do
    [ "$inside" != "$1" ] || continue
    case "$inside $user $name" in '- root docker-proxy' | '- root dockerd')
      # Docker holds it for our own container, or for another; or for none, as after a power cut (await_start.sh).
      [ "$2" != own ] || continue
      name=$(timeout 20 docker ps --filter "publish=$port" --format '{{.Names}}' 2>/dev/null | sed 1q)
      case $name in '' | "$listener_name") continue ;; esac
      name="container $name" ;;
    esac
    if [ "$inside" != - ]; then
      inside=$(timeout 20 docker inspect --format '{{.Name}}' "$inside" 2>/dev/null || printf %.12s "$inside")
      name="container ${inside#/} ($name)"
    fi
    printf '%s' "; $name, pid $pid, user $user, at $address"
  done
}
listener_container() { # sets `running`, `pid`, `id` and `label`; Docker's own client costs ten times a request
  running='' pid='' id='' label=''
  said=$(command curl -q --silent --noproxy '*' --max-time 20 --unix-socket "${DOCKER_HOST#unix://}" "http://docker/containers/$listener_name/json" 2>/dev/null)
  case $said in
    '{"Id":"'*)
      id=${said#*'"Id":"'} id=${id%%'"'*} pid=${said#*'"Pid":'} pid=${pid%%[!0-9]*}
      case $said in *'"Running":true'*) running=true ;; esac
      case $said in *'"rackwright.endpoint":"'*) label=${said#*'"rackwright.endpoint":"'} label=${label%%'"'*} ;; esac ;;
    '{"message":"No such container'*) ;;
    *) read -r running pid id label <<END
$(timeout 20 docker inspect --type container --format '{{.State.Running}} {{.State.Pid}} {{.Id}} {{index .Config.Labels "rackwright.endpoint"}}' "$listener_name" 2>/dev/null)
END
    ;;
  esac
}
# Fails unless the container runs, and alone listens on its port. Sets `listener_why`, and `listener_taken` where another process
# is why; `listener_network`, own or shared; file descriptor 9 is the container's network.
listener() {
  listener_why='' listener_taken='' listener_network=shared listener_id=none
  listener_port
  listener_container
  # Opened before it is looked at whose it is: the number may be another process's by now.
  if [ "$running $label" = "true ${listener_home##*/}" ] && [ -r "/proc/$pid/ns/net" ] && command exec 9<"/proc/$pid/ns/net"; then
    belongs "$pid"
    [ "$inside" != "$id" ] || listener_id=$id
    [ /proc/self/fd/9 -ef /proc/self/ns/net ] || listener_network=own
  fi
  [ -z "$port" ] || listener_taken=$(listener_others "$listener_id" "$listener_network")
  if [ -n "$listener_taken" ]; then
    listener_taken="port $port is taken by ${listener_taken#; }"
    listener_taken="$listener_taken; next: end it on this host (ss -ltnp 'sport = :$port' shows it), then run the same command again"
    listener_why=$listener_taken
    return 1
  fi
  if [ "$listener_id" = none ]; then listener_why="its container does not run"; return 1; fi
  [ "$listener_network" = shared ] || return 0
  command -v ss >/dev/null || { listener_why="the listener on port $port cannot be found without ss; next, on this host: apt-get install iproute2"; return 1; }
  case "
$(holders "$port")" in *" $listener_id "*) return 0 ;; esac
  listener_why="its container does not listen on port $port"
  return 1
} </dev/null
listener_stranger() ( # prints the process that has the port; nothing where it is the container
  listener || printf '%s' "$listener_taken"
)
