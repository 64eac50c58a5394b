# A user joins the group docker, keeps all other groups, and shows that it works: by this Docker, whatever its login says.
# Parameter: user.
getent group docker >/dev/null || groupadd --system docker || exit 1
gpasswd --add "$user" docker >/dev/null || exit 1
said=$(runuser -l "$user" -c "timeout 60 docker --host $DOCKER_HOST ps" 2>&1) && exit 0
printf '%s\n' "$user is in the group docker, but still cannot use it in a fresh session:" >&2
printf '%s\n' "$said" >&2
printf '%s\n' "next: runuser -l $user -c 'id; docker ps'" >&2
exit 1
