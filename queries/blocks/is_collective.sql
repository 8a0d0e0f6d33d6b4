-- title: Whether an opcode is that of a collective, or an instruction's name begins like one.
CREATE OR REPLACE MACRO is_collective(opcode) AS
-- Quicker than a regular expression on every row.
starts_with(opcode, 'all-gather') OR starts_with(opcode, 'all-reduce') OR starts_with(opcode, 'all-to-all')
OR starts_with(opcode, 'reduce-scatter') OR starts_with(opcode, 'ragged-all-to-all')
OR starts_with(opcode, 'collective-permute') OR starts_with(opcode, 'collective-broadcast');
