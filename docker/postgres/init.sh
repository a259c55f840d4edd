#!/bin/sh
# Runs once, when the data volume is empty. Creates one database per service, with an owner role for
# migrations and an application role for the service.
set -eu
for service in auth settings task; do
  psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    -v service="$service" -v owner="${service}_owner" -v app="${service}_app" -v password="$SERVICE_DATABASE_PASSWORD" <<'SQL'
CREATE ROLE :"owner" LOGIN PASSWORD :'password';
CREATE ROLE :"app" LOGIN PASSWORD :'password';
CREATE DATABASE :"service" OWNER :"owner";
REVOKE ALL ON DATABASE :"service" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"service" TO :"app";
SQL
done
