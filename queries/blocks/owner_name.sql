-- title: What a buffer is put down to: its source line, else the scope of its operation, else its instruction; layers folded.
-- note: A parameter goes by the argument of the function: params['h0']['w'] is params, args[1].mu is args[1]. Its own line is
--   inherited from its users and says little.
CREATE OR REPLACE MACRO owner_name(opcode, source_file, source_line, op_name, instruction) AS
CASE
    WHEN opcode = 'parameter' THEN coalesce(regexp_extract(op_name, '^\w+(?:\[\d+\])?'), folded_name(instruction))
    ELSE coalesce(source_text(source_file, source_line, 'own'),
        folded_name(coalesce(scope_of(plain_op_name(op_name)), plain_op_name(op_name), instruction)))
END;
