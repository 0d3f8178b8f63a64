-- Documents, their archive, events, claims, reservations, work.
-- Keys compare by code point ("C"), so that PostgreSQL and Python sort alike whatever the locale.
create table documents (
    kind text collate "C" not null,
    id text collate "C" not null,
    tenant text collate "C" not null,
    project text collate "C" not null,
    name text collate "C", -- null is no name, of which there may be many
    version integer not null,
    created timestamptz,
    deleted timestamptz,
    data jsonb not null,
    -- What people filter by most.
    state integer generated always as (
        case when jsonb_typeof(data #> '{status,state}') = 'number' then (data #>> '{status,state}')::integer end
    ) stored,
    template text collate "C" generated always as (data #>> '{spec,template,id}') stored,
    hub text collate "C" generated always as (coalesce(data #>> '{status,hub}', data #>> '{spec,hub}')) stored,
    cluster_version text collate "C" generated always as (data #>> '{spec,version,id}') stored,
    constraint documents_pkey primary key (kind, id)
) with (fillfactor = 80);

-- The name comes second because most lists ask for one.
create unique index documents_name on documents (kind, name, tenant, project);

create index documents_tenant on documents (kind, tenant, id);

-- The tenant is there to be looked at: counting a tenant's share must not visit the rows.
create index documents_state on documents (kind, state, id) include (tenant) where state is not null;

create index documents_template on documents (kind, template, id) include (tenant) where template is not null;

create index documents_hub on documents (kind, hub, id) include (tenant) where hub is not null;

create index documents_cluster_version on documents (kind, cluster_version, id) include (tenant) where cluster_version is not null;

create table archive (
    kind text collate "C" not null,
    id text collate "C" not null,
    tenant text collate "C" not null,
    project text collate "C" not null,
    name text collate "C",
    version integer not null,
    created timestamptz,
    deleted timestamptz,
    archived timestamptz not null,
    data jsonb not null
);

create index archive_id on archive (kind, id, archived);

create index archive_name on archive (kind, name, archived);

-- A row is written twice: with its transaction, and once more when the publisher numbers it. The payload
-- is kept out of line so that the second writing is a narrow one.
create table events (
    ord bigint generated always as identity,
    seq bigint,
    kind text collate "C" not null,
    id text collate "C" not null,
    tenant text collate "C" not null,
    type smallint not null,
    at timestamptz not null,
    reason text not null,
    message text not null,
    data jsonb
) with (toast_tuple_target = 256, autovacuum_vacuum_scale_factor = 0.05);

create index events_pending on events (ord) where seq is null;

create unique index events_seq on events (seq) where seq is not null;

create index events_object on events (kind, id, seq) where seq is not null;

-- One row: the last number given, and the last one trimmed away.
create table event_log (
    last_seq bigint not null,
    trimmed bigint not null
);

insert into event_log (last_seq, trimmed) values (0, 0);

create table claims (
    pool text collate "C" not null,
    item text collate "C" not null,
    owner text collate "C" not null,
    tenant text collate "C" not null,
    at timestamptz not null,
    constraint claims_pkey primary key (pool, item),
    constraint claims_holder unique (pool, owner)
);

create index claims_owner on claims (owner);

create table reservations (
    pool text collate "C" not null,
    owner text collate "C" not null,
    amount bigint not null check (amount > 0),
    constraint reservations_pkey primary key (pool, owner)
);

create index reservations_owner on reservations (owner);

-- The sum of a pool's reservations; its row lock is what makes capacity a hard bound.
create table pools (
    pool text collate "C" primary key,
    used bigint not null check (used >= 0)
) with (fillfactor = 50);

-- While a row is leased (token is not null) its due is the end of the lease, and pokes are kept apart in `poked`.
create table work (
    kind text collate "C" not null,
    id text collate "C" not null,
    tenant text collate "C" not null,
    hub text collate "C" not null,
    due timestamptz not null,
    attempts integer not null default 0,
    token bigint,
    worker text,
    poked timestamptz,
    waiting_for text collate "C" not null default '',
    constraint work_pkey primary key (kind, id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

create index work_due on work (tenant, due);

create index work_waiting on work (waiting_for) where waiting_for <> '';

create sequence work_token;

-- Who last called whom awake, so that a wake between a look and the decision to wait is not lost.
create table wakes (
    name text collate "C" primary key,
    waker xid8 not null
) with (fillfactor = 50);

create table settings (
    name text collate "C" primary key,
    value text not null
);
