-- Everything a caller changes in one go. Locks are taken class by class (references, documents, claims, pools,
-- wakes, work) and sorted inside a class, so that two commits do not wait for each other in a ring.
-- Every row is found through an index; a plan made while a table was small must not stay when it has grown.
create function boatyard_commit(p jsonb) returns void language plpgsql
    set enable_seqscan = off as $$
declare
    moment constant timestamptz := (p ->> 'now')::timestamptz;
    c jsonb;
    lease jsonb;
    finish jsonb;
    found_deleted timestamptz;
    found_version integer;
    other_kind text;
    other_id text;
    before bigint;
    delta bigint;
    total bigint;
    held bigint;
    poke timestamptz;
    next_due timestamptz;
begin
    if p ? 'checks' then
        for c in select value from jsonb_array_elements(p -> 'checks') loop
            if c ->> 'op' = 'require' then
                perform pg_advisory_xact_lock_shared(boatyard_key('document', c ->> 'kind', c ->> 'id'));
                select deleted, version into found_deleted, found_version
                    from documents where kind = c ->> 'kind' and id = c ->> 'id';
                if not found or found_deleted is not null then
                    raise exception using errcode = 'BY006', message = 'reference',
                        detail = (c || jsonb_build_object('deleting', found_deleted is not null))::text;
                elsif found_version <> (c ->> 'version')::integer then -- null when no version is asked for
                    raise exception using errcode = 'BY002', message = 'conflict',
                        detail = jsonb_build_object('kind', c -> 'kind', 'id', c -> 'id',
                            'read', c -> 'version', 'stored', found_version)::text;
                end if;
            else
                perform pg_advisory_xact_lock(boatyard_key('document', c ->> 'kind', c ->> 'id'));
                select r.kind, r.id into other_kind, other_id from boatyard_referrer(c) r;
                if other_id is not null then
                    raise exception using errcode = 'BY007', message = 'in use',
                        detail = (c || jsonb_build_object('by_kind', other_kind, 'by_id', other_id))::text;
                end if;
            end if;
        end loop;
    end if;

    if p ? 'many' then
        perform 1 from documents d
            where (d.kind, d.id) in (select x.kind, x.id from jsonb_to_recordset(p -> 'documents') as x (kind text, id text))
            order by d.kind, d.id for update;
    end if;

    if p ? 'documents' then
        for c in select value from jsonb_array_elements(p -> 'documents') loop
            case c ->> 'op'
                when 'insert' then
                    insert into documents (kind, id, tenant, project, name, version, created, deleted, data)
                        values (c ->> 'kind', c ->> 'id', c ->> 'tenant', c ->> 'project', nullif(c ->> 'name', ''), 0,
                                (c ->> 'created')::timestamptz, (c ->> 'deleted')::timestamptz, c -> 'data')
                        on conflict do nothing;
                    if not found then
                        perform 1 from documents where kind = c ->> 'kind' and id = c ->> 'id';
                        raise exception using errcode = 'BY001', message = 'exists',
                            detail = jsonb_build_object('field', case when found then 'id' else 'name' end,
                                'kind', c -> 'kind', 'id', c -> 'id', 'name', c -> 'name')::text;
                    end if;
                when 'replace' then
                    update documents set
                        tenant = c ->> 'tenant', project = c ->> 'project', name = nullif(c ->> 'name', ''),
                        version = (c ->> 'version')::integer + 1, created = (c ->> 'created')::timestamptz,
                        deleted = (c ->> 'deleted')::timestamptz, data = c -> 'data'
                        where kind = c ->> 'kind' and id = c ->> 'id' and version = (c ->> 'version')::integer;
                    if not found then
                        perform boatyard_lost(c);
                    end if;
                when 'archive' then
                    delete from documents
                        where kind = c ->> 'kind' and id = c ->> 'id' and version = (c ->> 'version')::integer;
                    if not found then
                        perform boatyard_lost(c);
                    end if;
                    insert into archive (kind, id, tenant, project, name, version, created, deleted, archived, data)
                        values (c ->> 'kind', c ->> 'id', c ->> 'tenant', c ->> 'project', nullif(c ->> 'name', ''),
                                (c ->> 'version')::integer, (c ->> 'created')::timestamptz,
                                (c ->> 'deleted')::timestamptz, moment, c -> 'data');
                else
                    null; -- a signal: the event alone
            end case;
            insert into events (kind, id, tenant, type, at, reason, message, data)
                values (c ->> 'kind', c ->> 'id', c ->> 'tenant', (c ->> 'type')::smallint, moment,
                        coalesce(c ->> 'reason', ''), coalesce(c ->> 'message', ''), coalesce(c -> 'shown', c -> 'data'));
        end loop;
    end if;

    if p ? 'claims' then
        for c in select value from jsonb_array_elements(p -> 'claims') loop
            delete from claims where owner = c ->> 'prefix'
                or (owner >= (c ->> 'prefix') || '/' and owner < (c ->> 'prefix') || '0');
        end loop;
    end if;

    if p ? 'unreserve' then
        -- Before reserving, so that what moves from pool to pool is not counted twice.
        perform 1 from pools where pool in (
                select r.pool from reservations r
                    where r.owner = any (array(select value ->> 'owner' from jsonb_array_elements(p -> 'unreserve'))))
            order by pool for update;
        for c in select value from jsonb_array_elements(p -> 'unreserve') loop
            with freed as (
                delete from reservations r where r.owner = c ->> 'owner' and c ->> 'pool' in ('', r.pool)
                    returning r.pool, r.amount
            )
            update pools set used = used - f.amount
                from (select pool, sum(amount) as amount from freed group by pool) f where pools.pool = f.pool;
        end loop;
    end if;

    if p ? 'pools' then
        for c in select value from jsonb_array_elements(p -> 'pools') loop
            insert into pools (pool, used) values (c ->> 'pool', 0) on conflict do nothing;
            select used into total from pools where pool = c ->> 'pool' for update;
            select amount into before from reservations where pool = c ->> 'pool' and owner = c ->> 'owner';
            delta := (c ->> 'amount')::bigint - coalesce(before, 0);
            if delta > 0 and total + delta > (c ->> 'capacity')::bigint then
                raise exception using errcode = 'BY005', message = 'exhausted',
                    detail = (c || jsonb_build_object('used', total))::text;
            end if;
            if (c ->> 'amount')::bigint = 0 then
                delete from reservations where pool = c ->> 'pool' and owner = c ->> 'owner';
            elsif delta <> 0 then
                insert into reservations (pool, owner, amount) values (c ->> 'pool', c ->> 'owner', (c ->> 'amount')::bigint)
                    on conflict (pool, owner) do update set amount = excluded.amount;
            end if;
            if delta <> 0 then
                update pools set used = used + delta where pool = c ->> 'pool';
            end if;
        end loop;
    end if;

    lease := p -> 'lease';
    finish := p -> 'finish';
    if p ? 'wakes' then
        for c in select value from jsonb_array_elements(p -> 'wakes') loop
            perform pg_advisory_xact_lock(boatyard_key('wake', c ->> 'name', ''));
            insert into wakes (name, waker) values (c ->> 'name', pg_current_xact_id())
                on conflict (name) do update set waker = excluded.waker;
        end loop;
    end if;
    if coalesce(finish ->> 'waiting_for', '') <> '' then
        perform pg_advisory_xact_lock_shared(boatyard_key('wake', finish ->> 'waiting_for', ''));
    end if;

    if p ? 'lock_work' then
        -- Row by row through the key: one condition over both sets would read the whole table.
        for other_kind, other_id in
            select x.kind collate "C", x.id collate "C"
                from jsonb_to_recordset(p -> 'lock_work') as x (kind text, id text)
            union
            select w.kind, w.id from work w where w.waiting_for <> '' and w.waiting_for = any (
                array(select value ->> 'name' from jsonb_array_elements(p -> 'wakes')))
            order by 1, 2
        loop
            perform 1 from work where kind = other_kind and id = other_id for update;
        end loop;
    end if;

    if p ? 'wakes' then
        for c in select value from jsonb_array_elements(p -> 'wakes') loop
            update work set
                due = case when token is null then least(due, (c ->> 'at')::timestamptz) else due end,
                poked = case when token is null then null else least(poked, (c ->> 'at')::timestamptz) end
                where waiting_for = c ->> 'name' and waiting_for <> ''; -- the index leaves the others out
        end loop;
    end if;

    if p ? 'due' then
        for c in select value from jsonb_array_elements(p -> 'due') loop
            insert into work as w (kind, id, tenant, hub, due)
                values (c ->> 'kind', c ->> 'id', coalesce(c ->> 'tenant', ''), coalesce(c ->> 'hub', ''),
                        (c ->> 'at')::timestamptz)
                on conflict (kind, id) do update set
                    due = case when w.token is null then least(w.due, excluded.due) else w.due end,
                    poked = case when w.token is null then null else least(w.poked, excluded.due) end,
                    tenant = case when excluded.tenant = '' then w.tenant else excluded.tenant end,
                    hub = case when excluded.hub = '' then w.hub else excluded.hub end
                where case when w.token is null then excluded.due < w.due
                           else w.poked is null or excluded.due < w.poked end;
        end loop;
    end if;

    if lease is not null then
        select token, poked into held, poke from work
            where kind = lease ->> 'kind' and id = lease ->> 'id' for update;
        if held is distinct from (lease ->> 'token')::bigint then
            raise exception using errcode = 'BY004', message = 'lease lost', detail = lease::text;
        end if;
        if finish is not null then
            next_due := least((finish ->> 'due')::timestamptz, poke);
            if finish ->> 'waiting_for' <> '' then
                perform 1 from wakes where name = finish ->> 'waiting_for'
                    and not pg_visible_in_snapshot(waker, (lease ->> 'seen')::pg_snapshot);
                if found then
                    next_due := least(next_due, moment);
                end if;
            end if;
            if next_due is null then
                delete from work where kind = lease ->> 'kind' and id = lease ->> 'id';
            else
                update work set due = next_due, poked = null, token = null, worker = null,
                    hub = case when finish ->> 'hub' = '' then hub else finish ->> 'hub' end,
                    waiting_for = finish ->> 'waiting_for', attempts = (finish ->> 'attempts')::integer
                    where kind = lease ->> 'kind' and id = lease ->> 'id';
            end if;
        end if;
    end if;
end
$$;

create function boatyard_key(scope text, first text, second text) returns bigint
    language sql immutable parallel safe
    return hashtextextended(scope || '/' || first || '/' || second, 7202);

-- Says why a guarded write met nothing.
create function boatyard_lost(c jsonb) returns void language plpgsql as $$
declare
    found_version integer;
begin
    select version into found_version from documents where kind = c ->> 'kind' and id = c ->> 'id';
    if not found then
        raise exception using errcode = 'BY003', message = 'gone',
            detail = jsonb_build_object('kind', c -> 'kind', 'id', c -> 'id')::text;
    end if;
    raise exception using errcode = 'BY002', message = 'conflict',
        detail = jsonb_build_object('kind', c -> 'kind', 'id', c -> 'id', 'read', c -> 'version', 'stored', found_version)::text;
end
$$;

-- The first document that refers to the one in `c`: by an indexed column where there is one, else by path.
create function boatyard_referrer(c jsonb) returns table (kind text, id text) language plpgsql as $$
declare
    r jsonb;
begin
    for r in select value from jsonb_array_elements(c -> 'referrers') loop
        case r ->> 'column'
            when 'template' then
                return query select d.kind, d.id from documents d
                    where d.kind = r ->> 'kind' and d.template = c ->> 'id' limit 1;
            when 'cluster_version' then
                return query select d.kind, d.id from documents d
                    where d.kind = r ->> 'kind' and d.cluster_version = c ->> 'id' limit 1;
            else
                return query select d.kind, d.id from documents d
                    where d.kind = r ->> 'kind' and jsonb_path_exists(d.data,
                        ((r ->> 'path') || ' ? (@ == $id)')::jsonpath, jsonb_build_object('id', c -> 'id')) limit 1;
        end case;
        if found then
            return;
        end if;
    end loop;
end
$$;
