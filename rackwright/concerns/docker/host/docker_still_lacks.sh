# Restart dockerd for the sake of its chains only while they are gone. The file $reason, if any, gets why not.
[ -n "$(docker_lacks "$(timeout 25 docker info --format '{{json .}}' 2>/dev/null)" "$(systemctl show --property=MainPID --value docker.service)")" ] && exit 0
printf '%s\n' "Docker's chains are there again, so dockerd need not be restarted; next: the same command again" | tee "${reason:-/dev/null}"
exit 1
