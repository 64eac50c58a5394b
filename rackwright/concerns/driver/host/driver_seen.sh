# The driver that the host runs now: the loaded module, the libraries as nvidia-smi has them, GPUs, and the versions of what runs beside it.
module=
[ ! -r /sys/module/nvidia/version ] || read -r module </sys/module/nvidia/version
said=$(timeout 60 nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>&1) && status=0 || status=$?
printf '%s\n' "module=$module" "status=$status"
if [ "$status" = 0 ]; then printf '%s\n' "library=$(printf '%s\n' "$said" | sort -u | tr '\n' ' ')" "gpus=$(printf '%s\n' "$said" | grep -c .)"
else printf '%s\n' "error=$(printf %s "$said" | tr '\n' ' ' | cut -c 1-300)"; fi
if command -v nv-fabricmanager >/dev/null; then
  printf '%s\n' "fabric=$(timeout 10 nv-fabricmanager --version 2>/dev/null | sed -n 's/.*[: ]\([0-9][0-9.]*\).*/\1/p' | head -n 1)"
fi
# shellcheck disable=SC2016 - dpkg-query's own variables
imex=$(dpkg-query -W -f '${db:Status-Abbrev} ${Version}\n' 'nvidia-imex*' 2>/dev/null | sed -n 's/^[hi]i *\([0-9.]*\).*/\1/p' | head -n 1)
[ -z "$imex" ] || printf '%s\n' "imex=$imex"
exit 0
