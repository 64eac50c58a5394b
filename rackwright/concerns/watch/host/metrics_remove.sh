# Remove the file of metrics that the host wrote outside Rackwright's folders. Parameter: place (of its path).
file=
[ ! -f "$place" ] || read -r file <"$place"
case $file in /*/rackwright.prom | /*/rackwright-gateway.prom) rm -f "$file" "${file%/*}/.${file##*/}".?????? || exit 1 ;; esac
