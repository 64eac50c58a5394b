# Fetch one model by the huggingface_hub of the serving image.
set -u
#include model_helper.sh
export http_proxy https_proxy no_proxy HTTP_PROXY="$http_proxy" HTTPS_PROXY="$https_proxy" NO_PROXY="$no_proxy"
set --
[ -z "$http_proxy$https_proxy" ] || for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do set -- "$@" --env $name; done
[ -z "$endpoint" ] || set -- "$@" --env "HF_ENDPOINT=$endpoint"
# Python clients bring their own list of authorities, which lacks the site's.
ca=/etc/ssl/certs/ca-certificates.crt
for name in SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE; do [ ! -f $ca ] || set -- "$@" --env $name="$inside/ca.crt"; done
[ ! -f $ca ] || cp $ca "$SECRETS/ca.crt"
mkdir -p -m 0755 "$models_dir" || exit 1
# Of a cache only what is this model's is mounted, and the store that the cache's models share: users own it, and may have put links anywhere.
caches=
holding >"$SECRETS/caches"
while IFS= read -r cache; do
  set -- "$@" --mount "type=bind,src=$cache/$model,dst=$cache/$model,readonly"
  if [ -d "$cache/blobs" ] && [ ! -L "$cache/blobs" ]; then
    set -- "$@" --mount "type=bind,src=$cache/blobs,dst=$cache/blobs,readonly"
  fi
  caches="$caches:$cache"
done <"$SECRETS/caches"
[ -z "$caches" ] || set -- "$@" --env "HUB_CACHES=${caches#:}"
mkdir -p -m 0755 "$manifests" || exit 1
printf %s "$program" | base64 -d >"$SECRETS/fetch_model.pyz"
[ -z "$hand_on" ] || printf %s "$hand_on" | base64 -d >"$SECRETS/hand_on.pyz"
stores_in "$models_dir" >"$SECRETS/stores"
as_told in_image fetch fetch_model.pyz --cap-add CHOWN --cap-add DAC_OVERRIDE --cap-add FOWNER \
  --volume "$models_dir:$models_dir" --volume "$manifests:$manifests" "$@"
status=$?
if [ "$status" = 125 ] && ! timeout 60 docker image inspect "$image" >/dev/null 2>&1; then
  printf '%s\n' "error: the image $image, in which models are fetched, is not on this host" "look at its pull above, and run again"
  exit 1
fi
exit "$status"
