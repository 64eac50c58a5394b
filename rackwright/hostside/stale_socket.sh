# Stop a docker.socket whose package is gone: Ubuntu's leaves it listening, and a dockerd that is installed later gets no socket from it.
end_stale_socket() {
  [ "$(systemctl show --property LoadState --value docker.socket)" != not-found ] || ! systemctl is-active --quiet docker.socket || systemctl stop docker.socket
}
