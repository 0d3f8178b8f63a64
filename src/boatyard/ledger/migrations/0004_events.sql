-- Numbers what is committed and has no number, in the order of insertion. The lock makes all publishers one;
-- whoever waits for it sees what was committed before the call. One NOTIFY per batch, or when asked to poke.
create function boatyard_publish(many integer, poke boolean) returns integer language plpgsql
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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

-- Forgets the oldest events: a prefix of the log, all of it older than `before`.
create function boatyard_trim(before timestamptz) returns bigint language plpgsql as $$
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
