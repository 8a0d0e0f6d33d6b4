-- title: Regular expression of one part of an op_name: '/' stands in it only within quotes or brackets.
-- note: An expression of RE2 cannot call itself, so brackets go 12 levels deep, built from the innermost outwards.
CREATE OR REPLACE MACRO op_name_part() AS
'(?:[^/\[\](){}''"]|''(?:[^''\\]|\\.)*''|"(?:[^"\\]|\\.)*"|[\[({]'
|| repeat('(?:[^\[\](){}''"]|''(?:[^''\\]|\\.)*''|"(?:[^"\\]|\\.)*"|[\[({]', 11)
|| '(?:[^\[\](){}''"]|''(?:[^''\\]|\\.)*''|"(?:[^"\\]|\\.)*")*'
|| repeat('[\])}])*', 12);
