# How a trial ends that was not committed. Expects restore and restart, and `$owner` and `$held` (paths); $0 is the trial itself.
# trial_marks: the marks of the job, if any.
# `boot`: nothing of the job is left, and nothing has started yet. No Docker, no network, no reload: the caller does that.
# `cut REASON`: the job was ended; what was proven is started again, unless the host goes down.
case $1 in
  boot)
    systemctl is-active --quiet "$owner" && exit 0
    # Held back until it is done: a disk that no longer takes writes must not let it start either.
    for file in $held; do
      mkdir -p "${file%/*}" && printf '[Unit]\nConditionPathExists=!%s\n' "$file" >"$file" || exit 1
    done
    restore "the host went down before it was proven" && durably_gone "$0" || exit 1
    # What starts now is what was proven last, as after any boot.
    for file in ${trial_marks:-}; do durably_gone "$file"; done
    for file in $held; do
      rm -f "$file" && rmdir --ignore-fail-on-non-empty "${file%/*}"
    done
    ;;
  cut)
    # Clients that came on trial stay away until a run has asked what serves.
    for file in ${trial_marks:-}; do
      [ ! -f "$file" ] || sed 's/^word=up$/word=down/' "$file" | durable_file "$file"
    done
    restore "$2" && systemctl daemon-reload || exit 1
    # A start that waits for a host that goes down would be refused, or hold it up; its boot starts what was proven last.
    if [ "$(systemctl is-system-running)" = stopping ]; then
      for file in ${trial_marks:-}; do durably_gone "$file"; done
    else restart; fi
    durably_gone "$0"
    ;;
esac
