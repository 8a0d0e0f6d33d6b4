-- title: Shapes of a text without their layouts and the comments that number them: f32[8,4] for f32[8,4]{1,0:T(8,128)}.
CREATE OR REPLACE MACRO shapes_only(text) AS
regexp_replace(text, '\{[^{}]*\}|/\*[^*]*\*/', '', 'g');
