-- title: Fusions and asynchronous calls whose result is made from a collective in what they call.
-- note: From HLO text or protobuf; no rows for runs without. A fusion can run a collective along with other work: of a tuple
--   only the elements that are made from the collective are listed.
-- column run_id BIGINT: Number of the run.
-- column instruction VARCHAR: The fusion or asynchronous call.
-- column element BIGINT: Element of its result; NULL for all of it.
-- column collective VARCHAR: Kind of the collective.
CREATE OR REPLACE MACRO called_collectives(run := NULL, label := NULL, module := NULL) AS TABLE
WITH RECURSIVE collectives AS MATERIALIZED (
    SELECT i.run_id, i.computation, i.instruction, collective_kind(i.opcode) AS collective
    FROM selected_runs(run, label, module) AS r
    JOIN instructions AS i USING (run_id)
    WHERE is_collective(i.opcode)
),
calls AS MATERIALIZED (
    SELECT i.run_id, i.instruction, i.computation AS caller, unnest(i.called_computations) AS computation
    FROM instructions AS i
    WHERE i.run_id IN (SELECT c.run_id FROM collectives AS c)
      AND i.opcode IN ('fusion', 'async-start')
),
roots AS MATERIALIZED (
    SELECT
        i.run_id,
        i.computation,
        i.instruction,
        unnest(CASE WHEN i.opcode = 'tuple' THEN i.operands ELSE [i.instruction] END) AS result,
        unnest(CASE WHEN i.opcode = 'tuple' THEN range(len(i.operands)) ELSE [NULL] END) AS element
    FROM instructions AS i
    SEMI JOIN calls AS k ON k.run_id = i.run_id AND k.computation = i.computation
    WHERE i.is_root
),
steps AS MATERIALIZED (
    -- An instruction of a called computation is made from its operands, a call from the root of what it calls.
    SELECT i.run_id, i.instruction, unnest(i.operands) AS made_from
    FROM instructions AS i
    SEMI JOIN calls AS k ON k.run_id = i.run_id AND k.computation = i.computation
    UNION ALL
    SELECT k.run_id, k.instruction, o.instruction
    FROM calls AS k
    JOIN roots AS o ON o.run_id = k.run_id AND o.computation = k.computation
),
made AS (
    SELECT c.run_id, c.instruction, c.collective
    FROM collectives AS c
    SEMI JOIN calls AS k ON k.run_id = c.run_id AND k.computation = c.computation
    UNION
    SELECT s.run_id, s.instruction, m.collective
    FROM made AS m
    JOIN steps AS s ON s.run_id = m.run_id AND s.made_from = m.instruction
)
SELECT DISTINCT k.run_id, k.instruction, o.element, m.collective
FROM calls AS k
JOIN roots AS o ON o.run_id = k.run_id AND o.computation = k.computation
JOIN made AS m ON m.run_id = o.run_id AND m.instruction = o.result;
