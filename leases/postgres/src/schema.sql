-- The schema of leases. `@.` stands for the schema's name and a point.
--
-- A resource is leased by byte strings, or by positions of 64 bits without a sign: each is kept as the string of its 8
-- bytes, the highest one first, which keeps the order. A range is from a string on, and before another one, or without an
-- end.

create extension if not exists btree_gist; -- `=` and `<>` of bigint, for the constraint

create table @.version (number int not null);
insert into @.version values (1);

create type @.strings as range (subtype = bytea);

-- By what a resource is leased: a program that took one for the other would lock nothing that others lock.
create table @.resource (
    id bigint generated always as identity primary key,
    name text not null unique,
    kind text not null check (kind in ('positions', 'keys'))
);

-- Who asks, for people who look.
create function @.client() returns text language sql stable as $$
    select coalesce(nullif(current_setting('application_name'), ''), 'process ' || pg_backend_pid())
        || coalesce(' at ' || host(inet_client_addr()), '')
$$;

create table @.lease (
    res bigint not null,
    span @.strings not null check (not isempty(span)),
    alone bigint not null, -- 0: shared; else a number that no other lease has: 0 and 0 do not conflict, all others do
    request uuid not null unique,
    expires timestamptz not null,
    since timestamptz not null default clock_timestamp(),
    client text not null default @.client(),
    constraint lease_no_conflict exclude using gist (res with =, span with &&, alone with <>)
);

-- Who waits. To lose this costs time only.
create unlogged table @.wish (
    res bigint not null,
    span @.strings not null,
    alone boolean not null,
    request uuid primary key,
    since timestamptz not null default clock_timestamp(),
    expires timestamptz not null,
    client text not null default @.client()
);
create index on @.wish using gist (res, span);

-- A cache would be drawn before it is needed, and so break the order of fences.
create sequence @.fence cache 1;

-- Which server has granted leases, on which timeline, in which epoch of fences, and from when on it may. One row.
create table @.era (
    epoch bigint not null,
    timeline bigint not null,
    system bigint not null,
    grants_from timestamptz not null
);

-- It changes when a standby is promoted, which may lack the latest leases.
create function @.timeline() returns bigint language sql stable as $$
    select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint
$$;

-- It changes with what a dump or an upgrade brings to a server that was made anew, whose timelines begin again.
create function @.system() returns bigint language sql stable as $$
    select system_identifier from pg_control_system()
$$;

insert into @.era values (@.timeline(), @.timeline(), @.system(), clock_timestamp());

-- A position as calls have it: with the top bit turned.
create function @.string(p_position bigint) returns bytea language sql immutable strict as $$
    select int8send(p_position # -9223372036854775808)
$$;

-- The last string is followed by itself and a zero.
create function @.span(lo bigint, last bigint) returns @.strings language sql immutable as $$
    select @.strings(@.string(lo), @.string(last) || '\x00')
$$;

-- The block of 2^k positions that a position lies in.
create function @.block(lo bigint, k int) returns @.strings language sql immutable as $$
    select @.span(lo & (-1::bigint << k), lo | ~(-1::bigint << k))
$$;

-- What may be granted, the largest first: the blocks of 2^p_grow positions and less that the range lies in, and the
-- range.
create function @.spans(p_lo bigint, p_last bigint, p_grow int) returns @.strings[] language plpgsql immutable as $$
declare
    asked constant @.strings := @.span(p_lo, p_last);
    spans @.strings[] := '{}';
    wider @.strings;
begin
    for k in reverse p_grow..0 loop
        wider := @.block(p_lo, k);
        exit when not asked <@ wider;
        spans := array_append(spans, wider);
    end loop;
    return array_append(spans, asked);
end $$;

-- Until when a request that came then gives way to those that came earlier, conflict with it, and wait. It passes each
-- of them when that one has waited for the next power of two, in seconds; who comes later than that waits for the next
-- one. So a request gives way for no longer than the other had waited when it came, or for a second. And between two
-- powers nobody new passes who waits: whatever is in his way has that time to end.
create function @.gives_way_until(
    p_res bigint, p_span @.strings, p_alone boolean, p_request uuid, p_came timestamptz
) returns timestamptz language sql stable as $$
    select max(w.since + interval '1 second' * power(2, 1 + floor(log(greatest(waited, 0.5)) / log(2))))
    from @.wish w cross join lateral (select extract(epoch from p_came - w.since)::float8) as age (waited)
    where w.res = p_res and w.span && p_span and (p_alone or w.alone) and w.request <> p_request
        and w.since < p_came and w.expires > clock_timestamp()
$$;

-- Grants the first of the ranges that is free and that nobody else wishes for, or the last one if it is free. The last
-- one is what was asked for. It lies in all others, and each of them in the first one.
--
-- The planner expects that one in a hundred leases is in the way, and so to find one soon if it looks at them all. Mostly
-- none is. To compile such a plan, whose costs are made up, would take longer than it does.
create function @.admit(
    p_res bigint, p_spans @.strings[], p_alone boolean, p_request uuid, p_ttl bigint, p_wish bigint,
    out granted boolean, out got @.strings, out epoch bigint, out fence bigint, out wait bigint
) language plpgsql set enable_seqscan = off set jit = off as $$
declare
    asked constant @.strings := p_spans[cardinality(p_spans)];
    area constant @.strings := p_spans[1];
    ttl constant interval := p_ttl * interval '1 millisecond';
    longest constant interval := interval '1 minute';
    wider @.strings;
    grants_from timestamptz;
    came timestamptz;
    gives_way_until timestamptz;
    is_new boolean;
    blocker record;
begin
    if ttl > longest then
        raise invalid_parameter_value using message = format('a lease is for %s at most', longest);
    end if;
    -- The index keeps no longer ones. The end of a range may be the string that follows its last key.
    if greatest(octet_length(lower(asked)), octet_length(upper(asked))) > 1025 then
        raise invalid_parameter_value using message = 'a key of a lease has 1024 bytes at most';
    end if;

    -- After a promotion nothing is granted for the longest ttl, since leases may be missing.
    select e.epoch, e.grants_from into strict epoch, grants_from from @.era e where e.timeline = @.timeline();
    if clock_timestamp() < grants_from then
        granted := false;
        wait := ceil(1000 * extract(epoch from grants_from - clock_timestamp()));
        return;
    end if;

    -- What has run out goes, except what somebody uses at this moment: a write that is guarded by it, or a sweep.
    delete from @.lease where request in (
        select l.request from @.lease l where l.res = p_res and l.span && area and l.expires < clock_timestamp()
        for update skip locked
    );

    came := coalesce((select w.since from @.wish w where w.request = p_request), clock_timestamp());
    gives_way_until := @.gives_way_until(p_res, asked, p_alone, p_request, came);
    if gives_way_until <= clock_timestamp() then
        gives_way_until := null;
    end if;

    for number in 1 .. cardinality(p_spans) - 1 loop
        wider := p_spans[number];
        if not exists (
            select from @.lease l where l.res = p_res and l.span && wider and (p_alone or l.alone <> 0)
        ) and not exists (
            select from @.wish w where w.res = p_res and w.span && wider and (p_alone or w.alone)
                and w.request <> p_request and w.expires > clock_timestamp()
        ) then
            got := wider;
            exit;
        end if;
    end loop;

    -- The fence is drawn after the constraint has admitted the row (returning), never before: so whoever conflicts
    -- draws his after this lease is gone. A lease that can be seen is not waited for, also if somebody removes it now:
    -- two that have each swept some of what is in the way of both would wait for each other.
    for attempt in 1..2 loop
        exit when gives_way_until is not null;
        got := coalesce(got, asked);
        if not exists (
            select from @.lease l where l.res = p_res and l.span && got and (p_alone or l.alone <> 0)
        ) then
            insert into @.lease as l values (
                p_res, got, case when p_alone then nextval('@.fence') else 0 end, p_request, clock_timestamp() + ttl
            ) on conflict do nothing returning nextval('@.fence') into fence;
        end if;
        exit when fence is not null or got = asked;
        got := asked; -- the block is not free any more
    end loop;

    -- A request that is repeated may have its lease. The lock keeps it from being swept until the fence is drawn.
    if fence is null then
        update @.lease l set expires = clock_timestamp() + ttl
            where l.request = p_request and l.expires >= clock_timestamp()
            returning l.span, nextval('@.fence') into got, fence;
    end if;

    granted := fence is not null;
    if granted then
        delete from @.wish where request = p_request;
        -- Who has waited for others so far waits for this from now on.
        if exists (
            select from @.wish w where w.res = p_res and w.span && got and (p_alone or w.alone)
                and w.expires > clock_timestamp()
        ) then
            perform pg_notify('@.' || p_res, p_request::text);
        end if;
        return;
    end if;

    update @.wish set expires = clock_timestamp() + p_wish * interval '1 millisecond' where request = p_request;
    is_new := not found;
    if is_new then
        -- Of those who have died, others do not clear away theirs.
        delete from @.wish where request in (
            select w.request from @.wish w where w.res = p_res and w.span && asked
                and w.expires < clock_timestamp() - longest
            for update skip locked
        );
        insert into @.wish (res, span, alone, request, since, expires)
            values (p_res, asked, p_alone, p_request, came, clock_timestamp() + p_wish * interval '1 millisecond')
            on conflict do nothing;
    end if;
    -- Whoever was granted something at the moment when the wish was written has not seen it, and may not have been seen
    -- either. The next look, which comes at once, does see him.
    for blocker in
        select l.request from @.lease l where l.res = p_res and l.span && asked and (p_alone or l.alone <> 0) and (
            is_new or greatest(clock_timestamp() - came, came - l.since) < interval '1 second'
        )
    loop
        perform pg_notify('@.' || p_res, blocker.request::text);
    end loop;
    select ceil(1000 * extract(epoch from least(min(l.expires), gives_way_until) - clock_timestamp())) into wait
        from @.lease l where l.res = p_res and l.span && asked and (p_alone or l.alone <> 0);
end $$;

create function @.renew(p_request uuid, p_ttl bigint, out kept boolean, out wanted boolean) language plpgsql set enable_seqscan = off set jit = off as $$
declare
    held record;
begin
    update @.lease set expires = clock_timestamp() + p_ttl * interval '1 millisecond'
        where request = p_request and expires >= clock_timestamp()
        returning res, span, alone into held;
    kept := found;
    wanted := kept and exists (
        select from @.wish w where w.res = held.res and w.span && held.span and (w.alone or held.alone <> 0)
            and w.expires > clock_timestamp()
    );
end $$;

-- A wish that ends tells those who gave way to it.
create function @.release(p_request uuid) returns void language plpgsql as $$
declare
    freed record;
    held record;
    next record;
begin
    delete from @.wish where request = p_request returning res, span into freed;
    delete from @.lease where request = p_request returning res, span into held;
    if found then
        freed := held;
    end if;
    -- Those who give way find out by themselves when they need not any more.
    for next in
        select w.request from @.wish w
            where w.res = freed.res and w.span && freed.span and w.expires > clock_timestamp() and coalesce(
                @.gives_way_until(w.res, w.span, w.alone, w.request, w.since) <= clock_timestamp(), true
            )
    loop
        perform pg_notify('@.' || freed.res, next.request::text);
    end loop;
end $$;

-- To be called once at each opening: records a promotion, and another server.
create function @.enter(p_name text, p_kind text) returns bigint language plpgsql as $$
declare
    known record;
begin
    update @.era e set epoch = greatest(e.epoch + 1, @.timeline()), timeline = @.timeline(), system = @.system(),
        grants_from = clock_timestamp() + interval '1 minute'
        where (e.timeline, e.system) <> (@.timeline(), @.system());
    insert into @.resource (name, kind) select p_name, p_kind
        where not exists (select from @.resource where name = p_name) on conflict do nothing;
    select id, kind into strict known from @.resource where name = p_name;
    if known.kind <> p_kind then
        raise invalid_parameter_value using
            message = format('the resource %L is leased by %s, and not by %s', p_name, known.kind, p_kind);
    end if;
    return known.id;
end $$;

-- What the key of a row is, by the type of its column.
create function @.key(p_key bytea) returns bytea language sql immutable as $$ select p_key $$;
create function @.key(p_key text) returns bytea language sql immutable as $$ select convert_to(p_key, 'UTF8') $$;

create function @.guard(p_res bigint, p_place bytea, p_text text, p_table name) returns void language plpgsql as $$
declare
    requests constant uuid[] := string_to_array(current_setting('@.request', true), ',')::uuid[];
begin
    perform from @.lease l
        where l.request = any (requests) and l.res = p_res and l.alone <> 0 and l.span @> p_place
            and l.expires >= clock_timestamp()
        for key share;
    if not found then
        raise exception using errcode = 'SL001', message = format('no lease for position %s of %I', p_text, p_table);
    end if;
end $$;

-- A trigger for each row of a table whose writes need an exclusive lease: after the write, since other triggers may
-- change a row before. Its arguments are the column with the row's
-- position or key, the number of the resource, and 'positions' or 'keys'. The setting `@.request` names the
-- lease, or several with commas between them. The lock is held to the end of the transaction: until then the lease is
-- nobody else's. It lets renewals pass.
create function @.fenced() returns trigger language plpgsql as $$
declare
    places constant text := format(
        'select ' || case tg_argv[2] when 'keys' then '@.key(($1).%1$I)' else 'int8send(($1).%1$I::bigint)' end
        || ' as place, ($1).%1$I::text as shown', tg_argv[0]
    );
    at record;
begin
    if tg_op <> 'INSERT' then
        execute places into at using old;
        perform @.guard(tg_argv[1]::bigint, at.place, at.shown, tg_table_name);
    end if;
    if tg_op <> 'DELETE' then
        execute places into at using new;
        perform @.guard(tg_argv[1]::bigint, at.place, at.shown, tg_table_name);
    end if;
    return coalesce(new, old);
end $$;
