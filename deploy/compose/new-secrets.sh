#!/bin/sh
# Makes the files of docker-compose.yml's secrets in ./secrets, or in the folder that is given.
# What is there stays: delete a file to have it made anew.
set -eu

folder=${1:-secrets}
umask 077
mkdir -p "$folder"

secret() {
    head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

keep() {  # name, text
    if [ ! -e "$folder/$1" ]; then
        printf '%s' "$2" > "$folder/$1"
        # The folder is closed; the file itself must be readable to the container's own user.
        chmod 444 "$folder/$1"
    fi
}

keep postgres_password "$(secret)"
keep temi_database_url "postgresql+psycopg://temi:$(cat "$folder/postgres_password")@postgres:5432/temi"
keep temi_api_key "$(secret)"
keep temi_s3_access_key "temi$(secret | head -c 12)"
keep temi_s3_secret_key "$(secret)"
# The only account of the store: it may use the one bucket, and can neither make nor remove any.
keep store_identities "$(printf '{"identities": [{"name": "temi", "credentials": [{"accessKey": "%s", "secretKey": "%s"}], "actions": ["Read:temi", "Write:temi", "List:temi"]}]}' \
    "$(cat "$folder/temi_s3_access_key")" "$(cat "$folder/temi_s3_secret_key")")"
redis_password=$(secret)
keep redis_config "requirepass $redis_password
maxmemory 256mb
maxmemory-policy noeviction
"
keep temi_broker_url "redis://:$(sed -n 's/^requirepass //p' "$folder/redis_config")@redis:6379/0"
keep grafana_password "$(secret)"
echo "The key of the API is in $folder/temi_api_key."
