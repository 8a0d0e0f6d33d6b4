-- title: Name of a value: its defining instruction, with the shape index where the result is a tuple.
CREATE OR REPLACE MACRO value_name(instruction, shape_index) AS
CASE WHEN shape_index = '{}' THEN instruction ELSE instruction || shape_index END;
