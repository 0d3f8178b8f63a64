-- What templates' roles contain, packed, by digest. A row is written once and never changed.
create table contents (
    digest text collate "C" primary key,
    packed bytea not null,
    kept timestamptz not null
);

-- It is packed already.
alter table contents alter column packed set storage external;
