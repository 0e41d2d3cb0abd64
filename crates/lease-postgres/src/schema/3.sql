-- Version 3: an order among those who wait.

-- Until when a request that came then gives way to those that came earlier, conflict with it, and wait. It passes each
-- of them when that one has waited for the next power of two, in seconds; who comes later than that waits for the next
-- one. So a request gives way for no longer than the other had waited when it came, or for a second. And between two
-- powers nobody new passes who waits: whatever is in his way has that time to end.
create function @.gives_way_until(
    p_res bigint, p_span int8range, p_alone boolean, p_request uuid, p_came timestamptz
) returns timestamptz language sql stable as $$
    select max(w.since + interval '1 second' * power(2, 1 + floor(log(greatest(waited, 0.5)) / log(2))))
    from @.wish w cross join lateral (select extract(epoch from p_came - w.since)::float8) as age (waited)
    where w.res = p_res and w.span && p_span and (p_alone or w.alone) and w.request <> p_request
        and w.since < p_came and w.expires > clock_timestamp()
$$;

create or replace function @.acquire(
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
    came timestamptz;
    gives_way_until timestamptz;
    is_new boolean;
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

    came := coalesce((select w.since from @.wish w where w.request = p_request), clock_timestamp());
    gives_way_until := @.gives_way_until(p_res, asked, p_alone, p_request, came);
    if gives_way_until <= clock_timestamp() then
        gives_way_until := null;
    end if;

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
        lo := lower(got);
        last := coalesce(upper(got) - 1, 9223372036854775807);
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

-- A wish that ends tells those who gave way to it.
create or replace function @.release(p_request uuid) returns void language plpgsql as $$
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
