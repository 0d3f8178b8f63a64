-- Hands out identities. An owner that holds something of the pool gets that again.
create function boatyard_claim(requests jsonb, lease jsonb, for_tenant text, moment timestamptz)
    returns text[] language plpgsql set enable_seqscan = off as $$
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
