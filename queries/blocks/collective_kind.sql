-- title: Kind of a collective, from its opcode or the name of its instruction: all-gather for all-gather-start.
CREATE OR REPLACE MACRO collective_kind(opcode) AS
regexp_extract(
    opcode,
    '^(ragged-all-to-all|all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute|collective-broadcast)'
);
