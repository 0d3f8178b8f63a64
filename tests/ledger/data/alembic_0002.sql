-- A dump (pg_dump --inserts) of a database that an older Boatyard migrated with alembic up to revision 0002, and used.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE FUNCTION public.boatyard_claim(requests jsonb, lease jsonb, for_tenant text, moment timestamp with time zone) RETURNS text[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
declare
    r jsonb;
    pick text;
    got text;
    result text[] := '{}';
begin
    for r in select value from jsonb_array_elements(requests) loop
        loop
            select item into got from claims where pool = r ->> 'pool' and owner = r ->> 'owner';
            exit when found;
            select x.item into pick from jsonb_array_elements_text(r -> 'candidates') with ordinality as x (item, place)
                where not exists (select from claims k where k.pool = r ->> 'pool' and k.item = x.item)
                order by x.place limit 1;
            exit when not found;
            -- Somebody may be quicker: then look again, and see theirs.
            insert into claims (pool, item, owner, tenant, at)
                values (r ->> 'pool', pick, r ->> 'owner', for_tenant, moment)
                on conflict do nothing returning item into got;
            exit when found;
        end loop;
        result := array_append(result, got);
    end loop;
    if lease is not null then
        perform 1 from work where kind = lease ->> 'kind' and id = lease ->> 'id'
            and token = (lease ->> 'token')::bigint for share;
        if not found then
            raise exception using errcode = 'BY004', message = 'lease lost', detail = lease::text;
        end if;
    end if;
    return result;
end
$$;

CREATE FUNCTION public.boatyard_commit(p jsonb) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
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

CREATE FUNCTION public.boatyard_key(scope text, first text, second text) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN hashtextextended(((((scope || '/'::text) || first) || '/'::text) || second), (7202)::bigint);

CREATE FUNCTION public.boatyard_lost(c jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.boatyard_publish(many integer, poke boolean) RETURNS integer
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
declare
    base bigint;
    numbered integer;
begin
    perform pg_advisory_xact_lock(boatyard_key('publisher', '', ''));
    select last_seq into base from event_log;
    with pending as materialized (
        select p.ord, row_number() over (order by p.ord) as place
            from (select ord from events where seq is null order by ord limit many) p
    )
    update events e set seq = base + p.place from pending p where e.ord = p.ord and e.seq is null;
    get diagnostics numbered = row_count;
    if numbered > 0 then
        update event_log set last_seq = base + numbered;
    end if;
    if numbered > 0 or poke then
        perform pg_notify('boatyard', numbered::text);
    end if;
    return numbered;
end
$$;

CREATE FUNCTION public.boatyard_referrer(c jsonb) RETURNS TABLE(kind text, id text)
    LANGUAGE plpgsql
    AS $_$
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
$_$;

CREATE FUNCTION public.boatyard_trim(before timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    keep bigint;
    forgotten bigint;
begin
    perform pg_advisory_xact_lock(boatyard_key('publisher', '', ''));
    select seq into keep from events where seq is not null and at >= before order by seq limit 1;
    if not found then
        select last_seq + 1 into keep from event_log;
    end if;
    delete from events where seq < keep;
    get diagnostics forgotten = row_count;
    update event_log set trimmed = keep - 1 where trimmed < keep - 1;
    return forgotten;
end
$$;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE public.archive (
    kind text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    project text NOT NULL COLLATE pg_catalog."C",
    name text COLLATE pg_catalog."C",
    version integer NOT NULL,
    created timestamp with time zone,
    deleted timestamp with time zone,
    archived timestamp with time zone NOT NULL,
    data jsonb NOT NULL
);

CREATE TABLE public.claims (
    pool text NOT NULL COLLATE pg_catalog."C",
    item text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone NOT NULL
);

CREATE TABLE public.contents (
    digest text NOT NULL COLLATE pg_catalog."C",
    packed bytea NOT NULL,
    kept timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.contents ALTER COLUMN packed SET STORAGE EXTERNAL;

CREATE TABLE public.documents (
    kind text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    project text NOT NULL COLLATE pg_catalog."C",
    name text COLLATE pg_catalog."C",
    version integer NOT NULL,
    created timestamp with time zone,
    deleted timestamp with time zone,
    data jsonb NOT NULL,
    state integer GENERATED ALWAYS AS (
CASE
    WHEN (jsonb_typeof((data #> '{status,state}'::text[])) = 'number'::text) THEN ((data #>> '{status,state}'::text[]))::integer
    ELSE NULL::integer
END) STORED,
    template text GENERATED ALWAYS AS ((data #>> '{spec,template,id}'::text[])) STORED COLLATE pg_catalog."C",
    hub text GENERATED ALWAYS AS (COALESCE((data #>> '{status,hub}'::text[]), (data #>> '{spec,hub}'::text[]))) STORED COLLATE pg_catalog."C",
    cluster_version text GENERATED ALWAYS AS ((data #>> '{spec,version,id}'::text[])) STORED COLLATE pg_catalog."C"
)
WITH (fillfactor='80');

CREATE TABLE public.event_log (
    last_seq bigint NOT NULL,
    trimmed bigint NOT NULL
);

CREATE TABLE public.events (
    ord bigint NOT NULL,
    seq bigint,
    kind text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    type smallint NOT NULL,
    at timestamp with time zone NOT NULL,
    reason text NOT NULL,
    message text NOT NULL,
    data jsonb
)
WITH (toast_tuple_target='256', autovacuum_vacuum_scale_factor='0.05');

ALTER TABLE public.events ALTER COLUMN ord ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_ord_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.migration_steps (
    revision text NOT NULL,
    name text NOT NULL,
    done timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.pools (
    pool text NOT NULL COLLATE pg_catalog."C",
    used bigint NOT NULL,
    CONSTRAINT pools_used_check CHECK ((used >= 0))
)
WITH (fillfactor='50');

CREATE TABLE public.reservations (
    pool text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    amount bigint NOT NULL,
    CONSTRAINT reservations_amount_check CHECK ((amount > 0))
);

CREATE TABLE public.settings (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL
);

CREATE TABLE public.wakes (
    name text NOT NULL COLLATE pg_catalog."C",
    waker xid8 NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.work (
    kind text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    hub text NOT NULL COLLATE pg_catalog."C",
    due timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    token bigint,
    worker text,
    poked timestamp with time zone,
    waiting_for text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='500');

CREATE SEQUENCE public.work_token
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

INSERT INTO public.alembic_version VALUES ('0002');

INSERT INTO public.archive VALUES ('Cluster', 'b', 'acme', '', 'old', 0, '2026-01-01 00:00:00+00', NULL, '2026-01-01 00:00:00+00', '{"id": "b", "metadata": {"name": "old", "tenant": "acme", "creation_timestamp": "2026-01-01T00:00:00Z"}}');

INSERT INTO public.claims VALUES ('hub/boston/vlans', '100', 'a/network', 'acme', '2026-01-01 00:00:00+00');

INSERT INTO public.documents VALUES ('Cluster', 'a', 'acme', '', 'web', 0, '2026-01-01 00:00:00+00', NULL, '{"id": "a", "spec": {"template": {"id": "small"}}, "metadata": {"name": "web", "tenant": "acme", "creation_timestamp": "2026-01-01T00:00:00Z"}}', DEFAULT, DEFAULT, DEFAULT, DEFAULT);

INSERT INTO public.event_log VALUES (3, 0);

INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (1, 1, 'Cluster', 'a', 'acme', 1, '2026-01-01 00:00:00+00', 'Created', 'Cluster web ordered', '{"id": "a", "spec": {"template": {"id": "small"}}, "metadata": {"name": "web", "tenant": "acme", "creation_timestamp": "2026-01-01T00:00:00Z"}}');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (2, 2, 'Cluster', 'b', 'acme', 1, '2026-01-01 00:00:00+00', '', '', '{"id": "b", "metadata": {"name": "old", "tenant": "acme", "creation_timestamp": "2026-01-01T00:00:00Z"}}');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (3, 3, 'Cluster', 'b', 'acme', 3, '2026-01-01 00:00:00+00', '', '', '{"id": "b", "metadata": {"name": "old", "tenant": "acme", "creation_timestamp": "2026-01-01T00:00:00Z"}}');

INSERT INTO public.migration_steps VALUES ('0001', 'tables', '2026-11-18 00:27:53.926625+00');
INSERT INTO public.migration_steps VALUES ('0001', 'commit', '2026-11-18 00:27:53.967468+00');
INSERT INTO public.migration_steps VALUES ('0001', 'claim', '2026-11-18 00:27:53.97194+00');
INSERT INTO public.migration_steps VALUES ('0001', 'events', '2026-11-18 00:27:53.979154+00');
INSERT INTO public.migration_steps VALUES ('0002', 'contents', '2026-11-18 00:27:54.000932+00');

INSERT INTO public.pools VALUES ('hub/boston/hosts', 3);

INSERT INTO public.reservations VALUES ('hub/boston/hosts', 'a', 3);

INSERT INTO public.settings VALUES ('seal_key', '6c1d2d2003fa3f9d');

INSERT INTO public.work VALUES ('Cluster', 'a', 'acme', '', '2026-01-01 00:00:05+00', 0, NULL, NULL, NULL, '');

SELECT pg_catalog.setval('public.events_ord_seq', 3, true);

SELECT pg_catalog.setval('public.work_token', 1, false);

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY public.claims
    ADD CONSTRAINT claims_holder UNIQUE (pool, owner);

ALTER TABLE ONLY public.claims
    ADD CONSTRAINT claims_pkey PRIMARY KEY (pool, item);

ALTER TABLE ONLY public.contents
    ADD CONSTRAINT contents_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY public.documents
    ADD CONSTRAINT documents_pkey PRIMARY KEY (kind, id);

ALTER TABLE ONLY public.migration_steps
    ADD CONSTRAINT migration_steps_pkey PRIMARY KEY (revision, name);

ALTER TABLE ONLY public.pools
    ADD CONSTRAINT pools_pkey PRIMARY KEY (pool);

ALTER TABLE ONLY public.reservations
    ADD CONSTRAINT reservations_pkey PRIMARY KEY (pool, owner);

ALTER TABLE ONLY public.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.wakes
    ADD CONSTRAINT wakes_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.work
    ADD CONSTRAINT work_pkey PRIMARY KEY (kind, id);

CREATE INDEX archive_id ON public.archive USING btree (kind, id, archived);

CREATE INDEX archive_name ON public.archive USING btree (kind, name, archived);

CREATE INDEX claims_owner ON public.claims USING btree (owner);

CREATE INDEX documents_cluster_version ON public.documents USING btree (kind, cluster_version, id) INCLUDE (tenant) WHERE (cluster_version IS NOT NULL);

CREATE INDEX documents_hub ON public.documents USING btree (kind, hub, id) INCLUDE (tenant) WHERE (hub IS NOT NULL);

CREATE UNIQUE INDEX documents_name ON public.documents USING btree (kind, name, tenant, project);

CREATE INDEX documents_state ON public.documents USING btree (kind, state, id) INCLUDE (tenant) WHERE (state IS NOT NULL);

CREATE INDEX documents_template ON public.documents USING btree (kind, template, id) INCLUDE (tenant) WHERE (template IS NOT NULL);

CREATE INDEX documents_tenant ON public.documents USING btree (kind, tenant, id);

CREATE INDEX events_object ON public.events USING btree (kind, id, seq) WHERE (seq IS NOT NULL);

CREATE INDEX events_pending ON public.events USING btree (ord) WHERE (seq IS NULL);

CREATE UNIQUE INDEX events_seq ON public.events USING btree (seq) WHERE (seq IS NOT NULL);

CREATE INDEX reservations_owner ON public.reservations USING btree (owner);

CREATE INDEX work_due ON public.work USING btree (tenant, due);

CREATE INDEX work_waiting ON public.work USING btree (waiting_for) WHERE (waiting_for <> ''::text);
