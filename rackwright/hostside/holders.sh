# Functions that say who listens on a port of this host, and whose process it is.
# What a process belongs to, by its control group: sets `inside`, the container's identifier, and `unit`, a unit whose name
# begins as ours do. Both are empty where it belongs to none. A user's own scopes and units may have any name: they do not count.
belongs() { # a process
  inside= unit=
  [ -r "/proc/$1/cgroup" ] || return 0
  while IFS= read -r place || [ -n "$place" ]; do
    while [ -n "$place" ]; do
      word=${place%%/*}
      case $place in */*) place=${place#*/} ;; *) place= ;; esac
      case $word in
        user.slice | user@*.service) inside= unit=; return 0 ;;
        rackwright-*.service) unit=${unit:-$word} ;;
      esac
      # A runtime puts words around it: docker-ID.scope, cri-containerd-ID.scope.
      word=${word%.scope} word=${word##*[-:]}
      case $word in *[!0-9a-f]*) continue ;; esac
      [ "${#word}" != 64 ] || inside=${inside:-$word}
    done
  done 2>/dev/null <"/proc/$1/cgroup"
}
# A process chooses its own name, which may hold line breaks and blanks; so may a user's name.
one_word() { # a text; sets `word`
  word=$1
  while :; do case $word in *[![:graph:]]*) word=${word%%[![:graph:]]*}_${word#*[![:graph:]]} ;; *) return ;; esac; done
}
named() { # a process; sets `name`
  name=
  [ ! -r "/proc/$1/comm" ] || read -r name <"/proc/$1/comm"
  one_word "$name"; name=$word
} 2>/dev/null
# By the kernel's list: the owner of /proc/PID is root where a process hides itself.
started_by() { # a process; sets `user`
  user=
  while read -r key word _; do
    case $key in Uid:) user=$word; break ;; esac
  done 2>/dev/null <"/proc/$1/status"
  case $user in
    0) user=root ;;
    ?*) one_word "$(timeout 2 id -nu "$user" 2>/dev/null || printf %s "$user")"; user=$word ;;
  esac
} 2>/dev/null
# Print a line for each process that listens: port, process, its name, its container and its unit (- for none), its user, the address.
# Of a listener that no process has, as the kernel's own servers, the process is 0.
holders() { # ports
  filter=
  for port in "$@"; do filter="${filter:+$filter or }sport = :$port"; done
  printed=' '
  ss -Hltnp "$filter" 2>/dev/null | while read -r _ _ _ here _ users; do
    port=${here##*:} address=${here%:*}
    case $users in *pid=[0-9]*) ;; *) printf '%s\n' "$port 0 kernel - - root $address"; continue ;; esac
    while :; do
      case $users in *pid=[0-9]*) users=${users#*pid=} pid=${users%%[!0-9]*} ;; *) break ;; esac
      case $printed in *" $here:$pid "*) continue ;; esac
      printed="$printed$here:$pid "
      started_by "$pid"
      # One that has ended in the meantime holds nothing.
      [ -n "$user" ] || continue
      belongs "$pid"
      named "$pid"
      printf '%s\n' "$port $pid ${name:--} ${inside:--} ${unit:--} ${user:--} $address"
    done
  done
}
