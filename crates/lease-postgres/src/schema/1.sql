-- Version 1. `@.` stands for the schema's name and a point. Positions of 64 bits without a sign are kept as bigint with
-- the top bit turned, which keeps their order. A range that reaches the last position has no upper bound.

create extension if not exists btree_gist; -- `=` and `<>` of bigint, for the constraint

create table @.resource (
    id bigint generated always as identity primary key,
    name text not null unique
);

create table @.lease (
    res bigint not null,
    span int8range not null check (not isempty(span)),
    alone bigint not null, -- 0: shared; else a number that no other lease has: 0 and 0 do not conflict, all others do
    request uuid not null unique,
    expires timestamptz not null,
    constraint lease_no_conflict exclude using gist (res with =, span with &&, alone with <>)
);

-- Who waits. To lose this costs time only.
create unlogged table @.wish (
    res bigint not null,
    span int8range not null,
    alone boolean not null,
    request uuid primary key,
    since timestamptz not null default clock_timestamp(),
    expires timestamptz not null
);
create index on @.wish using gist (res, span);

-- A cache would be drawn before it is needed, and so break the order of fences.
create sequence @.fence cache 1;

-- Which timeline of the server has granted leases, and from when on it may. One row.
create table @.era (
    timeline bigint not null,
    grants_from timestamptz not null
);

create function @.span(lo bigint, last bigint) returns int8range language sql immutable as $$
    select int8range(lo, case when last < 9223372036854775807 then last + 1 end)
$$;

-- The block of 2^k positions that a position lies in.
create function @.block(lo bigint, k int) returns int8range language sql immutable as $$
    select @.span(lo & (-1::bigint << k), lo | ~(-1::bigint << k))
$$;

-- It changes when a standby is promoted, which may lack the latest leases.
create function @.timeline() returns bigint language sql stable as $$
    select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint
$$;

insert into @.era values (@.timeline(), clock_timestamp());

create function @.acquire(
    p_res bigint, p_lo bigint, p_last bigint, p_alone boolean, p_grow int, p_request uuid, p_ttl bigint, p_wish bigint,
    out granted boolean, out lo bigint, out last bigint, out epoch bigint, out fence bigint, out wait bigint
) language plpgsql as $$
declare
    asked constant int8range := @.span(p_lo, p_last);
    ttl constant interval := p_ttl * interval '1 millisecond';
    longest constant interval := interval '1 minute';
    area int8range := asked;
    wider int8range;
    got int8range;
    grants_from timestamptz;
    blocker record;
begin
    if ttl > longest then
        raise invalid_parameter_value using message = format('a lease is for %s at most', longest);
    end if;

    -- After a promotion nothing is granted for the longest ttl, since leases may be missing.
    epoch := @.timeline();
    select e.grants_from into strict grants_from from @.era e where e.timeline = epoch;
    if clock_timestamp() < grants_from then
        granted := false;
        wait := ceil(1000 * extract(epoch from grants_from - clock_timestamp()));
        return;
    end if;

    if p_grow >= 0 and asked <@ @.block(p_lo, p_grow) then
        area := @.block(p_lo, p_grow);
    end if;

    -- What has run out goes, except what somebody uses at this moment: a write that is guarded by it, or a sweep.
    delete from @.lease where request in (
        select l.request from @.lease l where l.res = p_res and l.span && area and l.expires < clock_timestamp()
        for update skip locked
    );

    for k in reverse p_grow..0 loop
        wider := @.block(p_lo, k);
        exit when not asked <@ wider;
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
    -- draws his after this lease is gone.
    for attempt in 1..2 loop
        got := coalesce(got, asked);
        insert into @.lease as l values (
            p_res, got, case when p_alone then nextval('@.fence') else 0 end, p_request, clock_timestamp() + ttl
        ) on conflict do nothing returning nextval('@.fence') into fence;
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
        lo := lower(got);
        last := coalesce(upper(got) - 1, 9223372036854775807);
        return;
    end if;

    update @.wish set expires = clock_timestamp() + p_wish * interval '1 millisecond' where request = p_request;
    if not found then
        insert into @.wish (res, span, alone, request, expires)
            values (p_res, asked, p_alone, p_request, clock_timestamp() + p_wish * interval '1 millisecond')
            on conflict do nothing;
        for blocker in
            select l.request from @.lease l where l.res = p_res and l.span && asked and (p_alone or l.alone <> 0)
        loop
            perform pg_notify('@.' || p_res, blocker.request::text);
        end loop;
    end if;
    select ceil(1000 * extract(epoch from min(l.expires) - clock_timestamp())) into wait
        from @.lease l where l.res = p_res and l.span && asked and (p_alone or l.alone <> 0);
end $$;

create function @.renew(p_request uuid, p_ttl bigint, out kept boolean, out wanted boolean) language plpgsql as $$
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

create function @.release(p_request uuid) returns void language plpgsql as $$
declare
    held record;
    next record;
begin
    delete from @.wish where request = p_request;
    delete from @.lease where request = p_request returning res, span into held;
    if not found then
        return;
    end if;
    -- The first in line, or those that can hold it together until the first that wants it alone.
    for next in
        select w.request, w.alone from @.wish w
            where w.res = held.res and w.span && held.span and w.expires > clock_timestamp() order by w.since
    loop
        perform pg_notify('@.' || held.res, next.request::text);
        exit when next.alone;
    end loop;
end $$;

-- To be called once at each opening: records a promotion.
create function @.enter(p_name text) returns bigint language plpgsql as $$
declare
    number bigint;
begin
    update @.era set timeline = @.timeline(), grants_from = clock_timestamp() + interval '1 minute'
        where timeline <> @.timeline();
    select id into number from @.resource where name = p_name;
    if not found then
        insert into @.resource (name) values (p_name) on conflict do nothing;
        select id into strict number from @.resource where name = p_name;
    end if;
    return number;
end $$;

-- A trigger for each row of a table whose writes need an exclusive lease: its arguments are the column with the row's
-- position, which has no negative ones, and the number of the resource. The setting `@.request` names the lease. The
-- lock is held to the end of the transaction: until then the lease is nobody else's. It lets renewals pass.
create function @.fenced() returns trigger language plpgsql as $$
declare
    p_request constant uuid := nullif(current_setting('@.request', true), '')::uuid;
    places bigint[] := '{}';
    place bigint;
begin
    if tg_op <> 'INSERT' then
        execute format('select ($1).%I::bigint', tg_argv[0]) into place using old;
        places := places || place;
    end if;
    if tg_op <> 'DELETE' then
        execute format('select ($1).%I::bigint', tg_argv[0]) into place using new;
        places := places || place;
    end if;
    foreach place in array places loop
        perform from @.lease l
            where l.request = p_request and l.res = tg_argv[1]::bigint and l.alone <> 0
                and l.span @> (place # -9223372036854775808) and l.expires >= clock_timestamp()
            for key share;
        if not found then
            raise exception using errcode = 'SL001',
                message = format('no lease for position %s of %I', place, tg_table_name);
        end if;
    end loop;
    return coalesce(new, old);
end $$;
