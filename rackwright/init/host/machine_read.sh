# What `rackwright init` asks a machine, as the login user: nothing is changed, and nothing needs root.
printf 'arch %s\n' "$(uname -m)"
[ ! -r /etc/os-release ] || sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/system \1/p' /etc/os-release
if [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null </dev/null; then echo 'sudo yes'; fi
# GPUs without a driver are on the PCI bus, too: NVIDIA's number, and a class of displays.
devices=0
for device in /sys/bus/pci/devices/*/; do
  read -r vendor 2>/dev/null <"${device}vendor" || continue
  read -r class 2>/dev/null <"${device}class" || continue
  case $vendor$class in 0x10de0x03*) devices=$((devices + 1)) ;; esac
done
printf 'devices %s\n' "$devices"
if command -v nvidia-smi >/dev/null 2>&1; then
  # A wedged driver lets nvidia-smi hang for ever.
  rows=$(timeout -k 2 30 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1)
  status=$?
  printf 'status %s\n' "$status"
  if [ "$status" = 0 ]; then printf '%s\n' "$rows" | sed 's/^/gpu /'; else printf '%s\n' "$rows" | head -n 1 | sed 's/^/error /'; fi
fi
exit 0
