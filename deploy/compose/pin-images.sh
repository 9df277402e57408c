#!/bin/sh
# Writes the images of docker-compose.yml with the digests that their registries tell now.
#
#   deploy/compose/pin-images.sh
#   docker compose --env-file deploy/compose/images.env up --build --detach
#
# A tag may be moved to other contents, a digest cannot. Look at the changes before you keep them.
set -eu

folder=$(dirname "$0")
compose=$folder/../../docker-compose.yml
target=${1:-$folder/images.env}

# Each `${NAME_IMAGE:-image:tag}` of the file, once.
grep -o '[$]{[A-Z]*_IMAGE:-[^}]*}' "$compose" | sort -u | tr -d '${}' | while IFS= read -r entry; do
    name=${entry%%:-*}
    image=${entry#*:-}
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image")
    case $digest in
        sha256:*) printf '%s=%s@%s\n' "$name" "$image" "$digest" ;;
        *) echo "No digest of $image: the registry said '$digest'." >&2; exit 1 ;;
    esac
done > "$target.new"
mv "$target.new" "$target"
echo "Wrote $target."
