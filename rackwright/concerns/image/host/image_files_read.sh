# Print where all files of an image lie as they came from its registry: in the folder that keeps them, or in containerd's store.
# Parameters: sets (lines: digest, architecture, SHA-256 of each file) folder (of what was handed on).
case $(uname -m) in x86_64) machine=amd64 ;; aarch64) machine=arm64 ;; *) machine= ;; esac
printf '%s\n' "$sets" | while read -r digest for files; do
  [ "$for" = "$machine" ] || continue
  sha256=${digest#sha256:}
  for root in "$folder/$(printf %.16s "$sha256")" /var/lib/containerd/io.containerd.content.v1.content /var/lib/docker/containerd/daemon/io.containerd.content.v1.content; do
    [ -d "$root/blobs/sha256" ] || continue
    for file in $files; do [ -f "$root/blobs/sha256/$file" ] || continue 2; done
    printf '%s\n' "whole $digest $root"
    break
  done
done
