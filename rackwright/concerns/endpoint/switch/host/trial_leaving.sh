# An endpoint that another one is to replace: it serves again when that is cut. Parameters: unit home.
restore() {
  durably_gone "$home/replaced-by" || return 1
  systemctl enable --quiet --no-reload "$unit"
}
restart() {
  systemctl start --no-block "$unit"
}
