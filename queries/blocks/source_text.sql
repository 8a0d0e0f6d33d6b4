-- title: Source file and line as one text; an inherited one says in brackets from where.
-- note: via is source_via of the value: own, or fused, operand, user or caller, the near instruction that has the line.
CREATE OR REPLACE MACRO source_text(source_file, source_line, source_via) AS
source_file || coalesce(':' || source_line, '') || CASE WHEN source_via <> 'own' THEN ' (' || source_via || ')' ELSE '' END;
