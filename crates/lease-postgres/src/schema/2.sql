-- Version 2: who asked, and since when, for people who look.

create function @.client() returns text language sql stable as $$
    select coalesce(nullif(current_setting('application_name'), ''), 'process ' || pg_backend_pid())
        || coalesce(' at ' || host(inet_client_addr()), '')
$$;

-- Of leases and wishes that there are already, nobody has noted who asked. They count from now.
alter table @.lease
    add column client text not null default 'unknown',
    add column since timestamptz not null default clock_timestamp(),
    alter column client set default @.client();

alter table @.wish
    add column client text not null default 'unknown',
    alter column client set default @.client();
