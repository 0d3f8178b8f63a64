-- What the runs of templates' roles have told, by order: one row per order, which is locked by whoever adds lines.
-- Lines are numbered per order (seq). The oldest go when there are too many: those up to `dropped` are gone.
create table stories (
    order_id text collate "C" primary key,
    last_seq bigint not null default 0,
    dropped bigint not null default 0,
    bytes bigint not null default 0,
    touched timestamptz not null
) with (fillfactor = 50);

-- `shown_…` is what tenants read where that is not the same.
create table story_lines (
    order_id text collate "C" not null references stories on delete cascade,
    seq bigint not null,
    run text collate "C" not null,
    part text collate "C" not null,
    attempt integer not null,
    start text collate "C" not null,
    number bigint not null,
    at timestamptz not null,
    kind text not null,
    task text not null,
    text text not null,
    shown_task text,
    shown_text text,
    bytes integer not null,
    constraint story_lines_pkey primary key (order_id, seq),
    constraint story_lines_known unique (order_id, run, start, number)
);

create function boatyard_tell(
    the_order text, the_run text, lines jsonb, most_lines bigint, most_bytes bigint, now timestamptz
) returns bigint language plpgsql as $$
declare
    head stories;
    added bigint;
    added_bytes bigint;
    keep bigint;
begin
    insert into stories (order_id, touched) values (the_order, now) on conflict do nothing;
    select * into head from stories where order_id = the_order for update;
    with given as (
        select * from jsonb_to_recordset(lines) as line (
            place bigint, part text, attempt integer, start text, number bigint, at timestamptz, kind text,
            task text, text text, shown_task text, shown_text text, bytes integer
        )
    ), fresh as (
        -- Whoever read the same lines before us has told them already.
        select given.*, row_number() over (order by given.place) as rank from given
            where not exists (
                select 1 from story_lines known
                    where known.order_id = the_order and known.run = the_run
                        and known.start = given.start and known.number = given.number
            )
    ), kept as (
        insert into story_lines
            select the_order, head.last_seq + rank, the_run, part, attempt, start, number, at, kind,
                task, text, shown_task, shown_text, bytes
                from fresh
            returning bytes
    )
    select count(*), coalesce(sum(bytes), 0) into added, added_bytes from kept;
    if added = 0 then
        return 0;
    end if;
    head.last_seq := head.last_seq + added;
    head.bytes := head.bytes + added_bytes;
    if head.last_seq - head.dropped > most_lines or head.bytes > most_bytes then
        select coalesce(max(seq), head.dropped) into keep from (
            select seq, sum(bytes) over newest as total, row_number() over newest as place
                from story_lines where order_id = the_order
                window newest as (order by seq desc)
        ) sized where total > most_bytes or place > most_lines;
        with gone as (
            delete from story_lines where order_id = the_order and seq <= keep returning bytes
        )
        select head.bytes - coalesce(sum(bytes), 0) into head.bytes from gone;
        head.dropped := keep;
    end if;
    update stories set last_seq = head.last_seq, dropped = head.dropped, bytes = head.bytes, touched = now
        where order_id = the_order;
    return added;
end
$$;

-- Forgets the stories of orders that left before a moment, and of orders that nobody ever knew.
create function boatyard_forget_stories(before timestamptz) returns bigint language plpgsql as $$
declare
    forgotten bigint;
begin
    delete from stories s
        where s.touched < before
            and not exists (select 1 from documents d where d.kind = 'Order' and d.id = s.order_id)
            and not exists (
                select 1 from archive a
                    where a.kind = 'Order' and a.id = s.order_id and a.archived >= before
            );
    get diagnostics forgotten = row_count;
    return forgotten;
end
$$;
