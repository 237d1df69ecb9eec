#!/bin/sh
# Creates the secrets of compose.yaml and compose.cluster.yaml in ./secrets. Existing files are not changed.
# The directory is closed to other users. The files are readable, because the user of the container is not their owner.
set -eu
cd "$(dirname "$0")/.."
mkdir -p secrets
chmod 0700 secrets
cd secrets
umask 022

random() { od -An -v -tx1 -N "$1" /dev/urandom | tr -d ' \n'; }
keep() { [ -s "$1" ] || printf '%s' "$2" > "$1"; }

keep master_key "$(random 32)"
keep bootstrap_key "assay_$(random 24)"
keep postgres_password "$(random 24)"
keep database_url "postgres://assay:$(cat postgres_password)@postgres:5432/assay"
keep s3_access_key "$(random 10)"
keep s3_secret_key "$(random 24)"
keep s3_config "{\"identities\":[{\"name\":\"assay\",\"actions\":[\"Admin\",\"Read\",\"Write\",\"List\"],\"credentials\":\
[{\"accessKey\":\"$(cat s3_access_key)\",\"secretKey\":\"$(cat s3_secret_key)\"}]}]}"
echo "The first API key is in secrets/bootstrap_key."
